"""The examples of `tfds.data_source`, each beside the record that lies at its place in a file."""

from __future__ import annotations

import bisect
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FORMATS = ("array_record", "parquet")  # those that TFDS reads by index


@dataclass(kw_only=True)
class RecordSource:
    """A spec of a prepared dataset as TFDS's own data source, whose records are looked at.

    `source[i]` reads record `i` of the data source, and again from the file in which example `i`
    lies as the metadata says, by its place there: `i` if they are the same bytes, else below 0.
    Each process opens the files for itself.

    folder, spec: what `tfds.builder_from_directory(folder).as_data_source(spec)` is asked.
    files, skip, take: the files of the spec, in order, and which of their records it reads.
    """

    folder: str
    spec: str
    file_format: str
    files: tuple[str, ...]
    skip: tuple[int, ...]
    take: tuple[int, ...]
    _opened: Any = field(default=None, repr=False)
    _readers: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._starts = np.concatenate([[0], np.cumsum(self.take, dtype=np.int64)]).tolist()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is open: worker processes open it anew."""
        return {**self.__dict__, "_opened": None, "_readers": {}}

    def __len__(self) -> int:
        """Return the number of examples, by the metadata."""
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> np.int64:
        """Return an index if the record read there is the one of that example, else -1."""
        return self._looked_at(int(index), self.data_source[index])

    def __getitems__(self, indices: Sequence[int]) -> list[np.int64]:
        """Return the same for several indices, which PyTorch reads at once."""
        records = self.data_source.__getitems__([int(index) for index in indices])
        pairs = zip(indices, records, strict=True)
        return [self._looked_at(int(index), record) for index, record in pairs]

    @property
    def data_source(self) -> Any:
        """What TFDS makes of the spec, below its decoding of features: records as bytes."""
        if self._opened is None:
            tfds = importlib.import_module("tensorflow_datasets")
            made = tfds.builder_from_directory(self.folder).as_data_source(split=self.spec)
            self._opened = made.data_source
        return self._opened

    def _looked_at(self, index: int, record: Any) -> np.int64:
        return np.int64(index if bytes(record) == self._in_file(index) else -1)

    def _in_file(self, index: int) -> bytes:
        """Return the record of an example, read by its place in its file."""
        file = bisect.bisect_right(self._starts, index) - 1
        path, place = self.files[file], self.skip[file] + index - self._starts[file]
        if self.file_format == "parquet":
            if path not in self._readers:
                table = importlib.import_module("pyarrow.parquet").read_table(path)
                self._readers[path] = table.column(0)
            return bytes(self._readers[path][place].as_py())
        if path not in self._readers:
            records = importlib.import_module("array_record.python.array_record_module")
            self._readers[path] = records.ArrayRecordReader(path, "readahead_buffer_size:0")
        return bytes(self._readers[path].read([place])[0])
