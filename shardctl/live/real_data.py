"""What a loader reads when it is verified: the files of a dataset, or indices in their place."""

from __future__ import annotations

import bisect
import hashlib
import importlib
import importlib.util
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.progress import Watch
from shardctl.base.text import counted, printable, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.folders import folders_of
from shardctl.live.library import Library
from shardctl.live.library import Source as Examples
from shardctl.loaders.loader import library_of
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.metadata.loader_versions import installed_version
from shardctl.order.loader_order import LoaderOrder
from shardctl.spec.subsplit import Resolved
from shardctl.stores.stores import is_remote
from shardctl.verbs.verify.answer import BUDGETS, Source, Take
from shardctl.verbs.verify.verify_files import (
    FileChecks,
    check_files_read,
    file_path,
    first_file_here,
)

_INSTEAD = "the loader runs over indices of the same number instead"


@dataclass(frozen=True, kw_only=True)
class RealData:
    """Examples for a loader, and what is said about them.

    differs: why the real data is not what the metadata says, "" where it is.
    """

    examples: Examples
    rows: RowFiles | None = None
    read: Source = "index ranges"
    checks: FileChecks = field(default_factory=lambda: FileChecks(num_files=0))
    notes: tuple[str, ...] = ()
    versions: dict[str, str | None] = field(default_factory=dict)
    differs: str = ""

    def canonical(self, indices: Int64s) -> Int64s:
        """Return indices, those with the same contents as the same one."""
        return np.asarray(indices) if self.rows is None else self.rows.canonical(indices)


def real_data(resolved: Resolved, order: LoaderOrder, take: Take, watch: Watch | None) -> RealData:
    """Return what a loader is to read: files that it opens, TFDS's data source, else indices.

    The files that the order reads are counted and checked before a library opens them.

    Raises:
        DatasetError: a place behind a URL cannot be asked.
    """
    checks = check_files_read(order.reads, watch)
    indices = RealData(examples=range(order.config.num_examples), checks=checks, notes=checks.notes)
    reason = _why_not_files(order, checks, take)
    if reason is not None:
        return replace(indices, notes=(*checks.notes, f"{reason}; {_INSTEAD}"))
    if order.dataset.file_format in library_of(order.loader).formats:
        return _with_rows(indices, order)
    return _with_records(indices, resolved, order)


def _why_not_files(order: LoaderOrder, checks: FileChecks, take: Take) -> str | None:
    """Return why a loader does not read the files of an order, None where it does."""
    dataset, file_format = order.dataset, order.dataset.file_format
    opens = library_of(order.loader).formats
    here = first_file_here(order.reads)
    if here is None:
        return f"the files of {dataset.title} are not on this machine"
    if is_remote(here):
        return f"verify reads files on a disk with {order.loader.title}"
    if checks.findings:
        return "the files are not opened, since not all of them are sound"
    if file_format in opens:
        return _why_not_rows(order, take)
    if opens or file_format not in FORMATS:
        formats = " and ".join(sorted(opens or FORMATS))
        how = "opens" if opens else "is given, through tfds.data_source,"
        return f"{order.loader.title} {how} {formats} files, and these are {file_format}"
    if _folder(dataset) is None:
        return "tfds.data_source reads one folder with metadata of TFDS, and these files have none"
    missing = [name for name in ("tensorflow_datasets", "array_record") if not _is_there(name)]
    if missing and not (missing == ["array_record"] and file_format == "parquet"):
        return f"tfds.data_source needs {missing[0]}, which is not installed"
    return None


def _why_not_rows(order: LoaderOrder, take: Take) -> str | None:
    """Return why the rows of files are not read by the library itself, None where they are."""
    if not np.array_equal(order.reads.take, order.reads.examples_in_shard):
        return f"{order.loader.title} opens whole files, and the spec takes parts of some"
    if order.config.num_examples > BUDGETS["files"] and take != "all":
        return (
            f"to know rows again by their contents all {order.config.num_examples:,} have to be "
            "read, as --take -1 does"
        )
    return None if _is_there("pyarrow") else "pyarrow is not installed, which reads the rows again"


def _with_rows(indices: RealData, order: LoaderOrder) -> RealData:
    """Return the files as the library opens them."""
    rows = RowFiles(files=files_of(order), file_format=order.dataset.file_format)
    alike = f"{counted(rows.num_alike, 'row')} with the contents of an earlier one, not told apart"
    notes = (*indices.notes, *([f"{alike} from it"] if rows.num_alike else []))
    versions = {"pyarrow": installed_version("pyarrow")}
    return replace(indices, rows=rows, read="files", notes=notes, versions=versions)


def _with_records(indices: RealData, resolved: Resolved, order: LoaderOrder) -> RealData:
    """Return what TFDS hands out by index, or why that is not what the metadata says."""
    folder, reads = _folder(order.dataset), order.reads
    assert folder is not None
    source = RecordSource(
        folder=folder,
        spec=resolved.spec,
        file_format=order.dataset.file_format,
        files=files_of(order),
        skip=tuple(reads.skip.tolist()),
        take=tuple(reads.take.tolist()),
    )
    library = {"tensorflow_datasets": installed_version("tensorflow-datasets")}
    try:
        found = len(source.data_source)
    except Exception as error:  # whatever TFDS raises
        said = printable((str(error).splitlines() or [""])[0], 300)
        reason = f"TFDS cannot open a data source of {quoted(resolved.spec)}: {said}"
        return replace(indices, notes=(*indices.notes, f"{reason}; {_INSTEAD}"))
    if found != len(source):
        differs = (
            f"tfds.data_source hands out {counted(found, 'example')} of {quoted(resolved.spec)}, "
            f"and the metadata says {len(source):,}"
        )
        return replace(indices, differs=differs, versions=library, notes=(*indices.notes, _INSTEAD))
    return replace(indices, examples=source, read="files", versions=library)


def files_of(order: LoaderOrder) -> tuple[str, ...]:
    """Return the paths of the files of an order, in the order of their indices; "" is not known."""
    dataset, reads = order.dataset, order.reads
    places = zip(reads.split.tolist(), reads.shard.tolist(), strict=True)
    return tuple(
        (dataset.splits[split].files and file_path(dataset, split, shard)) or ""
        for split, shard in places
    )


def _folder(dataset: Dataset) -> str | None:
    """Return the one folder with metadata of TFDS from which a dataset is read, else None."""
    folders = {folder.data_dir for folder in folders_of(dataset)}
    folder = folders.pop() if len(folders) == 1 and not dataset.is_counted else None
    has_info = folder is not None and Path(folder, DATASET_INFO_FILENAME).is_file()
    return os.fspath(folder) if folder is not None and has_info else None


def _is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


# The examples of `tfds.data_source`, each beside the record that lies at its place in a file.

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
        """Return the record of an example, read by its position in its file."""
        file = bisect.bisect_right(self._starts, index) - 1
        path, position = self.files[file], self.skip[file] + index - self._starts[file]
        is_parquet = self.file_format == "parquet"
        if path not in self._readers and is_parquet:
            table = importlib.import_module("pyarrow.parquet").read_table(path)
            self._readers[path] = table.column(0)
        elif path not in self._readers:
            records = importlib.import_module("array_record.python.array_record_module")
            self._readers[path] = records.ArrayRecordReader(path, "readahead_buffer_size:0")
        reader = self._readers[path]
        return bytes(reader[position].as_py() if is_parquet else reader.read([position])[0])


# Rows of files that a library opens by itself, told apart by their contents.

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

    def batches(self, config: LoaderConfig, live: Library) -> Generator[Int64s]:
        """Yield what a loader hands out as indices, below 0 for rows that are in no file."""
        with closing(live.rows(config, self.files, self.file_format)) as rows:
            yield from map(self.indices_of, rows)

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
