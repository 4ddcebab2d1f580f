"""Counts that a sidecar says, of files that nothing here can unpack."""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.readers.index.counting.known import Known
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import FileContents
from shardctl.readers.records.sidecars.sidecars import Sidecars


class KnownOrSaid:
    """What is known of files, and then what their index says of shards that stay packed.

    num_said: files whose count was taken from their index. It is asked each time, and kept by
        nobody: another index would say it of the same file.
    """

    def __init__(self, known: Known, sidecars: Sidecars) -> None:
        self.num_said = 0
        self._known, self._sidecars = known, sidecars

    @property
    def warnings(self) -> Sequence[str]:
        """What went wrong, and how many counts nobody made."""
        if not self.num_said:
            return self._known.warnings
        said = f"{self.num_said} files are packed in a way that is not unpacked here: their counts"
        return (*self._known.warnings, f"{said} are those of index.json")

    def find(self, files: Sequence[FileToCount]) -> list[FileContents | None]:
        """Return what is known or said of files, None for each of which nothing is."""
        found = self._known.find(files)
        if not self._sidecars:
            return found
        return [
            self._said(task) if contents is None else contents
            for task, contents in zip(files, found, strict=True)
        ]

    def keep(self, task: FileToCount, contents: FileContents) -> None:
        """Note what a file holds."""
        self._known.keep(task, contents)

    def _said(self, task: FileToCount) -> FileContents | None:
        if task.file_format != "mds":
            return None
        count = self._sidecars.count_instead(task.file)
        if count is None:
            return None
        self.num_said += 1
        return FileContents(num_records=count, num_bytes=task.file.num_bytes)
