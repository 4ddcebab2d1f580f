"""Record files without metadata as a dataset, named by a reference: `-d 'data/*.tfrecord'`."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from shardctl.base.text import path_word, public_url, shell_line
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, FileFinding, FindingKind, Split
from shardctl.errors import DatasetError, UsageError
from shardctl.stores.stores import store_of

if TYPE_CHECKING:
    from shardctl.metadata.index.index import Index

_LOOKED_AT = 10_000  # files of a folder among which one of records is looked for


# How record files are read that a reference means: their counts are taken from the user's cache
# folder and kept there, see `index`; all are counted anew; or, for what must be quick, a TAB, the
# splits are found by names, and nothing in them is counted.
Counting = Literal["cached", "anew", "names"]

_NAMES_DAMAGED: ContextVar[bool] = ContextVar("names_damaged", default=False)


@contextmanager
def naming_damaged() -> Iterator[None]:
    """Read record files that are damaged too: a dataset names them, in place of an error.

    Of one file that is named, shards beside it that are not read are nothing wrong.
    """
    token = _NAMES_DAMAGED.set(True)
    try:
        yield
    finally:
        _NAMES_DAMAGED.reset(token)


def looks_like_records(name: str) -> bool:
    """Return whether a file of this name is one of records, as far as names tell."""
    from shardctl.metadata.index.name_words import FileKind, file_kind

    return file_kind(name) in (FileKind.RECORDS, FileKind.SHARD)


def holds_record_files(folder: str) -> bool:
    """Return whether record files lie right in a folder, by their names."""
    try:
        files = itertools.islice(store_of(folder).scan(folder), _LOOKED_AT)
        return any(looks_like_records(file.path.rpartition("/")[2]) for file in files)
    except DatasetError:  # it is refused where it is read
        return False


def is_record_file(path: str) -> bool:
    """Return whether a file is one of records, by its name or its first bytes."""
    from shardctl.metadata.index.name_words import FileKind, file_kind
    from shardctl.records.read_file import format_of

    name = path.rpartition("/")[2]
    # Names first: only a name that does not tell is worth a look into the file.
    if looks_like_records(name) or file_kind(name) in (FileKind.OTHER, FileKind.SIDECAR):
        return looks_like_records(name)
    file = store_of(path).status(path)
    return file is not None and format_of(file) is not None


def read_bare(path: str, counting: Counting = "cached") -> Dataset:
    """Return the dataset of the record files that a path means; `path` is whole, or a URL.

    Raises:
        DatasetError: there are none, one is broken, or their names leave gaps; the message says how
            to continue without them.
        MissingDependencyError: a package that the format or the place needs is not installed.
    """
    path = public_url(path)  # it is shown in messages; the store knows the rest
    if counting == "names":
        return _uncounted(path)
    from shardctl.base.progress import WATCHING
    from shardctl.metadata.index.index import index

    try:
        # With `keep_going` what is whole is an answer; damaged files are listed in the dataset.
        names_damaged = _NAMES_DAMAGED.get()
        found = index(
            path, cache=counting == "cached", keep_going=names_damaged, watch=WATCHING.get()
        )
    except (DatasetError, UsageError) as error:
        said = str(error)
        if re.search(r"\B--[a-z]", said):  # an option of `index`
            said += "; shardctl index takes it, and writes a layout.yaml for here"
        raise DatasetError(said) from error
    damaged = tuple(_damaged(found, path)) if names_damaged else ()
    for fault in () if names_damaged else found.faults():
        words = ("shardctl", "index", path_word(path), "--keep-going", "-o", "layout.yaml")
        raise DatasetError(f"{fault}; `{shell_line(*words)}` describes the others")
    dataset = _uncounted(path) if damaged and not found.splits else found.dataset
    known = {split.name for split in dataset.splits}
    # A split of which no file is whole is one all the same, else its lack would not show.
    names = dict.fromkeys(each.split for each in damaged if each.split not in known)
    empty = tuple(Split(name=name, shard_lengths=()) for name in names if name is not None)
    splits = (*dataset.splits, *empty)
    return replace(dataset, splits=splits, reference=path, notes=found.warnings, damaged=damaged)


def _damaged(found: Index, path: str) -> Iterator[FileFinding]:
    for file in found.broken:
        yield file.finding
    kinds: dict[str, FindingKind] = {"gap": "missing", "duplicate": "extra"}
    # Of one named file gaps beside it are no fault, see `naming_damaged`.
    for problem in found.problems if found.num_files > 1 else ():
        yield FileFinding(
            filename=os.path.basename(path),
            reason=problem.text,
            kind=kinds.get(problem.kind, "wrong-count"),
            split=problem.split,
        )


def _uncounted(path: str) -> Dataset:
    from shardctl.metadata.index.listing import list_files
    from shardctl.metadata.index.splits_by_name import arrange

    arranged = arrange(list_files([path]))
    splits = tuple(Split(name=split.name, shard_lengths=()) for split in arranged.splits)
    return Dataset(
        name=arranged.name or os.path.basename(path), splits=splits, origin=COUNTED_FILES
    )
