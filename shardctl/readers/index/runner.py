"""Where files are counted: processes of this machine, or a Beam pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from shardctl.files.stores.store import StoredFile
from shardctl.readers.records.contents import FileContents


@dataclass(frozen=True, kw_only=True, slots=True)
class FileToCount:
    """A file, its format as `FORMATS` names it, and whether its contents are checked too.

    index: its place among all files that are to be counted; answers come in any order.
    """

    index: int
    file: StoredFile
    file_format: str
    checksums: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedFile:
    """What a file holds; both parts can be pickled."""

    index: int
    contents: FileContents


@runtime_checkable
class Runner(Protocol):
    """Counts many files at once, in bounded memory."""

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, in the order in which they are done.

        Files are asked for as room for them comes, in the thread that asks for answers. An end of
        the asking, or an interrupt, ends the work.
        """
