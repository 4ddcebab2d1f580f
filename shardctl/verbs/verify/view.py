"""What TensorFlow really read, compared with what was predicted: as text, document and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.base.columns import Records, RecordStream, picked, records_of, stream_of
from shardctl.base.text import choices, counted
from shardctl.base.tfds_rules import POSITIONS
from shardctl.dataset.dataset import Dataset, FileFinding
from shardctl.draw.step_rows import heading, reading_line
from shardctl.draw.tables import Screen, cells_of, columns, paragraph, paragraphs, table
from shardctl.files.documents import Document
from shardctl.saved.head import head
from shardctl.verbs.resume.view import promise_lines
from shardctl.verbs.verify.answer import FirstDifference, Verification
from shardctl.verbs.verify.verify_files import FilesVerification

# What the files of a dataset hold, and what is wrong with them: as text, document and CSV.

_SPLITS = columns("<name=split num_examples=examples num_records=records num_files=files")
_SPLITS += columns("num_files_read=read_whole ~num_bytes=bytes ~num_bytes_read=bytes_read")
_CHECKED = {
    "checksums": "by the checksums of all their records",
    "decoded": "by decoding all their rows",
    "digest": "by the digest of all their bytes",
    "framing": "by their framing alone",
}


def verify_files_table(found: FilesVerification, screen: Screen) -> Iterator[str]:
    """Yield what was read of each split, how it was checked, and the files that are damaged."""
    dataset = found.dataset
    where = dataset.data_dir or dataset.origin
    yield paragraph(f"{dataset.title}: {dataset.file_format}, {where}", screen, style="bold")
    yield table(_SPLITS, cells_of(_SPLITS, found.splits), screen)
    for way, count in found.checked.items():
        of = choices(split.name for split in found.splits if way in split.checked)
        where = f" ({of})" if len(found.checked) > 1 else ""
        yield paragraph(f"{counted(count, 'file')} checked {_CHECKED[way]}{where}", screen)
    if found.findings:
        yield paragraph(f"{counted(len(found.findings), 'problem')}:", screen, style="error")
        yield files_table(dataset, found.findings, screen)
    else:
        yield paragraph(f"every file holds {what_is_told(dataset)}", screen)
    yield from paragraphs(screen, *(f"note: {note}" for note in found.notes))


def files_table(dataset: Dataset, findings: Sequence[FileFinding], screen: Screen) -> str:
    """Return a table of files that do not hold what they should."""
    told = "counted" if dataset.is_counted else "metadata"
    found = columns(f"!filename=file expected={told} found=file_holds <reason=problem")
    return table(found, cells_of(found, findings), screen, keep=_MAX_FILES)


def what_is_told(dataset: Dataset) -> str:
    """Return what files should hold, in words: files that were counted have no metadata."""
    return "what was counted" if dataset.is_counted else "what the metadata says"


def verify_files_document(found: FilesVerification) -> Document:
    """Return the answer as a document; `files` are those with a problem."""
    return {
        **head("verify", found.dataset.identity),
        **picked(found, "equal num_files splits checked files=findings notes"),
    }


def verify_files_rows(found: FilesVerification) -> Records:
    """Return the record of each problem."""
    fields = "split filename kind expected found record byte reason"
    return records_of(fields, found.findings)


_MAX_FILES = 20  # files that a table names on a terminal, and promises
_LIBRARIES = {"tensorflow": "TensorFlow", "tensorflow_datasets": "TFDS"}
_DIFFERENCE = columns("<= id <tfds__id")


def verify_table(verification: Verification, screen: Screen) -> Iterator[str]:
    """Yield the pipeline, whether it reads as predicted, and what does not."""
    title = reading_line(verification.spec, verification.dataset, verification.pipeline)
    yield from heading(title, verification.assumptions, screen, "bold")
    first = verification.first_difference
    yield paragraph(_order_line(verification), screen, style="" if first is None else "error")
    promises = promise_lines(verification.broken, _MAX_FILES, screen)
    unequal = (f"differs: {line}" for line in verification.unequal)
    yield from paragraphs(screen, *promises, *unequal, style="error")
    # Only at an exact position are there two examples to show side by side.
    if first is not None and first.stop is None:
        yield table(_DIFFERENCE, _sides(first), screen)
        if first.reason is not None:
            versions = verification.versions
            library = "TensorFlow" if "tensorflow" in versions else next(iter(versions))
            yield paragraph(f"{library} says: {first.reason}", screen)
    yield paragraph(_reader_line(verification), screen)
    if verification.written_with is not None:
        wrote = " and ".join(
            f"{_LIBRARIES.get(name, name)} {version}"
            for name, version in verification.written_with.items()
            # The version of shardctl's own rules is no library.
            if name != "version"
        )
        yield paragraph(f"{verification.snapshot} was written for {wrote}", screen)
    if verification.num_files:
        wrong = verification.files
        yield paragraph(_files_line(verification), screen, style="error" if wrong else "")
        yield files_table(verification.dataset, wrong, screen) if wrong else ""
    yield from paragraphs(screen, *(f"note: {note}" for note in verification.notes))


def _order_line(verification: Verification) -> str:
    first, read = verification.first_difference, verification.read
    if first is not None:
        on_host = "" if first.host is None else f" of host {first.host}"
        where = f"at position {first.position:,}"
        if first.stop is not None:
            where = f"somewhere in positions {first.position:,} to {first.stop - 1:,}"
        order = "" if verification.snapshot is None else f" from {verification.snapshot}"
        return f"differs{order} {where}{on_host}, read from {first.read}"
    if verification.num_examples == 0:
        return "nothing is compared: the order has no examples"
    windows = [window for window in verification.windows if window.read == read]
    num_read = sum(window.stop - window.start for window in windows)
    # Long orders are read partly from files, partly over ranges of indexes.
    others = verification.num_checked - num_read
    expected = verification.snapshot or "predicted"
    place = "its source" if verification.dataset.file_format == POSITIONS else read
    total = verification.num_examples
    size = "an endless order" if total is None else counted(total, "example")
    line = f"as {expected}: {num_read:,} of {size}, read from {place}"
    line += f" in {len(windows)} windows" if len(windows) > 1 else ""
    return f"{line}; and {others:,} from the start over index ranges" if others else line


def _reader_line(verification: Verification) -> str:
    versions = verification.versions
    if "tensorflow" not in versions:
        return "read by " + ", ".join(f"{name} {version}" for name, version in versions.items())
    of_files = verification.read == "files"
    tfds = versions.get("tensorflow_datasets") if of_files else None
    tfds = f"TFDS {tfds} and " if tfds else ""
    return f"read by {tfds}TensorFlow {versions['tensorflow']}"


def _files_line(verification: Verification) -> str:
    num_wrong = sum(file.num_files for file in verification.files)
    if not num_wrong:
        verb = "holds" if verification.num_files == 1 else "hold"
        told = what_is_told(verification.dataset)
        return f"{counted(verification.num_files, 'file')} {verb} {told}"
    as_told = "they were counted" if verification.dataset.is_counted else "the metadata says"
    return f"{num_wrong:,} of {counted(verification.num_files, 'file')} not as {as_told}:"


def _sides(first: FirstDifference) -> Iterator[tuple[str, str, str]]:
    yield "expected", _id(first.expected), first.expected_tfds_id or ""
    # What the metadata does not know has no id.
    # Then `found` is TFDS's own text id, which stands in the next column.
    unknown = first.found is not None and first.found == first.found_tfds_id
    yield "found", "(none)" if unknown else _id(first.found), first.found_tfds_id or ""


def _id(value: int | str | None) -> str:
    return "(end)" if value is None else str(value)


def verify_document(verification: Verification) -> Document:
    """Return the answer as a document; `found` is null where the pipeline ended or gave up."""
    written = verification.written_with
    fields = "spec plan pipeline num_examples read checked=windows num_checked equal"
    more = [name for name in ("broken", "unequal") if getattr(verification, name)]
    return {
        **head("verify", verification.dataset.identity, assumptions=verification.assumptions),
        **picked(verification, " ".join([fields, "first_difference", *more, "num_files files"])),
        **verification.versions,
        **({"snapshot": verification.snapshot, "written_with": dict(written)} if written else {}),
        **picked(verification, "notes"),
    }


def verify_rows(verification: Verification) -> RecordStream:
    """Return a row for each thing that differs: the position of the order, promises, files."""
    first = verification.first_difference
    ordered = (first,) if first is not None else ()
    rows = [
        *(("order", one.position, one.expected, one.found, one.reason) for one in ordered),
        *(("promise", one.name, one.promised, one.found, None) for one in verification.broken),
        *(("unequal", None, None, None, line) for line in verification.unequal),
        *(("file", f.filename, f.expected, f.found, f.reason) for f in verification.files),
    ]
    return stream_of("kind where expected found reason", rows)
