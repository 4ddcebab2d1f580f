"""Where files are counted: processes of this machine, or a Beam pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

from shardctl.base.arguments import made_kind
from shardctl.records.contents import FileContents, Told, untold
from shardctl.stores.store import StoredFile


@dataclass(frozen=True, kw_only=True, slots=True)
class FileToCount:
    """A file, its format as `FORMATS` names it, and whether its contents are checked too.

    index: its place among all files that are to be counted; answers come in any order.
    listed: whether `file` is as a listing showed it; else whatever is at its path is counted.
    """

    index: int
    file: StoredFile
    file_format: str
    checksums: bool = False
    listed: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedFile:
    """What a file holds; both parts can be pickled."""

    index: int
    contents: FileContents


def count_one(task: FileToCount, told: Told = untold) -> CountedFile:
    """Return what one file holds; the one way in which every runner counts.

    Raises:
        MissingDependencyError: a package that the format or the place needs is not installed.
    """
    from shardctl.records.read_file import count_file, read_record_file

    if task.listed:
        contents = count_file(task.file, task.file_format, checksums=task.checksums, told=told)
    else:
        path, checksums = task.file.path, task.checksums
        contents = read_record_file(path, task.file_format, checksums=checksums, told=told)
    return CountedFile(index=task.index, contents=contents)


@runtime_checkable
class Runner(Protocol):
    """Counts many files at once, in bounded memory."""

    def count(self, files: Iterable[FileToCount]) -> Iterator[CountedFile]:
        """Yield what each file holds, in the order in which they are done.

        Files are asked for as room for them comes, in the thread that asks for answers. An end of
        the asking, or an interrupt, ends the work.
        """


def _made(value: Any) -> Runner | None:
    if isinstance(value, Sequence):  # a text or a list, which have a method `count` as well
        return None
    return value if isinstance(value, Runner) else None


RunnerLike = Annotated[
    Runner, made_kind(_made, needed="a runner, as beam_runner()", several="runners")
]
