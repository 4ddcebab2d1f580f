"""Orders of every kind at random, and their examples one by one, as a test counts them."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from tests.order.order_cases import read_settings
from tests.strategies import shard_lengths

_SPECS = [
    "train",
    "train",
    "train[20%:80%]",
    "train[1:-1]",
    "test+train",
    "train[:70%]+train[30%:]",
    "train[:1]+train[:1]",
    "train+test[50%:]+other",
]
_STAGES = [
    "read(train) | shuffle(3, seed=7)",
    "read(train) | repeat(2) | shuffle(5, seed=1) | batch(3)",
    "read(train) | repeat | shuffle(5, seed=1)",
    "read(test+train, shuffle_seed=3) | take(7)",
    "read(train[20%:]) | skip(2) | repeat(2)",
    "sample_from_datasets(read(train), read(test), weights=[0.7, 0.3], seed=1) | take(9)",
    "choose_from_datasets([train, test], choices=range(2) | repeat(3)) | batch(2)",
]
_LOADERS: list[dict[str, Any]] = [
    {"loader": "torch", "shuffle": True, "shuffle_seed": 1},
    {"loader": "torch", "shuffle": False, "host": "1/3"},
    {"loader": "grain", "shuffle_seed": 3, "host": "0/2"},
    {"loader": "grain", "batch": 3, "epochs": 2},
    {"loader": "hf", "shuffle_seed": 3, "epochs": 2},
    {"loader": "hf", "streaming": True, "buffer": 4, "shuffle_seed": 3},
]


def dataset_of(**lengths: tuple[int, ...]) -> Dataset:
    """Return a dataset from the lengths of the shards of each split."""
    splits = (Split(name=name, shard_lengths=shards) for name, shards in lengths.items())
    return Dataset(name="d", splits=tuple(splits))


@st.composite
def orders(draw: st.DrawFn) -> Order:
    """Orders of TFDS's reader, of stages and of other loaders, of a few shards."""
    dataset = dataset_of(
        **{name: draw(shard_lengths(12, 20)) for name in ("test", "train", "other")}
    )
    kind = draw(st.sampled_from(["tfds", "tfds", "stages", "loader"]))
    spec: str | None = draw(st.sampled_from(_SPECS))
    settings: ReadSettings | dict[str, Any]
    if kind == "tfds":
        settings = draw(read_settings())
    elif kind == "stages":
        spec, settings = None, {"stages": draw(st.sampled_from(_STAGES))}
    else:
        settings = draw(st.sampled_from(_LOADERS))
    try:
        return plan_order(dataset, spec, settings).order
    except ShardctlError:
        assume(False)
        raise


def examples(order: Order, start: int, stop: int) -> list[tuple[str, int, int]]:
    """Return (split, shard, id) at each of the positions, by counting through the shards."""
    found = []
    for code in order.read(start, stop).tolist():
        name = order.codes.names([code])[0]
        split_name, _, number = name.rpartition(":")
        if not order.codes.several_splits:
            split_name = order.ranges[0].split.name
        split = next(split for split in order.dataset.splits if split.name == split_name)
        left, shard = int(number), 0
        while left >= split.shard_lengths[shard]:
            left, shard = left - split.shard_lengths[shard], shard + 1
        found.append((split_name, shard, int(number)))
    return found


def epoch_of(order: Order) -> list[tuple[str, int, int]]:
    """Return the examples of the first epoch."""
    return examples(order, 0, min(order.epoch_size, order.num_examples))


def storage_of(order: Order) -> list[tuple[int, int]]:
    """Return (index of the split, id) of all that is read of an epoch, as often as it is read."""
    reads = order.reads_of_epoch
    rows = zip(reads.split.tolist(), reads.first.tolist(), reads.take.tolist(), strict=True)
    return [(split, number) for split, first, take in rows for number in range(first, first + take)]
