"""Counts that need not be made again: of the user's cache folder, of a layout that is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from shardctl.readers.index.counting.cache import KnownCounts
from shardctl.readers.index.counting.cache_folder import cache_folder
from shardctl.readers.index.counting.earlier import EarlierCounts, read_earlier
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import FileContents


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
