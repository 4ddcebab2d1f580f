"""Counts that need not be made again: of the user's cache folder, of a layout that is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from shardctl.errors import DatasetError
from shardctl.readers.index.counting.cache import KnownCounts, cache_folder
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import FileContents

if TYPE_CHECKING:
    from shardctl.readers.index.document import IndexedLayout


class Known(Protocol):
    """What is known of files, and what becomes known as they are counted."""

    @property
    def warnings(self) -> Sequence[str]:
        """A line for each thing that went wrong; counting goes on without it."""

    def find(self, files: Sequence[FileToCount]) -> list[FileContents | None]:
        """Return what is known of files, None for each of which nothing is."""

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a file holds."""


class _Both:
    """A cache, where one is to be used, and then a layout, where one is there."""

    def __init__(self, cache: KnownCounts | None, earlier: EarlierCounts | None) -> None:
        self._cache = cache
        self._earlier = earlier

    @property
    def warnings(self) -> Sequence[str]:
        return () if self._cache is None else tuple(self._cache.warnings)

    def find(self, files: Sequence[FileToCount]) -> list[FileContents | None]:
        found: list[FileContents | None] = [None] * len(files)
        if self._cache is not None:
            found = self._cache.find(files)
        if self._earlier is not None and None in found:
            return [
                self._of_earlier(task) if contents is None else contents
                for task, contents in zip(files, found, strict=True)
            ]
        return found

    def _of_earlier(self, task: FileToCount) -> FileContents | None:
        contents = None if self._earlier is None else self._earlier.find(task)
        if contents is not None:
            self.keep(task, contents)
        return contents

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        if self._cache is not None:
            self._cache.keep(task, contents)


@contextmanager
def known_counts(*, cache: bool, earlier: str | os.PathLike[str] | None) -> Iterator[Known]:
    """Open what is known: the user's cache, and a layout where a file of `index` is there."""
    layout = None if earlier is None else read_earlier(os.fspath(earlier))
    counts = None if layout is None else EarlierCounts(layout)
    if not cache:
        yield _Both(None, counts)
        return
    with KnownCounts(cache_folder(os.environ)) as database:
        yield _Both(database, counts)


# Counts of a layout that `index` wrote before, by the sizes and versions of its files.


class EarlierCounts:
    """What a layout says of its files; a file of another size or version is not known.

    A layout does not say whether contents were checked, so it serves those who count alone.
    """

    def __init__(self, layout: IndexedLayout) -> None:
        self._layout = layout
        # Hashes take a third of the memory of paths; what one finds is compared.
        self._places = {hash(path): place for place, path in enumerate(layout.paths())}

    def find(self, task: FileToCount) -> FileContents | None:
        """Return what the layout says of a file, None where it says nothing of it as it is."""
        layout = self._layout
        place = None if task.checksums else self._places.get(hash(task.file.path))
        if place is None or layout.dataset.file_format != task.file_format:
            return None
        kept = layout.file(place)
        if kept != task.file or not kept.version:
            return None
        return FileContents(
            num_records=layout.num_records(place),
            num_bytes=kept.num_bytes,
            compression=layout.compression if kept.num_bytes else None,
        )


def read_earlier(path: str) -> IndexedLayout | None:
    """Return the layout that is about to be replaced, None where no such file of ours is there."""
    from shardctl.readers.index.document import read_index_file

    if path == "-" or not os.path.isfile(path):
        return None
    try:
        return read_index_file(Path(path))
    except DatasetError:  # whatever it is, it is about to be replaced
        return None
