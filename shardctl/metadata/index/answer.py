"""The answer of `index`: what record files hold, what is wrong with them; and its layout file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain

from shardctl.base.columns import Tabular, picked
from shardctl.base.text import counted, in_short, quoted
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.errors import DatasetError, UsageError
from shardctl.files.documents import Document
from shardctl.files.fields import files_field
from shardctl.metadata.index.names import NameProblem
from shardctl.metadata.layouts import BrokenFile
from shardctl.records.contents import Compression
from shardctl.saved.head import head
from shardctl.stores.stores import absolute, is_remote


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
