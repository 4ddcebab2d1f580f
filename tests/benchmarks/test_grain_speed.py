"""What a record costs that Grain asks for: beside Grain's own sampler, and tf.data's reading.

Run with `pytest -s tests/benchmarks/test_grain_speed.py`; each test prints its figures, in
microseconds a record, the best of several rounds taken in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from shardctl import Dataset, ReadSettings, Split
from shardctl.grain import Sampler

IMAGENET = tuple(1251 + (shard % 8 == 0) for shard in range(1024))
COUNT = 50_000


def best(*runs: Callable[[], object], rounds: int = 3) -> list[float]:
    """Return the shortest time of each, in microseconds a record; they run in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, of_run in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            of_run.append((time.perf_counter() - start) / COUNT * 1e6)
    return [min(of_run) for of_run in times]


def reading(sampler: Any, first: int = 0) -> Callable[[], object]:
    def read() -> None:
        for index in range(first, first + COUNT):
            sampler[index]

    return read


@pytest.mark.parametrize("buffer", [None, 10_000])
def test_a_record_costs_no_more_than_a_shuffled_one_of_grains_own(buffer: int | None) -> None:
    grain = pytest.importorskip("grain", reason="Grain is not installed")
    tf = pytest.importorskip("tensorflow")
    data = Dataset(name="d", splits=(Split(name="train", shard_lengths=IMAGENET),))
    settings = ReadSettings(
        shuffle_seed=1,
        epochs=2,
        batch=64,
        buffer=buffer,
        buffer_seed=None if buffer is None else 2,
    )
    total = sum(IMAGENET)
    own = grain.samplers.IndexSampler(
        total, grain.sharding.NoSharding(), shuffle=True, num_epochs=2, seed=1
    )

    def anew(first: int = 0, **given: Any) -> Callable[[], object]:
        # As a worker process has it, which plans the order for itself.
        def read() -> None:
            reading(Sampler(data, "train", settings, **given), first)()

        return read

    first, late = anew(), anew(total + 600_000)
    dealt = anew(workers=2, consumed=total % 128 * 2)

    def tf_data() -> None:
        dataset = tf.data.Dataset.range(total)
        if buffer is not None:
            dataset = dataset.shuffle(buffer, seed=1)
        for _ in dataset.take(COUNT).as_numpy_iterator():
            pass

    times = best(first, late, dealt, reading(own), tf_data)
    names = ("sampler", "in mid-epoch", "dealt to 2 workers", "IndexSampler", "tf.data, numbers")
    print(
        "\n" + ", ".join(f"{n} {t:.2f}" for n, t in zip(names, times, strict=True)), "us a record"
    )
    assert max(times[:2]) < 2 * times[3]
