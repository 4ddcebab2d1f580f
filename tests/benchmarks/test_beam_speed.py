"""What a Beam pipeline costs on one machine, beside the processes of this machine in the same run.

Run with `pytest -o addopts= tests/benchmarks/test_beam_speed.py`; the guide `petabyte.md` tells the
figures.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import shardctl
from tests.record_files import framed

_PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.mark.parametrize(("num_files", "num_records", "size"), [(2000, 50, 3000), (10_000, 2, 20)])
def test_beam_counts_what_the_local_runner_counts(
    benchmark: Any, tmp_path: Path, num_files: int, num_records: int, size: int
) -> None:
    data = framed(b"x" * size) * num_records
    for shard in range(num_files):
        (tmp_path / f"toy-{shard:05d}-of-{num_files:05d}.tfrecord").write_bytes(data)

    def counted(*options: str) -> shardctl.Index:
        runner = shardctl.beam_runner(*options)
        return shardctl.index(tmp_path, cache=False, runner=runner)

    start = time.perf_counter()
    here = shardctl.index(tmp_path, cache=False)
    local = time.perf_counter() - start
    start = time.perf_counter()
    assert counted(*_PROCESSES).dataset == here.dataset
    in_processes = time.perf_counter() - start
    found = benchmark.pedantic(counted, rounds=1, iterations=1)
    assert found.dataset == here.dataset
    benchmark.extra_info |= {"local": local, "two worker processes": in_processes}
