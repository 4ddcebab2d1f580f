"""Pipelines at random, and what tf.data makes of each over ranges that stand for files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange
from tests.strategies import shard_lengths
from tests.tfdata.shuffle_oracles import EDGE_SEEDS

seeds = st.sampled_from(EDGE_SEEDS) | st.integers(0, 5) | st.integers(-(2**70), 2**70)
flags: st.SearchStrategy[bool | None] = st.sampled_from([None, True, False])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline over slices [start, stop) of one split."""

    lengths: tuple[int, ...]
    slices: tuple[tuple[int, int], ...]
    settings: ReadSettings

    def order(self, pass_index: int = 0) -> Order:
        """Return the order that is predicted for a pass."""
        split = Split(name="train", shard_lengths=self.lengths)
        ranges = [SplitRange(split=split, start=start, stop=stop) for start, stop in self.slices]
        dataset = Dataset(name="d", splits=(split,))
        return ReaderOrder(dataset, ranges, changed(self.settings, pass_index=pass_index))


def changed(settings: ReadSettings, **values: Any) -> ReadSettings:
    """Return settings with some of them replaced."""
    return ReadSettings(**{**vars(settings), **values})


@st.composite
def read_settings(
    draw: st.DrawFn, num_examples: int = 40, hosts: Sequence[str] = ("files", "examples")
) -> ReadSettings:
    """Settings whose order TensorFlow fixes; those of hosts only of these kinds."""
    shuffled, buffered, repeated = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    arguments: dict[str, Any] = {
        "cycle": draw(st.none() | st.integers(1, 9)),
        "block": draw(st.sampled_from([1, 2, 3, 5, 16, 2**40])),
        "global_seed": draw(st.none() | seeds),
        "batch": draw(st.none() | st.integers(1, 9)),
        "reverse": draw(st.booleans()),
    }
    if shuffled:
        arguments |= {"shuffle_seed": draw(seeds), "reshuffle": draw(flags)}
        if arguments["global_seed"] is not None and draw(st.booleans()):
            arguments |= {"shuffle_files": True, "shuffle_seed": None, "deterministic": True}
    if draw(st.booleans()):
        arguments["epochs"] = draw(st.integers(1, 4))
    arguments["repeat_files"] = repeated and draw(st.booleans())
    if buffered:
        sizes = [1, 2, 3, 7, max(num_examples - 1, 1), num_examples + 1, 10 * num_examples + 1]
        if not arguments["repeat_files"]:
            sizes.append(-2)
        seed = draw(seeds) if arguments["global_seed"] is None else draw(st.none() | seeds)
        arguments |= {
            "buffer": draw(st.sampled_from(sizes)),
            "buffer_seed": seed,
            "buffer_reshuffle": draw(flags),
        }
    if arguments["batch"] is not None:
        arguments["drop_remainder"] = draw(st.booleans())
    if len(hosts) > 0 and draw(st.booleans()):
        count = draw(st.integers(1, 4))
        host = Host(index=draw(st.integers(0, count - 1)), count=count)
        arguments |= {"host": host, "host_by": draw(st.sampled_from(hosts))}
    return ReadSettings(**arguments)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Pipelines that TensorFlow can run: at least one example, and a file for each host."""
    lengths = draw(shard_lengths(max_shards=12, max_length=20).filter(any))
    total = sum(lengths)
    slices = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        bounds = sorted(draw(st.tuples(*[st.integers(0, total)] * 2)))
        slices.append(tuple(bounds) if draw(st.booleans()) else (0, total))
    if not any(stop - start for start, stop in slices):
        slices.append((0, total))
    num_read = sum(stop - start for start, stop in slices)
    settings = draw(read_settings(num_read))
    case = Case(lengths=lengths, slices=tuple(slices), settings=settings)
    if settings.host is not None and len(instructions(case)) < settings.host.count:
        settings = changed(settings, host_by="examples")
        case = Case(lengths=lengths, slices=case.slices, settings=settings)
    return case


def instructions(case: Case) -> list[tuple[int, int]]:
    """Return (first id, count) of each piece of a file that is read, file by file."""
    found = []
    for start, stop in case.slices:
        first = 0
        for length in case.lengths:
            ids = [i for i in range(first, first + length) if start <= i < stop]
            if ids:
                found.append((ids[0], len(ids)))
            first += length
    return found[::-1] if case.settings.reverse else found


def tensorflow_dataset(tf: Any, case: Case) -> Any:
    """Return the pipeline as TFDS's reader and a user behind it build it, over ranges."""
    settings = case.settings
    host = settings.host or Host(index=0, count=1)
    tf.random.set_seed(settings.global_seed)
    pieces = tf.constant(instructions(case), tf.int64)
    files = tf.data.Dataset.from_tensor_slices((pieces[:, 0], pieces[:, 1]))
    if settings.host_by == "files":
        files = files.shard(host.count, host.index)
    if settings.shuffles_files:
        files = files.shuffle(
            len(pieces), seed=settings.shuffle_seed, reshuffle_each_iteration=settings.reshuffle
        )
    if settings.repeat_files:
        files = files.repeat()
    dataset = files.interleave(
        lambda start, count: tf.data.Dataset.range(start, start + count),
        cycle_length=settings.cycle_length(ordered=False),
        block_length=settings.block,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    if not settings.repeat_files and settings.host_by != "files":
        total = sum(count for _, count in instructions(case))
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(total))
    return behind_the_reader(dataset, settings, case.order().epoch_size)


def behind_the_reader(dataset: Any, settings: ReadSettings, epoch_size: int) -> Any:
    """Return what a user makes of the reader's dataset."""
    if settings.host is not None and settings.host_by == "examples":
        dataset = dataset.shard(settings.host.count, settings.host.index)
    if settings.buffer is not None:
        dataset = dataset.shuffle(
            settings.buffer,
            seed=settings.buffer_seed,
            reshuffle_each_iteration=settings.buffer_reshuffle,
        )
    if settings.repeat_files:
        dataset = dataset.take(epoch_size * settings.epochs)
    elif settings.epochs > 1:
        dataset = dataset.repeat(settings.epochs)
    if settings.batch is not None:
        dataset = dataset.batch(settings.batch, drop_remainder=settings.drop_remainder)
    return dataset


def elements(dataset: Any, value: Callable[[Any], Any] = int) -> list[Any]:
    """Return one pass over a dataset of numbers or batches of them, as a flat list."""
    return [
        value(element)
        for batch in dataset.as_numpy_iterator()
        for element in (batch if getattr(batch, "ndim", 0) else [batch])
    ]
