"""What `simulate` and `locate` promise of their speed, measured in one run beside what is there.

Run with `pytest -s tests/benchmarks/test_order_speed.py`; each test prints its figures. Times are
the best of several taken in turns, so that a busy machine slows both sides.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.cli.output import write
from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.simulate.answer import Simulation
from shardctl.verbs.simulate.view import array_file

# The shards of ImageNet, 30 times as long: 38 million examples.
LARGE = tuple((1251 + (shard % 8 == 0)) * 30 for shard in range(1024))
IMAGENET = tuple(1251 + (shard % 8 == 0) for shard in range(1024))
COUNT = 30_000_000


def order_of(lengths: tuple[int, ...], **settings: Any) -> ReaderOrder:
    split = Split(name="train", shard_lengths=lengths)
    ranges = [SplitRange(split=split, start=0, stop=split.num_examples)]
    return ReaderOrder(Dataset(name="d", splits=(split,)), ranges, ReadSettings(**settings))


def best(*runs: Callable[[], object], rounds: int = 3) -> list[float]:
    """Return the shortest time of each, in seconds; they run in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, of_run in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            of_run.append(time.perf_counter() - start)
    return [min(of_run) for of_run in times]


def save_order(path: Path, lengths: tuple[int, ...], count: int, **settings: Any) -> None:
    """Write ids as `simulate -f npy -o` does."""
    order = order_of(lengths, **settings)
    simulation = Simulation(spec="train", order=order, skip=0, take=count)
    write(array_file(simulation), str(path))


def tensorflow_order(lengths: tuple[int, ...], count: int, buffer: int | None = None) -> int:
    """Read as many ids from tf.data, with ranges in place of files, in its fastest form."""
    import tensorflow as tf

    counts = np.array(lengths)
    files = tf.data.Dataset.from_tensor_slices((np.cumsum(counts) - counts, counts))
    files = files.shuffle(len(counts), seed=1)
    dataset = files.interleave(
        lambda start, length: tf.data.Dataset.range(start, start + length),
        cycle_length=16,
        block_length=16,
    )
    if buffer is not None:
        dataset = dataset.shuffle(buffer, seed=1)
    dataset = dataset.take(count).batch(1 << 16)
    return sum(len(ids) for ids in dataset.as_numpy_iterator())


def test_thirty_million_ids_to_a_file(tmp_path: Path) -> None:
    ids, path = np.arange(COUNT), tmp_path / "order.npy"
    ours, shuffled, saved = best(
        lambda: save_order(path, LARGE, COUNT),
        lambda: save_order(path, LARGE, COUNT, shuffle_seed=1),
        lambda: np.save(tmp_path / "ids.npy", ids),
        rounds=5,
    )
    # A tenth of the ids, which tf.data reads at an even pace.
    theirs = best(lambda: tensorflow_order(LARGE, COUNT // 10), rounds=2)[0] * 10
    print(
        f"\n30 M ids to a file: {ours:.3f} s, files shuffled {shuffled:.3f} s; numpy.save "
        f"{saved:.3f} s ({ours / saved:.1f} times); tf.data {theirs:.1f} s ({theirs / ours:.0f})"
    )
    assert theirs / max(ours, shuffled) >= 100
    assert max(ours, shuffled) <= 3 * saved


@pytest.mark.parametrize(
    ("lengths", "count", "buffer"),
    [(IMAGENET, sum(IMAGENET), 10_000), (LARGE, 5_000_000, 100_000)],
)
def test_a_shuffle_buffer(lengths: tuple[int, ...], count: int, buffer: int) -> None:
    def ours() -> None:
        order = order_of(lengths, shuffle_seed=1, buffer=buffer, buffer_seed=1)
        assert sum(map(len, order.chunks(0, count))) == count

    own, theirs = best(ours, lambda: tensorflow_order(lengths, count, buffer), rounds=2)
    print(f"\nbuffer {buffer:,}: {count:,} ids in {own:.3f} s; tf.data {theirs:.2f} s")
    assert theirs / own >= 15


def test_a_million_positions_a_second() -> None:
    order = order_of(IMAGENET)
    positions = np.random.default_rng(1).integers(0, order.num_examples, 1_000_000)
    codes = order.codes_at(positions)
    there, back = best(lambda: order.codes_at(positions), lambda: order.positions_of(codes))
    print(f"\na million positions: {there:.2f} s; a million ids: {back:.2f} s")
    assert there <= 1
    assert back <= 1


def test_one_position_of_a_million_shards() -> None:
    lengths = tuple(np.random.default_rng(0).integers(5_000, 15_000, 1_000_000).tolist())
    split = Split(name="train", shard_lengths=lengths)
    dataset = Dataset(name="d", splits=(split,))
    ranges = [SplitRange(split=split, start=0, stop=split.num_examples)]
    order = None

    def build() -> None:
        nonlocal order
        order = ReaderOrder(dataset, ranges, ReadSettings())
        order.reading(0)

    [built] = best(build)
    assert order is not None
    middle = order.num_examples // 2
    [asked] = best(lambda: order.codes_at([middle]))
    positions = np.random.default_rng(1).integers(0, order.num_examples, 1_000_000)
    [many] = best(lambda: order.codes_at(positions))
    print(
        f"\n{order.num_examples:,} examples, a million shards: built in {built:.2f} s, a position "
        f"{1e6 * asked:.0f} us, a million positions {many:.2f} s"
    )
    assert built + asked <= 1
    assert many <= 1


def test_three_hundred_million_ids_take_little_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "order.npy")
    arguments = [
        "simulate",
        "-d",
        "imagenet2012",
        "--shuffle-seed=1",
        "--epochs=235",
        "--format=npy",
    ]
    peaks = {}
    for name, more in {
        "300 million": ["--take=300000000"],
        "10 million, buffer 100,000": ["--take=10000000", "--buffer=100000", "--buffer-seed=1"],
    }.items():
        peaks[name] = _peak([sys.executable, "-m", "shardctl", *arguments, *more, "-o", path])
        os.unlink(path)
    print("\n" + "; ".join(f"{name}: {peak >> 10} MiB" for name, peak in peaks.items()))
    assert max(peaks.values()) < 400 << 10


def _peak(arguments: list[str]) -> int:
    """Return the largest memory of a process, in KiB."""
    process = subprocess.Popen(arguments)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return int(usage.ru_maxrss)


def test_the_first_ids_as_a_whole_process() -> None:
    """The time a processor works, which another process on the machine does not lengthen much."""
    bare = [sys.executable, "-c", "import typer, rich.table, yaml"]
    first = [sys.executable, "-m", "shardctl", "simulate", "-d", "imagenet2012"]
    times = {
        name: min(_worked(run) for _ in range(15))
        for name, run in (("bare", bare), ("ours", first))
    }
    print(f"\nfirst 20: {times['ours']:.3f} s; bare imports {times['bare']:.3f} s")
    assert times["ours"] <= 3 * times["bare"]


def _worked(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_end_of_many_epochs_of_repeated_files() -> None:
    lengths = IMAGENET
    epochs = 10_000
    start = epochs * sum(lengths) - 1000

    def late() -> None:
        order_of(lengths, shuffle_seed=1, repeat_files=True, epochs=epochs).read(start, start + 10)

    def first() -> None:
        order_of(lengths, shuffle_seed=1, repeat_files=True, epochs=epochs).read(0, 10)

    far, near = best(late, first)
    uneven = tuple(np.random.default_rng(0).integers(1000, 1500, 1024).tolist())
    order = order_of(uneven, shuffle_seed=1, repeat_files=True, epochs=epochs)
    began = time.process_time()
    order.read(order.num_examples - 10, order.num_examples)
    carried = time.process_time() - began
    print(
        f"\nrepeated files: the end of 10,000 epochs in {far * 1e3:.0f} ms, the start in "
        f"{near * 1e3:.0f} ms; where files take other numbers of visits {carried:.1f} s"
    )
    assert far <= 0.2
    assert carried <= 15


def test_one_id_in_many_epochs() -> None:
    epochs = 2_000
    order = order_of(IMAGENET, shuffle_seed=1, epochs=epochs)
    found: list[float] = []

    def together() -> None:
        began = time.perf_counter()
        for _ in order.positions_in_pieces([5]):
            found.append(time.perf_counter() - began)

    def one_by_one() -> None:  # a reading of each epoch, for a tenth of them
        rows, offsets = np.array([0]), np.array([5])
        for epoch in range(epochs // 10):
            order.forget_readings()
            order.reading(epoch).positions(rows, offsets)

    ours, theirs = best(together, one_by_one)
    each, before = ours / epochs * 1e6, theirs / (epochs // 10) * 1e6
    print(
        f"\none id in {epochs:,} epochs: {each:.0f} us an epoch, with a reading each "
        f"{before:.0f} us; the first after {found[0] * 1e3:.0f} ms"
    )
    assert before / each >= 3
