"""Rows of files that a library opens by itself, told apart by their contents."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.library import LoaderLibrary

_AT_ONCE = 1000  # rows


@dataclass(kw_only=True)
class RowFiles:
    """Whole Parquet or Arrow files, one after the other, whose rows a library hands out.

    The files are read once more here, in their order, by pyarrow alone: a row is known again by the
    digest of its contents. `firsts` is, of each index, the first that has the same contents.
    """

    files: tuple[str, ...]
    file_format: str
    _index_of: dict[bytes, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        firsts: list[int] = []
        for row in rows_of_files(self.files, self.file_format):
            firsts.append(self._index_of.setdefault(_digest(row), len(firsts)))
        self.firsts: Int64s = np.array(firsts, np.int64)

    @property
    def num_alike(self) -> int:
        """Number of rows with the contents of an earlier one."""
        return int((self.firsts != np.arange(len(self.firsts))).sum())

    def batches(self, asked: Asked, live: LoaderLibrary) -> Generator[Int64s]:
        """Yield what a loader hands out as indices, below 0 for rows that are in no file."""
        rows = live.rows(asked, self.files, self.file_format)
        try:
            for batch in rows:
                yield self.indices_of(batch)
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()

    def indices_of(self, rows: Sequence[Mapping[str, Any]]) -> Int64s:
        """Return the first index with the contents of each row, -1 where there is none."""
        return np.array([self._index_of.get(_digest(row), -1) for row in rows], np.int64)

    def canonical(self, indices: Int64s) -> Int64s:
        """Return the first index with the same contents as each."""
        return np.where(indices < 0, -1, self.firsts[indices])


def rows_of_files(files: Sequence[str], file_format: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of Parquet or Arrow files, one file after the other, as pyarrow reads them."""
    for path in files:
        for batch in _tables(path, file_format):
            yield from batch.to_pylist()


def _tables(path: str, file_format: str) -> Iterator[Any]:
    """Yield the record batches of a file."""
    if file_format == "parquet":
        file = importlib.import_module("pyarrow.parquet").ParquetFile(path)
        yield from file.iter_batches(batch_size=_AT_ONCE)
        return
    pyarrow, ipc = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.ipc")
    with pyarrow.memory_map(path) as source:
        try:
            reader = ipc.open_file(source)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        except pyarrow.ArrowInvalid:
            source.seek(0)
            yield from ipc.open_stream(source)


def _digest(row: Mapping[str, Any]) -> bytes:
    text = repr(sorted(row.items()))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
