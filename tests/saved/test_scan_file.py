"""Scans that are damaged, or that no scan can be, are refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.errors import DatasetError
from shardctl.saved.scan_file import Scan, read_scan, write_scan
from tests.cases import some_of

LENGTHS = {"name": "toy", "splits": {"train": {"shard_lengths": [4, 3]}}}


def written(folder: Path, **more: Any) -> str:
    (folder / "toy.json").write_text(json.dumps(LENGTHS))
    values = {"train": np.array([1, 0, 1, 1, 0, 1, 1])}
    known = {"fingerprint": shardctl.read_dataset(str(folder / "toy.json")).fingerprint}
    scan = {"call": "filter", "key": "k", "by": "passes", "values": values, **known, **more}
    path = str(folder / "x.scan")
    write_scan(Scan(**scan), path)
    return path


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": "x"}, {"by": []}, {"most": "1"}, {"most": None}, {"sizes": [1]}, {"sizes": "1"},
        {"windows": {0: (2, 0)}, "by": "key"}, {"windows": {0: (-1, 2)}, "by": "key"},
        {"windows": {0: (2, "x")}, "by": "key"}, {"windows": {0: (2**63, 1)}, "by": "key"},
        {"call": 1}, {"versions": 3},
        *({"values": {"train": np.array(one)}} for one in (3, [[1]], [0.5], ["a"], [True])),
        *({"values": {"train": np.array(one)}, "by": "count"} for one in ([-1], [2])),
        {"values": {"train": np.array([1])}, "by": "lengths", "sizes": (1,)},
        {"values": {"train": np.array([[-3]])}, "by": "lengths", "sizes": (1,)},
    ],
)  # fmt: skip
def test_what_no_scan_can_be_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    if "sizes" in wrong and "values" not in wrong:
        wrong = {**wrong, "by": "lengths"}
    with pytest.raises(DatasetError, match="is no whole scan; run shardctl inspect"):
        read_scan(written(tmp_path, **wrong))


def test_every_byte_that_changes_gives_the_same_answer_or_a_refusal(tmp_path: Path) -> None:
    path = Path(written(tmp_path))
    data, order = path.read_bytes(), [0, 2, 3, 5, 6]

    def answer() -> list[int] | str:
        try:
            stages = f"filter(kept={str(path)!r})"
            ids = shardctl.simulate(str(tmp_path / "toy.json"), "train", stages=stages).ids
        except DatasetError as error:
            return str(error)
        return [*map(int, ids)]

    assert answer() == order
    for at in some_of(range(len(data))):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        assert answer() == order or "--scan again" in answer()
    path.write_bytes(data[:-9])
    assert "is no whole scan" in answer()


def test_a_scan_of_other_lengths_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, values={"train": np.array([1, 1])})
    with pytest.raises(DatasetError, match="a scan has other lengths than its dataset"):
        shardctl.simulate(str(tmp_path / "toy.json"), "train", stages=f"filter(kept={path!r})")
