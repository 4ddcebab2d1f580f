"""A million shards take little memory; tests/benchmarks/test_memory.py has ten million."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NUM_SHARDS = 1_000_000
LIMIT = 200 << 20  # bytes; they were 280 to 850 MiB

# The peak as the process itself sees it: what its parent reads of it includes what the parent had
# in memory when it started the process.
RUN = """
import atexit, re, sys
def peak():
    found = re.search("VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
    print("peak", found[1], file=sys.stderr)
atexit.register(peak)
from shardctl.cli.main import main
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read in /proc")
@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "--skip", "500000000", "--shuffle-seed", "3"),
        ("resume", "--consumed", "1000", "--shuffle-seed", "3"),
        ("locate", "--id", "500000000", "--shuffle-seed", "3"),
        ("plan",),
    ],
    ids=" ".join,
)
def test_a_million_shards_take_little_memory(command: tuple[str, ...], tmp_path: Path) -> None:
    layout = tmp_path / "big.yaml"
    sizes = f"num_examples: {1000 * NUM_SHARDS}, num_shards: {NUM_SHARDS}"
    layout.write_text(f"name: big\nsplits: {{train: {{{sizes}}}}}\n", encoding="utf-8")
    verb, *options = command
    done = subprocess.run(
        [sys.executable, "-c", RUN, verb, "train", "-d", str(layout), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert int(done.stderr.split()[-1]) * 1024 < LIMIT
