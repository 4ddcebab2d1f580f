"""What record files hold: as a table for people, a layout file and CSV rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from shardctl.base.columns import Records, RecordStream, picked, records_of, stream_of
from shardctl.base.text import counted, dataset_title, path_word, quoted, shell_line
from shardctl.draw.quantities import human_bytes
from shardctl.draw.tables import Screen, cells_of, columns, paragraph, paragraphs, table, to_paste
from shardctl.files.documents import Document
from shardctl.metadata.index.index import (
    Index,
    index_document,  # noqa: F401  # one of the formats
)
from shardctl.metadata.index.planned_metadata import TfdsMetadata
from shardctl.saved.head import head, kind_head
from shardctl.verbs.index.check import IndexCheck
from shardctl.verbs.layout.answer import SplitLayout

# Metadata that TFDS reads record files by.

_TFDS = columns("<name=split num_examples=examples num_shards=shards <template")


def tfds_metadata_table(metadata: TfdsMetadata, screen: Screen) -> Iterator[str]:
    """Yield what TFDS reads now."""
    title = f"{metadata.name}:{metadata.version}: {metadata.file_format}, {metadata.folder}"
    yield paragraph(title, screen, style="bold")
    yield table(_TFDS, cells_of(_TFDS, metadata.splits), screen)
    yield paragraph(f"wrote {', '.join(metadata.written)}", screen)
    made = f"tfds.builder_from_directory({metadata.folder!r})"
    yield from to_paste("next, in Python", made, screen)


def tfds_metadata_document(metadata: TfdsMetadata) -> Document:
    """Return the document."""
    return {
        **kind_head("tfds_metadata"),
        **picked(metadata, "name version folder file_format splits written"),
    }


def tfds_metadata_rows(metadata: TfdsMetadata) -> Records:
    """Return a row for each split."""
    return records_of("split=name num_examples num_shards template", metadata.splits)


# What changed in the files of a layout: as a table for people, a document and CSV rows.

_COLUMNS = columns("!kind=change <path=file then=examples now bytes_then=bytes bytes_now=now")
_PROBLEM = columns("<reason=problem")


def check_table(check: IndexCheck, screen: Screen) -> Iterator[str]:
    """Yield each file that changed, and how many of which kind."""
    where = check.dataset.data_dir or check.dataset.origin
    yield paragraph(f"{check.dataset.title}: {where}", screen, style="bold")
    files = counted(check.num_files, "file")
    if check.changes:
        reasons = any(change.reason for change in check.changes)
        shown = [*_COLUMNS, *(_PROBLEM if reasons else ())]
        yield table(shown, cells_of(shown, check.changes), screen, keep=_MAX_FILES)
        kinds = Counter(change.kind for change in check.changes)
        said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        yield paragraph(f"of {files}: {said}", screen)
    else:
        yield paragraph(f"{files}, unchanged since {check.layout}", screen)
    if check.changes:
        command = shell_line("shardctl", "index", *check.words, "-o", path_word(check.layout))
        yield from to_paste("next: restore these files, or write a new layout", command, screen)


def check_document(check: IndexCheck) -> Document:
    """Return the answer as a document."""
    return {
        **head("index", check.dataset.identity),
        **picked(check, "check=layout equal num_files changes"),
    }


def check_rows(check: IndexCheck) -> Records:
    """Return the record of each change."""
    return records_of("kind split path then now bytes_then bytes_now reason", check.changes)


_MAX_FILES = 20  # files that a table names on a terminal
_SPLITS = columns("<split.name=split split.num_shards=files split.num_examples=examples")
_SPLITS += columns("~split.num_bytes=bytes balance.min=smallest balance.max=largest")
_BROKEN = columns("!path=file <finding.reason=problem")
_LEGEND = "smallest, largest: examples in a file"


def index_table(index: Index, screen: Screen, *, refs: Sequence[str] = ()) -> Iterator[str]:
    """Yield a row for each split, what is wrong, and what was read."""
    packed = "" if index.compression is None else f", {index.compression}"
    name = dataset_title(index.name, None, index.version)
    title = f"{name}: {index.file_format}{packed}, {index.data_dir}"
    yield paragraph(title, screen, style="bold")
    if index.splits:
        splits = [SplitLayout(split=one.split) for one in index.splits]
        yield table(_SPLITS, cells_of(_SPLITS, splits), screen)
        yield paragraph(_LEGEND, screen)
    yield from _faults(index, screen)
    yield paragraph(summary(index), screen)
    if index.whole and refs:
        command = shell_line("shardctl", "index", *refs, "-o", "layout.yaml")
        yield from to_paste("next: write the layout", command, screen)


def _faults(index: Index, screen: Screen) -> Iterator[str]:
    wrong = len(index.problems) + len(index.broken)
    if not wrong:
        return
    yield paragraph(f"{counted(wrong, 'problem')}:", screen, style="error")
    yield from paragraphs(screen, *(problem.text for problem in index.problems))
    if index.broken:
        yield table(_BROKEN, cells_of(_BROKEN, index.broken), screen, keep=_MAX_FILES)


def summary(index: Index) -> str:
    """Return in a line what was read, how long it took, and what was known."""
    known = counted(index.num_known, "file")
    if not index.num_counted:
        return f"no file read, counts of {known} are from the cache"
    before = f", counts of {index.num_known:,} from the cache" if index.num_known else ""
    read = human_bytes(index.num_bytes_read)
    return f"{counted(index.num_counted, 'file')} read in {index.seconds:.1f} s ({read}){before}"


def written(index: Index, path: str) -> Iterator[str]:
    """Yield what a layout file holds, and what is done with it next."""
    examples = sum(split.split.num_examples for split in index.splits)
    files = sum(split.split.num_shards for split in index.splits)
    splits = counted(len(index.splits), "split")
    yield f"wrote {path}: {counted(examples, 'example')} in {counted(files, 'file')} of {splits}"
    yield summary(index)
    if path.endswith((".yaml", ".yml", ".json")):
        yield "next: show it, or check later what changed since:"
        yield f"  {shell_line('shardctl', 'layout', '-d', path_word(path))}"
        yield f"  {shell_line('shardctl', 'index', '--check', path_word(path))}"
    else:
        yield f"{quoted(path)} is no layout for -d: it would have to end in .yaml, .yml or .json"


def index_rows(index: Index) -> RecordStream:
    """Return a row for each file, whole ones first."""
    rows: list[Sequence[object]] = []
    for indexed in index.splits:
        split = indexed.split
        paths = [path for part in split.files for path in part]
        sizes = split.shard_bytes or ()
        digests = split.shard_digests or (None,) * split.num_shards
        files = zip(paths, split.shard_lengths, sizes, indexed.versions, digests, strict=True)
        rows += ((split.name, *row, None, None, None, digest) for *row, digest in files)
    for file in index.broken:
        found, known = file.finding, (file.path, None, file.num_bytes, file.version)
        rows.append((found.split, *known, found.kind, found.reason, found.byte, None))
    return stream_of("split path num_examples num_bytes version kind reason byte digest", rows)
