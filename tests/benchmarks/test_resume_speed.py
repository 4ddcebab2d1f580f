"""How long a whole `resume` process takes over a million shards of ten thousand examples."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

LAYOUT = "name: big\nsplits: {train: {num_examples: 10000000000, num_shards: 1000000}}\n"


def best_of(count: int, command: list[str]) -> float:
    """Return the least seconds that a process took."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize("consumed", [5_000, 5_000_000_001, 9_999_000_000])
@pytest.mark.parametrize("format", ["table", "json", "yaml"])
def test_a_process_takes_less_than_three_seconds(
    tmp_path: Path, consumed: int, format: str, record_property: Any
) -> None:
    layout = tmp_path / "big.yaml"
    layout.write_text(LAYOUT)
    command = [sys.executable, "-m", "shardctl", "resume", "--consumed", str(consumed)]
    seconds = best_of(3, [*command, "-d", str(layout), "-f", format])
    record_property("seconds", round(seconds, 2))
    assert seconds < 3
