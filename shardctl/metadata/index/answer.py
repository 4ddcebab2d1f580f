"""What record files hold, and what is wrong with them: the answer of `index`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from shardctl.base.columns import Tabular
from shardctl.base.text import counted, in_short, quoted
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, FileFinding, FindingKind, Split
from shardctl.errors import DatasetError
from shardctl.records.contents import Compression
from shardctl.stores.store import StoredFile


@dataclass(frozen=True)
class BrokenFile:
    """A file that is not counted, with what is wrong first; `path` is relative to the root."""

    path: str
    split: str | None
    kind: str
    reason: str | None
    record: int | None
    byte: int | None
    num_bytes: int
    version: str
    found: int | None = None  # whole records before the damage, which a layout does not say

    @property
    def finding(self) -> FileFinding:
        """What is wrong with the file."""
        return FileFinding(
            filename=self.path.rpartition("/")[2],
            expected=None,
            found=self.found,
            reason=self.reason,
            kind=cast(FindingKind, self.kind),
            split=self.split,
            record=self.record,
            byte=self.byte,
        )


@dataclass(frozen=True, kw_only=True)
class IndexedSplit:
    """The whole files of a split in shard order, and their versions; see `StoredFile`."""

    split: Split
    versions: Sequence[str]
    num_broken: int = 0


@dataclass(frozen=True, kw_only=True)
class Index(Tabular):
    """What record files hold, and what is wrong with them.

    splits: in the order of their names; whole files alone.
    broken: with `keep_going` all broken files, else the first; problems are those of the names.
    paths: what was asked for; globs: of splits that were named by hand.
    keep_going: whether what is whole is an answer where not all is.
    num_known: files whose counts were known; `num_counted` were read, `num_bytes_read` of them.
    num_agreed: files that are as sidecars say, those of the names `said_by` and others like them.
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
    num_agreed: int = 0
    said_by: tuple[str, ...] = ()
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


# Which split do record files belong to, and in which order, by their names alone?


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrangedSplit:
    """The files of a split in shard order."""

    name: str
    files: Sequence[StoredFile]


@dataclass(frozen=True, kw_only=True, slots=True)
class NameProblem:
    """Shards that are missing between others, or there twice; `text` is one line."""

    kind: str  # "gap", "duplicate", "wrong-count", "mixed"
    split: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrangement:
    """Files as splits, in shard order.

    root: the folder that all paths are below; it is the layout's data_dir.
    file_format: as `FORMATS` names it, None where the names do not tell.
    sidecars: files that are no record files and say something of them (`index.json`, `x.index`).
    notes: what a reader of the answer should know.
    """

    root: str
    splits: tuple[ArrangedSplit, ...]
    name: str | None = None
    version: str | None = None
    file_format: str | None = None
    problems: tuple[NameProblem, ...] = ()
    sidecars: Sequence[StoredFile] = ()
    notes: tuple[str, ...] = ()
