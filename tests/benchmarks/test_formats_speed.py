"""How long it takes to count a file of each format, and how much of it is read, beside its library.

Run with `pytest -o addopts= tests/benchmarks/test_formats_speed.py -s`; a library that is not
installed is left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.records.read_file import FORMATS
from shardctl.stores.stores import LocalStore
from tests.byte_sources import far
from tests.mds_shards import shard

NUM, SIZE = 20_000, 2_000


def _tar(path: Path) -> None:
    data = os.urandom(SIZE)
    with tarfile.open(path, "w") as tar:
        for index in range(NUM):
            for suffix, content in (("bin", data), ("cls", b"7")):
                info = tarfile.TarInfo(f"{index:08d}.{suffix}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def _array_record(path: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(path), "group_size:1")
    for _ in range(NUM):
        writer.write(os.urandom(SIZE))
    writer.close()


def _table() -> Any:
    import pyarrow as pa

    return pa.table({"id": list(range(NUM)), "x": [os.urandom(SIZE) for _ in range(NUM)]})


def _parquet(path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(_table(), path, row_group_size=500, compression="none")


def _arrow(path: Path) -> None:
    import pyarrow as pa

    table = _table()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


def _mds(path: Path) -> None:
    path.write_bytes(shard(*(os.urandom(SIZE) for _ in range(NUM))))


def _by_tarfile(path: Path) -> int:
    with tarfile.open(path) as tar:
        return len({member.name.split(".", 1)[0] for member in tar})


def _by_webdataset(path: Path) -> int:
    webdataset = pytest.importorskip("webdataset")
    return sum(1 for _ in webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False))


def _by_array_record(path: Path) -> int:
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path))
    try:
        return int(reader.num_records())
    finally:
        reader.close()


def _by_parquet(path: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def _by_open_stream(path: Path) -> int:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        return sum(batch.num_rows for batch in pa.ipc.open_stream(file))


def _by_datasets(path: Path) -> int:
    datasets = pytest.importorskip("datasets")
    return len(datasets.Dataset.from_file(str(path)))


Counting = Callable[[Path], int]
CASES: list[tuple[str, str, Callable[[Path], None], list[Counting]]] = [
    ("webdataset", "a.tar", _tar, [_by_tarfile, _by_webdataset]),
    ("array_record", "a.array_record", _array_record, [_by_array_record]),
    ("parquet", "a.parquet", _parquet, [_by_parquet]),
    ("arrow", "a.arrow", _arrow, [_by_open_stream, _by_datasets]),
    ("mds", "a.mds", _mds, []),
]


def _milliseconds(work: Callable[[], int]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        assert work() == NUM
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


@contextlib.contextmanager
def _without_output() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()):
        yield


@pytest.mark.parametrize(("name", "filename", "write", "others"), CASES)
def test_counting_beside_the_library_of_the_format(
    tmp_path: Path,
    name: str,
    filename: str,
    write: Callable[[Path], None],
    others: list[Counting],
) -> None:
    path = tmp_path / filename
    write(path)
    store, counter = LocalStore(), FORMATS[name]
    file = store.status(str(path))
    assert file is not None

    def ours() -> int:
        with store.open(file) as source:
            found = counter.count(source)
        assert found.damage is None
        return found.num_records or 0

    source = far(path.read_bytes())
    assert counter.count(source).num_records == NUM
    here = _milliseconds(ours)
    said = [f"{name}: {here:.2f} ms of {file.num_bytes >> 20} MiB"]
    said.append(f"far away {source.num_bytes_read >> 10} KiB in {len(source.ranges)} requests")
    for other in others:
        with contextlib.suppress(pytest.skip.Exception), _without_output():
            taken = _milliseconds(lambda other=other: other(path))  # type: ignore[misc]
            said.append(f"{other.__name__[1:]} {taken:.2f} ms")
    print("; ".join(said), file=sys.stderr)
