"""Record files without metadata become a dataset: found, put in order, counted; its layout file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular, picked
from shardctl.base.phrase import option, refused
from shardctl.base.progress import Watch
from shardctl.base.text import choices, counted, in_short, public_url, quoted
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.files.documents import Document
from shardctl.files.fields import files_field
from shardctl.metadata.index.count import Counts, count_files
from shardctl.metadata.index.listing import list_files
from shardctl.metadata.index.planned_metadata import patterned
from shardctl.metadata.index.sidecars import Sidecars
from shardctl.metadata.index.splits_by_name import Arrangement, NameProblem, arrange
from shardctl.metadata.index.workers import RunnerLike, checked_jobs
from shardctl.metadata.layouts import BrokenFile
from shardctl.records.contents import Compression, Damage, FileContents
from shardctl.records.read_file import FORMATS, format_of
from shardctl.saved.head import head
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import absolute, is_remote

_LOOKED_AT = 16  # files that may tell the format of all


@dataclass(frozen=True, kw_only=True)
class IndexedSplit:
    """The whole files of a split in shard order, and their versions; see `StoredFile`."""

    split: Split
    versions: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Index(Tabular):
    """What record files hold, and what is wrong with them.

    splits: in the order of their names; whole files alone.
    broken: with `keep_going` all broken files, else the first; problems are those of the names.
    paths: what was asked for; globs: of splits that were named by hand.
    keep_going: whether what is whole is an answer where not all is.
    num_known: files whose counts were known; `num_counted` were read, `num_bytes_read` of them.
    """

    name: str
    version: str | None
    file_format: str
    compression: Compression | None
    data_dir: str
    splits: tuple[IndexedSplit, ...]
    broken: tuple[BrokenFile, ...]
    problems: tuple[NameProblem, ...]
    keep_going: bool
    num_files: int
    num_known: int
    num_counted: int
    num_bytes_read: int
    seconds: float = field(compare=False)
    paths: tuple[str, ...] = ()
    globs: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether no file is broken, missing between others or there twice."""
        return not self.broken and not self.problems

    @property
    def dataset(self) -> Dataset:
        """The files as a dataset; after `keep_going` without those that are broken.

        Raises:
            DatasetError: the first thing that is wrong.
        """
        if not self.whole and not self.keep_going:
            raise DatasetError(next(self.faults()))
        if not self.splits:
            raise DatasetError(f"no whole record file in {quoted(self.data_dir, 200)}")
        return Dataset(
            name=self.name,
            version=self.version,
            file_format=self.file_format,
            compression=self.compression,
            data_dir=self.data_dir,
            splits=tuple(split.split for split in self.splits),
            origin=COUNTED_FILES,
        )

    def faults(self) -> Iterator[str]:
        """Yield a line for each thing that is wrong."""
        for problem in self.problems:
            yield problem.text
        for file in self.broken:
            yield f"{quoted(file.path, 200)}: {file.reason}"

    def __repr__(self) -> str:
        whole = sum(split.split.num_shards for split in self.splits)
        examples = sum(split.split.num_examples for split in self.splits)
        wrong = len(self.broken) + len(self.problems)
        said = (counted(wrong, "problem"),) if wrong else ()
        return in_short(
            self, self.name, counted(examples, "example"), counted(whole, "file"), *said
        )


@checked
def index(
    *paths: str | os.PathLike[str],
    split: Mapping[str, str | os.PathLike[str]] | None = None,
    name: str | None = None,
    file_format: str | None = None,
    checksums: bool = False,
    digest: bool = False,
    keep_going: bool = False,
    jobs: int | None = None,
    cache: bool = True,
    runner: RunnerLike | None = None,
    watch: Watch | None = None,
) -> Index:
    """Count the examples of record files without metadata, from framing or footers alone.

    Args:
        paths: files, folders, globs, `prefix@1024` or `prefix@*`, on this machine or remote.
        split: the files of each split by a glob, where their names do not say it.
        name: the dataset's name, else what the files' names begin with, or their folder's.
        file_format: of files whose names do not tell it.
        checksums: read the contents too, and compare them with their checksums.
        digest: read all bytes of each file, and keep their SHA-256: `verify_files` finds every byte
            that changed since.
        keep_going: count all that is whole, whatever is broken or missing.
        jobs: how many processes count, without `runner`; else as many as there are processors.
        cache: take counts that are known, of files of the same size and time of change, from the
            user's cache folder, and keep new ones there.
        runner: what counts the files instead of processes of this machine.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        An Index; its `dataset` is what every function takes. What is wrong with files is in
        `broken` and `problems`; without `keep_going` counting ends at the first broken file.

    Raises:
        DatasetError: there are no such files, or names that cannot be put in order.
        MissingDependencyError: a package that the format or the place needs is not installed.

    >>> import shardctl
    >>> found = shardctl.index("data/train-*.tfrecord")  # doctest: +SKIP
    >>> shardctl.plan(found.dataset, "train[:10%]")  # doctest: +SKIP
    """
    jobs = checked_jobs(jobs, runner)
    if split is not None and not split:
        raise UsageError("--split: no split is named; without it the names of files tell")
    by_hand = None if split is None else {name: os.fspath(glob) for name, glob in split.items()}
    begin = time.monotonic()
    wanted = tuple(public_url(os.fspath(path)) for path in paths)
    note_listed = None if watch is None else lambda found: watch("files found", found, 0)
    listing = list_files(wanted, watch=note_listed)
    arranged = arrange(listing, splits=by_hand, name=name)
    form = _format_of(arranged, file_format)
    files = [file for split in arranged.splits for file in split.files]
    # Parallel to them: the split of each file.
    split_of = [split.name for split in arranged.splits for _ in split.files]
    counts = Counts(contents=[None] * len(files))
    problems, warnings = arranged.problems, arranged.notes
    # Names that leave gaps are an error already: nothing is counted for it.
    if keep_going or not arranged.problems:
        sidecars = Sidecars(arranged.sidecars)
        counts = count_files(
            files,
            form,
            cache=cache,
            checksums=checksums,
            digest=digest,
            runner=runner,
            jobs=jobs,
            keep_going=keep_going,
            watch=watch,
        )
        stated = _disagreements(sidecars, files, split_of, counts)
        problems += tuple(
            NameProblem(kind="sidecar", split=name, text=quoted(_below(arranged, path), 200) + text)
            for name, path, text in stated
        )
        warnings += (*counts.warnings, *sidecars.problems)
    # First, since it marks files as broken, which the splits then leave out.
    packed = _compression(files, counts)
    whole = _splits(arranged, files, counts) if keep_going or not counts.broken else ()
    # Without keep_going later ones may not have been looked at: the first is all that is certain.
    broken = sorted(counts.broken)[: None if keep_going else 1]
    return Index(
        name=arranged.name or os.path.basename(arranged.root.rstrip("/")) or "dataset",
        version=arranged.version,
        file_format=form,
        compression=packed,
        data_dir=arranged.root,
        splits=tuple(found for found in whole if found.split.num_shards),
        broken=tuple(
            _broken(arranged, files[at], split_of[at], counts.broken[at]) for at in broken
        ),
        problems=problems,
        keep_going=keep_going,
        num_files=len(files),
        num_known=counts.num_known,
        num_counted=counts.num_counted,
        num_bytes_read=counts.num_bytes_read,
        seconds=time.monotonic() - begin,
        paths=wanted,
        globs=tuple((by_hand or {}).items()),
        warnings=warnings,
    )


def _format_of(arranged: Arrangement, given: str | None) -> str:
    """Return the format of files: as it is given, by their names, or by how some begin."""
    if given is not None:
        if given not in FORMATS:
            formats = choices(FORMATS, len(FORMATS))
            raise refused("{file_format!}: choose from {}", formats, file_format=given)
        return given
    if arranged.file_format is not None:
        return arranged.file_format
    files = [file for split in arranged.splits for file in split.files]
    # A compressed file that holds nothing does not tell.
    first = list(islice((file for file in files if file.num_bytes), _LOOKED_AT))
    found = next(filter(None, map(format_of, first)), None)
    if found is None:
        path = quoted((first or files)[0].path, 200)
        unknown = "its name does not tell its format, and it begins as no TFRecord file"
        raise DatasetError(f"{path}: {unknown}; give {option('file_format')}")
    return found


# The files of an arrangement when they are counted: splits, what is broken, what disagrees.


def _below(arranged: Arrangement, path: str) -> str:
    return path.removeprefix(arranged.root.rstrip("/") + "/")


def _disagreements(
    sidecars: Sidecars, files: Sequence[StoredFile], split_of: Sequence[str], counts: Counts
) -> Iterator[tuple[str, str, str]]:
    """Yield where whole files are not as files beside them say, and which are not there."""
    for split, file, contents in zip(split_of, files, counts.contents, strict=True):
        text = contents and sidecars.disagreement(file, contents.num_records or 0)
        if text:
            yield split, file.path, f": {text}"
    for path in sidecars.absent([file.path for file in files]):
        yield split_of[0], path, " is not there"


def _compression(files: Sequence[StoredFile], counts: Counts) -> Compression | None:
    """Return how the files are compressed; those that are unlike the first are broken.

    tf.data reads all files of a dataset in one way; an empty one it reads in each.
    """
    first, like = None, None
    for at, contents in enumerate(counts.contents):
        # Broken, or a plain file of no records, which can be read in any way.
        if contents is None or not (contents.num_records or contents.compression):
            continue
        if first is None:
            first, like = files[at].path, contents.compression
        elif contents.compression != like:
            counts.fail(at, _unlike(contents.compression, like, first))
    return like


def _splits(
    arranged: Arrangement, files: Sequence[StoredFile], counts: Counts
) -> Iterator[IndexedSplit]:
    first, root = 0, arranged.root
    for one in arranged.splits:
        # Files lie split after split, so a split is a stretch of the list.
        stop = first + len(one.files)
        whole = [
            (at, files[at], contents.num_records or 0, contents.digest)
            for at, contents in enumerate(counts.contents[first:stop], first)
            if contents is not None
        ]
        sizes = tuple(file.num_bytes for _, file, *_ in whole)
        names = tuple(_below(arranged, file.path) for _, file, *_ in whole)
        digests = tuple(digest for *_, digest in whole)
        # A pattern where the names follow one: a layout of a few lines for a million files.
        parts = patterned(names, data_dir=root) or ShardFiles(
            data_dir=root, num_shards=len(names), names=names
        )
        yield IndexedSplit(
            split=Split(
                name=one.name,
                shard_lengths=PackedInts(length for _, _, length, _ in whole),
                files=(parts,),
                num_bytes=sum(sizes),
                shard_bytes=sizes,
                shard_digests=digests if any(digests) else None,
            ),
            versions=["" if at in counts.unsettled else file.version for at, file, *_ in whole],
        )
        first = stop


def _broken(arranged: Arrangement, file: StoredFile, split: str, found: FileContents) -> BrokenFile:
    damage = found.damage or Damage(kind="broken", text="it does not say what it holds")
    what = (split, damage.kind, damage.text, damage.record, damage.byte)
    path = _below(arranged, file.path)
    return BrokenFile(path, *what, file.num_bytes, file.version, found.num_records)


def _unlike(found: Compression | None, like: Compression | None, first: str) -> FileContents:
    said = "is not compressed" if found is None else f"is compressed with {found}"
    other = "is not" if like is None else f"is compressed with {like}"
    text = f"{said}, and {quoted(os.path.basename(first), 200)} {other}; tf.data reads one kind"
    return FileContents(num_records=None, damage=Damage(kind="compressed", text=text))


# The layout file that it is written as: a dataset, and the size and version of each of its files.


def index_document(index: Index, beside: str | None = None) -> Document:
    """Return the document of an index; of a file in the folder `beside` its data_dir is relative.

    It is the same whoever counted: nothing in it tells of the run.
    """
    dataset = index.dataset
    document = head("index", dataset.identity)
    # Relative where possible, so that files and layout may move together.
    document["dataset"]["data_dir"] = _relative(index.data_dir, beside)
    document["ordered"] = dataset.ordered
    if index.compression is not None:
        document["compression"] = index.compression
    document["paths"] = [_inside(path, index.data_dir, beside) for path in index.paths]
    if index.globs:
        root = f"{index.data_dir.rstrip('/')}/"  # a glob below it goes along with files that move
        document["globs"] = {name: glob.removeprefix(root) for name, glob in index.globs}
    document["splits"] = [_split(split, index.data_dir) for split in index.splits]
    if index.keep_going:
        document["problems"] = [
            {"kind": problem.kind, "split": problem.split, "reason": problem.text}
            for problem in index.problems
        ]
        document["broken"] = [asdict(file) for file in index.broken]
        for file in document["broken"]:
            # Not part of the file format: only the answer in memory has it.
            del file["found"]
    return document


def check_yaml(index: Index) -> None:
    """Refuse names that YAML cannot say: JSON has an escape for bytes that are no UTF-8.

    Raises:
        UsageError: the name of a file, or of the folder, is no UTF-8.
    """
    parts = (part for indexed in index.splits for part in indexed.split.files)
    # Of a pattern one name stands for all: they differ in digits alone.
    names = chain.from_iterable(part.names or part[:1] for part in parts)
    for name in chain((index.data_dir,), names, (file.path for file in index.broken)):
        if not name.isascii() and re.search("[\ud800-\udfff]", name):
            raise UsageError(
                f"{quoted(name, 200)} is no UTF-8, so that YAML cannot say it; JSON can: write a "
                "file that ends in .json"
            )


def _inside(path: str, root: str, beside: str | None) -> str:
    """Return a path as it is said from a folder: relative where it lies in there.

    So it is too where both lie in the folder `beside`, which may move with all that is in it.
    """
    whole = path if is_remote(path) else absolute(path)
    if whole == root:
        return "."
    if beside is not None and not any(map(is_remote, (whole, root, beside))):
        # Both below the folder of the layout file, so all three may be moved together.
        inside = (os.path.relpath(path, os.path.abspath(beside)) for path in (whole, root))
        if all(path.split(os.sep)[0] != ".." for path in inside):
            return os.path.relpath(whole, root)
    return whole.removeprefix(f"{root.rstrip('/')}/")


def _relative(data_dir: str, beside: str | None) -> str:
    """Return a folder as a file in another says it: relative where it lies in there."""
    if beside is None or is_remote(data_dir) or is_remote(beside):
        return data_dir
    inside = os.path.relpath(data_dir, os.path.abspath(beside))
    return data_dir if inside.split(os.sep)[0] == ".." else inside


def _split(indexed: IndexedSplit, folder: str) -> Document:
    split = indexed.split
    digests = split.shard_digests
    return {
        **picked(split, "name num_examples num_shards num_bytes"),
        "shard_lengths": list(split.shard_lengths),
        "files": files_field(split.files, folder),
        "shard_bytes": list(split.shard_bytes or ()),
        "versions": indexed.versions,
        **({} if digests is None else {"digests": list(digests)}),
    }
