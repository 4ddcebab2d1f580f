"""How much memory the largest datasets take: ten million shards in less than a gigabyte.

Run with `pytest tests/benchmarks/test_memory.py -s`; each command runs alone in a process, and
what is printed is the peak of the whole process. The limits asserted are the promised ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NUM_SHARDS = 10_000_000
LIMIT = 1_000_000_000  # bytes

MIDDLE = str(500 * NUM_SHARDS)
SHUFFLED = ("--shuffle-seed", "3")
BUFFERED = (*SHUFFLED, "--buffer", "10000", "--buffer-seed", "4")

COMMANDS = (
    ("simulate",),
    ("simulate", "--skip", MIDDLE, *SHUFFLED),
    ("simulate", "--skip", MIDDLE, *BUFFERED),
    ("simulate", "--host", "3/8", "--host-by", "files", *SHUFFLED),
    ("simulate", "--host", "3/8", "--host-by", "examples", *SHUFFLED),
    ("locate", "--position", MIDDLE, *SHUFFLED),
    ("locate", "--id", MIDDLE, *SHUFFLED, "--epochs", "2"),
    ("locate", "--tfds-id", f"big-train.tfrecord-00000002-of-{NUM_SHARDS}__7", *SHUFFLED),
    ("resume", "--consumed", "100"),
    ("resume", "--consumed", MIDDLE, *SHUFFLED, "-f", "json"),
    ("resume", "--consumed", MIDDLE, *BUFFERED, "-f", "yaml"),
    ("resume", "--consumed", "500000000", "--hosts", "8", "--to-hosts", "6"),
    ("resume", "--consumed", "1000", "--hosts", "8", "--to-hosts", "6"),
    ("resume", "--consumed", "1000", "--hosts", "8", "--to-hosts", "6", *SHUFFLED),
    ("resume", "--consumed", "1000", "--hosts", "8", "--to-hosts", "6", "--host-by", "files"),
    ("resume", "--consumed", "1000", "--hosts", "8", "--to-hosts", "6", "--host-by", "examples"),
    ("plan",),
    ("plan", "-f", "json"),
    ("plan", "-f", "csv"),
    ("plan", "--hosts", "64"),
)

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


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "big.yaml"
    sizes = f"num_examples: {1000 * NUM_SHARDS + 12345}, num_shards: {NUM_SHARDS}"
    path.write_text(f"name: big\nsplits: {{train: {{{sizes}}}}}\n", encoding="utf-8")
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read in /proc")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_ten_million_shards_take_less_than_a_gigabyte(
    command: tuple[str, ...], layout: Path
) -> None:
    verb, *options = command
    start = os.times()
    done = subprocess.run(
        [sys.executable, "-c", RUN, verb, "train", "-d", str(layout), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    peak, end = int(done.stderr.split()[-1]) * 1024, os.times()
    seconds = end.children_user + end.children_system - start.children_user - start.children_system
    print(f"\n{' '.join(command)}: {peak / 2**20:,.0f} MiB, {seconds:.1f} s")
    assert peak < LIMIT
