"""Very many shards take little memory; tests/benchmarks has ten million."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MILLION = 1_000_000
# Of as many, whose table of a row a shard takes a while, memory is as short as of a million.
MANY = 300_000
LIMITS = {MILLION: 200 << 20, MANY: 110 << 20}  # bytes; a million took 280 to 850 MiB

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


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read in /proc")
@pytest.mark.parametrize(
    ("command", "num_shards"),
    [
        pytest.param("simulate --skip 500000000 --shuffle-seed 3", MILLION, marks=pytest.mark.slow),
        ("resume --consumed 1000 --shuffle-seed 3", MANY),
        pytest.param("locate --id 500000000 --shuffle-seed 3", MILLION, marks=pytest.mark.slow),
        ("plan", MANY),
    ],
)
def test_very_many_shards_take_little_memory(command: str, num_shards: int, tmp_path: Path) -> None:
    layout = tmp_path / "big.yaml"
    sizes = f"num_examples: {1000 * num_shards}, num_shards: {num_shards}"
    layout.write_text(f"name: big\nsplits: {{train: {{{sizes}}}}}\n", encoding="utf-8")
    verb, *options = command.split()
    done = subprocess.run(
        [sys.executable, "-c", RUN, verb, "train", "-d", str(layout), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert int(done.stderr.split()[-1]) * 1024 < LIMITS[num_shards]
