"""The examples of Parquet files and of WebDataset's tar archives by index, without TFDS."""

from __future__ import annotations

import tarfile
from functools import lru_cache
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.text import counted, printable
from shardctl.errors import DatasetError
from shardctl.live.key_order import BuilderOrDataset, typed
from shardctl.order.resolved_spec import refuse_open_splits, resolved_spec
from shardctl.records.arrow import pyarrow_module
from shardctl.records.webdataset import Samples
from shardctl.spec.reads import reads_of
from shardctl.stores.store import StoredFile, seekable
from shardctl.stores.stores import is_remote, store_of
from shardctl.tfds.training.records import paths_of

_GROUPS, _FILES = 32, 4096  # kept in memory: row groups, and what is known of files
# Of a member of an archive: its field, where its data begins, and where it ends.
_Members = dict[str, tuple[int, int]]


class RecordFiles:
    """The examples that a spec selects of files without TFDS, each by its index.

    The index counts them in the order of the files, as `shardctl index` does; `data_loader` and
    `Sampler` ask for it. An example of Parquet is a dict of its columns, whose numbers have the
    types of the file; one of WebDataset a dict of bytes by suffix, with `__key__` and `__url__`.
    Rows are read by row groups, 32 of which are kept; members of an archive by their place in it.

    Args:
        dataset: a folder of such files, a glob, an index file, or a Dataset.
        spec: what is read, as for `Sampler`.

    Raises:
        DatasetError: files of another format, or that are not where they were counted; when read,
            a file that changed since.
    """

    @checked
    def __init__(self, dataset: BuilderOrDataset, spec: str | None = None) -> None:
        resolved = resolved_spec(dataset, spec)
        refuse_open_splits(resolved)
        self._form, self._name = dataset.file_format, f"{dataset.title} {resolved.spec}"
        if self._form not in ("parquet", "webdataset"):
            raise DatasetError(
                f"{dataset.title} has {printable(self._form)} files; RecordFiles reads parquet and "
                "webdataset, and tfds.data_source those of TFDS"
            )
        reads = reads_of(dataset, resolved.ranges)
        self._paths, self._lengths = paths_of(reads), reads.examples_in_shard
        self._ends, self._last = np.cumsum(reads.take), reads.skip + reads.take
        self._keep()

    def _keep(self) -> None:
        self._group = lru_cache(_GROUPS)(self._read_group)
        self._file = lru_cache(_FILES)(self._read_file)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return an example.

        Raises:
            IndexError: behind the last one, or below 0.
            DatasetError: its file cannot be read, or is another than was counted.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"example {index}: there are {len(self)}")
        row = int(np.searchsorted(self._ends, index, side="right"))
        # From the end of the row, which need not begin at the start of its file.
        record = int(self._last[row] - (self._ends[row] - index))
        read = self._of_parquet if self._form == "parquet" else self._of_archive
        return read(self._paths[row], int(self._lengths[row]), record)

    def __repr__(self) -> str:
        return f"RecordFiles({self._name})"

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_form", "_name", "_paths", "_lengths", "_ends", "_last")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep()

    def _of_parquet(self, path: str, length: int, record: int) -> dict[str, Any]:
        _, (ends, types) = self._file(path, length)
        group = int(np.searchsorted(ends, record, side="right"))
        table = self._group(path, length, group)
        (found,) = table.slice(record - int(ends[group]) + table.num_rows, 1).to_pylist()
        return {name: typed(value, types.get(name)) for name, value in found.items()}

    def _read_group(self, path: str, length: int, group: int) -> Any:
        parquet = pyarrow_module("pyarrow.parquet", "reading parquet files")
        file, _ = self._file(path, length)
        with store_of(path).open(file) as source:
            return parquet.ParquetFile(seekable(source)).read_row_group(group)

    def _of_archive(self, path: str, length: int, record: int) -> dict[str, Any]:
        file, samples = self._file(path, length)
        key, members = samples[record]
        # The members of a sample lie together: one request reads them.
        first = min((start for start, _ in members.values()), default=0)
        with store_of(path).open(file) as source:
            data = source.read(first, max((stop for _, stop in members.values()), default=0))
        fields = {name: data[a - first : b - first] for name, (a, b) in members.items()}
        return {"__key__": key, "__url__": path, **fields}

    def _read_file(self, path: str, length: int) -> tuple[StoredFile, Any]:
        """Return a file as it is now, and where its records are.

        Raises:
            DatasetError: it holds another number of records.
        """
        store = store_of(path)
        file = store.status(path)
        if file is None:
            raise DatasetError(f"{printable(path)} is missing")
        places: Any
        with store.open(file) as source:
            if self._form == "parquet":
                parquet = pyarrow_module("pyarrow.parquet", "reading parquet files")
                opened = parquet.ParquetFile(seekable(source))
                footer = opened.metadata
                sizes = [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]
                types = {field.name: _type(field.type) for field in opened.schema_arrow}
                found, places = footer.num_rows, (np.cumsum(sizes), types)
            else:
                places = _samples(seekable(source), path)
                found = len(places)
        if found != length:
            raise DatasetError(
                f"{printable(path)} holds {counted(found, 'example')}, and {length:,} were "
                "counted; count it again with shardctl index"
            )
        return file, places


def _samples(file: Any, path: str) -> list[tuple[str, _Members]]:
    """Return the key of each sample of an archive, and where its members are."""
    samples, found = Samples(), list[tuple[str, _Members]]()
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                if not member.isreg() or samples.add(member.name, member.size):
                    continue
                if samples.num_samples > len(found):
                    found.append((samples.key or "", {}))
                del found[samples.num_samples :]  # one that says it is bad
                if samples.is_kept:
                    end = member.offset_data + member.size
                    found[-1][1][samples.suffix] = (member.offset_data, end)
    except tarfile.TarError as error:
        packed = "; unpack it, since a compressed archive has no places" * (
            not is_remote(path) and path.endswith((".gz", ".tgz"))
        )
        raise DatasetError(f"{printable(path)}: {printable(str(error))}{packed}") from error
    return found


def _type(kind: Any) -> Any:
    """Return the name of NumPy's type of a column, those of a struct, None of what has none."""
    types = pyarrow_module("pyarrow", "reading parquet files").types
    if types.is_struct(kind):
        return {field.name: _type(field.type) for field in kind}
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    numbers = (types.is_integer, types.is_floating, types.is_boolean)
    return np.dtype(kind.to_pandas_dtype()).name if any(is_a(kind) for is_a in numbers) else None
