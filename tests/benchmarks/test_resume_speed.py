"""What a `resume` process takes over a million shards of ten thousand examples; what proofs take.

A proof reads two orders to their ends, the pipeline's and the plan's, as visits of files. It is
held to less than the seconds in which the pipeline's order alone is handed out as ids.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

LAYOUT = "name: big\nsplits: {train: {num_examples: 10000000000, num_shards: 1000000}}\n"


def least_seconds(command: list[str], count: int = 3) -> tuple[float, float]:
    """Return the least seconds by the clock and of the processor that a process took."""
    clock, processor = [], []
    for _ in range(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        clock.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(clock), min(processor)


@pytest.mark.parametrize("consumed", [5_000, 5_000_000_001, 9_999_000_000])
@pytest.mark.parametrize("format", ["table", "json", "yaml"])
def test_a_process_takes_less_than_three_seconds(
    tmp_path: Path, consumed: int, format: str, record_property: Any
) -> None:
    """By the processor's clock: a machine that does other things as well takes longer."""
    layout = tmp_path / "big.yaml"
    layout.write_text(LAYOUT)
    command = [sys.executable, "-m", "shardctl", "resume", "--consumed", str(consumed)]
    clock, processor = least_seconds([*command, "-d", str(layout), "-f", format])
    record_property("seconds", round(clock, 2))
    record_property("processor_seconds", round(processor, 2))
    assert processor < 3
