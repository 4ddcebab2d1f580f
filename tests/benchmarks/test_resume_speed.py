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

import shardctl
from shardctl.planning.order import plan_order

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


@pytest.mark.parametrize("num_shards", [1_024, 100_000])
def test_a_proof_takes_less_than_the_ids_of_the_order(num_shards: int, tmp_path: Path) -> None:
    layout = tmp_path / "big.yaml"
    layout.write_text(
        f"name: big\nsplits: {{train: {{num_examples: 1000000000, num_shards: {num_shards}}}}}\n"
    )
    settings = {"shuffle_seed": 3}
    order = plan_order(str(layout), "train", settings).order
    plan = shardctl.resume(str(layout), "train", settings, consumed=5_000_001)

    def proof() -> None:
        assert shardctl.prove(str(layout), plan).holds

    def ids() -> None:
        for _ in order.chunks(plan.consumed, order.num_examples):
            pass

    def visits() -> None:
        for _ in order.visits(plan.consumed, order.num_examples):
            pass

    ways = {"proof": proof, "ids": ids, "visits": visits}
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(3):  # in turns, so that a busy machine slows all of them
        for name, run in ways.items():
            start = time.process_time()
            run()
            seconds[name] = min(seconds[name], time.process_time() - start)
    print(
        f"{num_shards:,} shards: proof {seconds['proof']:.2f} s, ids {seconds['ids']:.2f} s, "
        f"visits {seconds['visits']:.2f} s"
    )
    assert seconds["proof"] < seconds["ids"]
