"""How fast an order is pinned and compared, beside `simulate --format npy` in the same run.

And beside the SHA-256 of the ids of the order, which any digest of ids would take at least.

Run with `pytest tests/benchmarks/test_snapshot_speed.py -s`. The limits asserted are the promised
ones; SHARDCTL_BENCH_EXAMPLES sets the size of the large order (a billion by default, whose array
of ids takes 8 GB on the disk).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

NUM_EXAMPLES = int(os.environ.get("SHARDCTL_BENCH_EXAMPLES", "1_000_000_000"))
NUM_SHARDS = 16384
READ = ["--shuffle-seed", "1"]


def seconds(folder: Path, *arguments: str, code: int = 0) -> float:
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "shardctl", *arguments], cwd=folder, check=False
    )
    assert process.returncode == code
    return time.perf_counter() - start


def layout(folder: Path, name: str, lengths: list[int]) -> None:
    text = ", ".join(map(str, lengths))
    (folder / name).write_text(f"name: giga\nsplits: {{train: {{shard_lengths: [{text}]}}}}\n")


def test_imagenet_is_pinned_in_half_a_second_as_a_whole_process(tmp_path: Path) -> None:
    arguments = ["snapshot", "-d", "imagenet2012", *READ, "-o", "order.yaml"]
    best = min(seconds(tmp_path, *arguments) for _ in range(5))
    again = min(seconds(tmp_path, "diff", "order.yaml", "-d", "imagenet2012") for _ in range(3))
    print(f"\n1.28 M examples: snapshot {best:.2f} s, diff with today {again:.2f} s")
    assert best < 0.5


@pytest.fixture
def two_orders(tmp_path: Path) -> Path:
    """Two layouts of as many examples: the last two shards but one differ by one example."""
    lengths = [NUM_EXAMPLES // NUM_SHARDS] * NUM_SHARDS
    layout(tmp_path, "one.yaml", lengths)
    lengths[-3] += 1
    lengths[-2] -= 1
    layout(tmp_path, "other.yaml", lengths)
    return tmp_path


def test_ids_behind_a_buffer_are_hashed_in_little_of_what_they_take(tmp_path: Path) -> None:
    count = f"num_examples: {NUM_EXAMPLES // 20}, num_shards: 64"
    (tmp_path / "giga.yaml").write_text(f"name: giga\nsplits: {{train: {{{count}}}}}\n")
    read = [*READ, "--buffer", "10000", "--buffer-seed", "1", "-d", "giga.yaml"]
    array = ["simulate", "--take", "-1", "-f", "npy", "-o", "ids.npy"]
    plain, _ = processor(tmp_path, *array, *read)
    used, peak = processor(tmp_path, "snapshot", *read, "-o", "order.yaml")
    print(f"\nbehind a buffer: npy {plain:.2f} s, snapshot {used:.2f} s, {peak} MB")
    assert used < 1.6 * plain


def processor(folder: Path, *arguments: str) -> tuple[float, int]:
    """Return the processor's seconds of a command, and its peak in MB."""
    with subprocess.Popen([sys.executable, "-m", "shardctl", *arguments], cwd=folder) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def test_a_billion_examples_are_pinned_at_the_speed_of_the_order(two_orders: Path) -> None:
    array = ["simulate", "-d", "one.yaml", "--take", "-1", "-f", "npy", "-o", "ids.npy"]
    plain = seconds(two_orders, *array)
    (two_orders / "ids.npy").unlink()
    pinned = seconds(two_orders, "snapshot", "-d", "one.yaml", "-o", "one.order.yaml")
    seconds(two_orders, "snapshot", "-d", "other.yaml", "-o", "other.order.yaml")
    compared = seconds(two_orders, "diff", "one.order.yaml", "other.order.yaml", code=1)
    size = (two_orders / "one.order.yaml").stat().st_size
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(
        f"\n{NUM_EXAMPLES:,} examples: npy {plain:.1f} s, snapshot {pinned:.1f} s "
        f"({1e9 * pinned / NUM_EXAMPLES:.1f} ns an id, {pinned / plain:.2f} of npy), "
        f"diff of two {compared:.2f} s, file {size} bytes, memory at most {memory} MiB"
    )
    assert pinned < plain
    assert size < 100_000
    assert compared < 5
