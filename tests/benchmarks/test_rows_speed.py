"""How long a million rows take to be text. Times are processor seconds, start-up included.

Run with `pytest -o addopts= tests/benchmarks/test_rows_speed.py -s`.
"""

from __future__ import annotations

import os
import subprocess
import sys

NUM = 1_000_000


def _process(*words: str) -> tuple[float, int]:
    """Return the processor seconds of a command, and the bytes that it writes."""
    before = os.times()
    command = [sys.executable, "-m", "shardctl", "simulate", "-d", "imagenet2012", *words]
    size = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(1 << 20):
            size += len(piece)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, size


def test_a_million_rows_as_a_process() -> None:
    start, _ = min(_process("--take", "1", "-f", "ids") for _ in range(3))
    print()
    for name in ("jsonl", "csv", "ids", "tfds-ids", "json", "yaml"):
        taken, size = min(_process("--take", str(NUM), "-f", name) for _ in range(3))
        print(f"{name:8} {taken:.2f} s for {size / 1e6:.0f} MB; start-up {start:.2f} s")
        assert taken < start + 3
