"""Examples of Parquet files and tar archives by index, beside what their own readers say."""

from __future__ import annotations

import io
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl import simulate
from shardctl.errors import DatasetError
from shardctl.torch import RecordFiles, data_loader
from tests.grain.toys import raises_in_one_line, toy

LENGTHS = (9, 1, 14, 7)
READ = {"shuffle_seed": 3, "buffer": 5, "buffer_seed": 1, "batch": 4}


@pytest.fixture(params=["parquet", "tar"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    first = 0
    for shard, length in enumerate(LENGTHS):
        write = _parquet if request.param == "parquet" else _tar
        write(tmp_path / f"toy-{shard:05}.{request.param}", range(first, first + length))
        first += length
    return tmp_path


def _parquet(path: Path, ids: range) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: dict[str, Any] = {
        "key": [str(i) for i in ids],
        "x": arrow.array([i / 7 for i in ids], arrow.float32()),
        "v": arrow.array([[i, 1] for i in ids], arrow.list_(arrow.uint8())),
        "s": arrow.array([{"odd": i % 2 == 1} for i in ids]),
    }
    parquet.write_table(arrow.table(rows), path, row_group_size=4)


def _tar(path: Path, ids: range) -> None:
    members = [("0/__bad__.__bad__", b"1"), ("README", b"no sample")]
    members += [(f"a/{i}.{suffix}", bytes(i)) for i in ids for suffix in ("JPG", "c.ls")]
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def key_of(example: dict[str, Any]) -> int:
    return int(example.get("key") or example["__key__"].rpartition("/")[2])


def test_examples_are_those_of_the_files_in_their_order(folder: Path) -> None:
    source = pickle.loads(pickle.dumps(RecordFiles(str(folder))))
    assert [key_of(source[n]) for n in range(len(source))] == [*range(sum(LENGTHS))]
    part = RecordFiles(str(folder), "train[8:12]+train[:2]")
    assert [key_of(part[n]) for n in range(len(part))] == [8, 9, 10, 11, 0, 1]
    one = source[20]
    if "key" in one:
        assert (one["x"], one["x"].dtype) == (np.float32(20 / 7), np.float32)
        assert (one["v"].dtype, one["v"].tolist()) == (np.uint8, [20, 1])
        assert one["s"] == {"odd": False}
    else:
        url = str(folder / "toy-00002.tar")
        assert one == {"__key__": "a/20", "__url__": url, "jpg": bytes(20), "c.ls": bytes(20)}
    for index in (-1, sum(LENGTHS)):
        with pytest.raises(IndexError):
            source[index]


def test_a_loader_reads_them_as_simulated_and_resumes(folder: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'shardctl[torch]'")
    source = RecordFiles(str(folder))
    given: dict[str, Any] = {"settings": READ, "options": {"collate_fn": list}}
    loader = data_loader(source, str(folder), **given)
    batches = iter(loader)
    found = [next(batches) for _ in range(3)]
    found += data_loader(source, str(folder), states=[loader.state_dict()], **given)
    ids = simulate(str(folder), settings=READ, take=-1).ids.tolist()
    assert [key_of(one) for batch in found for one in batch] == ids
    assert [len(batch) for batch in found] == [4] * 7 + [3]


def test_other_files_are_refused(folder: Path) -> None:
    raises_in_one_line(lambda: RecordFiles(toy(3)), DatasetError, "tfrecord", "tfds.data_source")
    source = RecordFiles(str(folder))
    last = sorted(folder.iterdir())[-1]
    last.write_bytes((folder / sorted(folder.iterdir())[0].name).read_bytes())
    raises_in_one_line(lambda: source[30], DatasetError, last.name, "9 examples, and 7 were")
    last.unlink()
    raises_in_one_line(lambda: source[30], DatasetError, "is missing")
