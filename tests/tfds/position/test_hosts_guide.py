"""The script of the guide on hosts, run by three hosts and then by two of another batch size."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.killed_runs import script_of_guide
from tests.tfds_datasets import build_dataset

pytestmark = pytest.mark.tensorflow

LENGTHS = [200, 0, 150, 117]


@pytest.mark.slow
def test_three_hosts_become_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, run = tmp_path / "train.py", tmp_path / "run"
    script.write_text(script_of_guide("hosts", "train.py"))
    folder = build_dataset(tmp_path / "data", splits={"train": LENGTHS})

    def trained(host: str, *stopped_at: str) -> list[list[str]]:
        monkeypatch.setattr(sys, "argv", ["train.py", host, str(folder), str(run), *stopped_at])
        runpy.run_path(str(script), run_name="__main__")
        log = run / f"{host.replace('/', '-of-')}.log"
        return [line.split() for line in log.read_text().splitlines()]

    # As if the three were killed a little after step 10; a batch is 16, and 24 with two hosts.
    before = [trained(f"{index}/3")[:10] for index in range(3)]
    after = [trained(f"{index}/2", "10") for index in range(2)]
    assert [line[0] for line in before[0] + after[0]][:12] == [str(i) for i in range(1, 13)]
    assert {len(line) - 1 for lines in before for line in lines} == {16}
    assert {len(line) - 1 for lines in after for line in lines[:-1]} == {24}
    seen = Counter(name for lines in before + after for line in lines for name in line[1:])
    assert len(seen) == sum(LENGTHS)
    assert set(seen.values()) == {2}
