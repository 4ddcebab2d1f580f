"""Files as listings show them, kept as columns, so that a million of them take little memory."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from shardctl.core.dataset.packed_ints import PackedInts
from shardctl.core.text import counted
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import is_remote


class StoredFiles(Sequence[StoredFile]):
    """Files in some order; each is made anew whenever it is asked for, and not kept.

    Slices, and what `chosen` returns, share the columns.

    >>> files = StoredFiles.of([StoredFile(path="/d/b", num_bytes=2), StoredFile(path="/d/a",
    ...     num_bytes=1, version="mtime:5")])
    >>> files.chosen([1, 0])[0], len(files)
    (StoredFile(path='/d/a', num_bytes=1, version='mtime:5'), 2)
    """

    __slots__ = ("_columns", "_places")

    def __init__(self, columns: FileColumns, places: Sequence[int] | None = None) -> None:
        self._columns = columns
        self._places = range(len(columns)) if places is None else places

    @classmethod
    def of(cls, files: Iterable[StoredFile]) -> StoredFiles:
        """Return files packed, themselves where they are."""
        if isinstance(files, cls):
            return files
        columns = FileColumns()
        for file in files:
            columns.add(file)
        return cls(columns)

    def chosen(self, places: Iterable[int]) -> StoredFiles:
        """Return the files at some places of these, in their order."""
        if isinstance(self._places, range) and self._places == range(len(self._columns)):
            return StoredFiles(self._columns, PackedInts(places))
        return StoredFiles(self._columns, PackedInts(self._places[place] for place in places))

    def path(self, index: int) -> str:
        """Return the path of one file."""
        return self._columns.path(self._places[index])

    def paths(self) -> Iterator[str]:
        """Yield the paths of all."""
        return map(self._columns.path, self._places)

    def folders_and_names(self) -> Iterator[tuple[int, str]]:
        """Yield of each file the number of its folder, see `folder`, and its name there."""
        return map(self._columns.folder_and_name, self._places)

    def folder(self, number: int) -> str:
        """Return a folder by its number, with the slash at its end."""
        return self._columns.folders[number]

    @property
    def num_bytes(self) -> int:
        """The bytes of all files together."""
        return sum(map(self._columns.sizes.__getitem__, self._places))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[StoredFile]:
        return map(self._columns.file, self._places)

    @overload
    def __getitem__(self, index: int) -> StoredFile: ...
    @overload
    def __getitem__(self, index: slice) -> StoredFiles: ...
    def __getitem__(self, index: int | slice) -> StoredFile | StoredFiles:
        if isinstance(index, slice):
            return StoredFiles(self._columns, self._places[index])
        return self._columns.file(self._places[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list, and as long to compare

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'stored file')}>"


class FileColumns:
    """Columns of files that grow: folder, name, size and version of each."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.sizes = array("q")
        self._numbers: dict[str, int] = {}
        self._folder_of = array("i")
        self._names = _Texts()
        self._versions = _Texts()

    def add(self, file: StoredFile) -> None:
        """Put a file behind the others."""
        folder, name = split_path(file.path)
        number = self._numbers.get(folder)
        if number is None:
            number = self._numbers[folder] = len(self.folders)
            self.folders.append(folder)
        self._folder_of.append(number)
        self._names.add(name)
        self.sizes.append(file.num_bytes)
        self._versions.add(file.version)

    def __len__(self) -> int:
        return len(self.sizes)

    def file(self, place: int) -> StoredFile:
        """Return the file at a place."""
        path, size = self.path(place), self.sizes[place]
        return StoredFile(path=path, num_bytes=size, version=self._versions[place])

    def path(self, place: int) -> str:
        """Return the path of the file at a place."""
        return self.folders[self._folder_of[place]] + self._names[place]

    def folder_and_name(self, place: int) -> tuple[int, str]:
        """Return the number of the folder of a file, and its name there."""
        return self._folder_of[place], self._names[place]

    def names_in(self, folder: str) -> set[str]:
        """Return the names of the files that were added of a folder, its slash at the end."""
        number = self._numbers.get(folder)
        if number is None:
            return set()
        return {self._names[at] for at, found in enumerate(self._folder_of) if found == number}


class _Texts:
    """Texts that lie one behind the other in one piece of memory."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._stops = array("q", [0])

    def add(self, text: str) -> None:
        self._bytes += as_bytes(text)
        self._stops.append(len(self._bytes))

    def __len__(self) -> int:
        return len(self._stops) - 1

    def __getitem__(self, place: int) -> str:
        piece = self._bytes[self._stops[place] : self._stops[place + 1]]
        return piece.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return the bytes of a path, by which TensorFlow and `LC_ALL=C ls` sort.

    >>> sorted(["Z", "a", "é"], key=as_bytes)
    ['Z', 'a', 'é']
    """
    return text.encode("utf-8", "surrogateescape")


def split_path(path: str) -> tuple[str, str]:
    r"""Return the folder of a path, with the slash at its end, and the name behind it.

    >>> split_path("gs://bucket/data/a"), split_path("a")
    (('gs://bucket/data/', 'a'), ('', 'a'))
    """
    at = path.rfind("/") + 1
    if os.sep != "/" and not is_remote(path):
        at = max(at, path.rfind(os.sep) + 1)
    return path[:at], path[at:]
