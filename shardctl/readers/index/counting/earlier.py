"""Counts of a layout that `index` wrote before, by the sizes and versions of its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shardctl.errors import DatasetError
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import FileContents

if TYPE_CHECKING:
    from shardctl.readers.index.document import IndexedLayout


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
