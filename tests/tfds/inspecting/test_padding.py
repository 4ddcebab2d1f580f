"""Constant elements beside a dataset: their id is `pad`, beside what TensorFlow really yields."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.tfds.training.pipeline import resume_like
from tests.cases import first, seed_of_test
from tests.tfds_datasets import build_dataset

pytestmark = pytest.mark.tensorflow

PAD = -5  # no example has this value
TEST = [14, 9]


@pytest.fixture(scope="module")
def data(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("padding")
    build_dataset(root, "toy", {"train": [17, 5, 0, 12], "test": TEST})
    return root / "toy" / "1.0.0"


def read(data: Path, split: str = "test") -> Any:
    import tensorflow_datasets as tfds

    ds = tfds.builder_from_directory(data).as_dataset(split=split)
    return ds.map(lambda example: example["id"] + 0)


def pads(count: int | None) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(np.int64(PAD)).repeat(count)


def slices(values: list[int]) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(np.array(values, np.int64))


Make = Callable[[Path], Any]
# After the shapes of clu, of big_vision, of flax; and what else a script may do with them.
SHAPES: dict[str, Make] = {
    "repeated": lambda d: read(d).concatenate(pads(5)).batch(4, drop_remainder=True),
    "slices": lambda d: read(d).concatenate(slices([PAD] * 5)).batch(4),
    "endless": lambda d: read(d).concatenate(pads(None)).batch(8).take(4).cache().repeat(2),
    "of a share": lambda d: read(d).shard(2, 1).concatenate(slices([PAD]).repeat(7)).batch(6),
    "mapped": lambda d: read(d).concatenate(pads(3).map(lambda i: i * 1)).batch(2).prefetch(1),
    "shuffled": lambda d: read(d, "train").concatenate(pads(9)).shuffle(8, seed=2).repeat(2),
    "before": lambda d: pads(2).concatenate(read(d)).batch(3),
    "whole batches": lambda d: read(d).batch(4, True).concatenate(pads(8).batch(4)),
    "two of them": lambda d: read(d).concatenate(pads(2)).concatenate(slices([PAD, PAD])).take(26),
    "two datasets": lambda d: read(d).concatenate(pads(3)).concatenate(read(d, "train")).batch(5),
}


def yielded(dataset: Any) -> list[int]:
    return [int(i) for element in dataset.as_numpy_iterator() for i in np.ravel(element)]


def values(ids: Any) -> list[int]:
    """Return ids as the examples have them, which count from 0 in each split."""
    return [PAD if each == "pad" else int(str(each).rpartition(":")[2]) for each in ids]


def check(make: Callable[[], Any], generator: random.Random) -> None:
    found, dataset = shardctl.inspect(make), make()
    assert found.predictable, found.refused or found.open
    passes = [yielded(dataset) for _ in range(3)]
    assert passes == [values(found.ids(index)) for index in range(3)]
    steps = sum(1 for _ in make())
    for index in sorted(generator.sample(range(steps + 1), min(3, steps + 1))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("error", UserWarning)  # nothing is read again from the start
            rest = resume_like(make, steps=index)
        assert yielded(rest) == yielded(make().skip(index)), index


@pytest.mark.parametrize("shape", first(3, SHAPES))
def test_padding_comes_where_it_is_said_to(data: Path, shape: str) -> None:
    check(lambda: SHAPES[shape](data), random.Random(0))


@pytest.mark.parametrize("case", first(2, range(8)))
def test_padding_among_random_stages(data: Path, case: int) -> None:
    generator = random.Random(f"{seed_of_test()} {case}")
    count, seed = generator.randrange(1, 9), generator.randrange(100)
    stages: list[Callable[[Any], Any]] = [
        lambda ds: ds.concatenate(pads(count)),
        lambda ds: ds.shuffle(6, seed=seed),
        lambda ds: ds.batch(3).unbatch(),
        lambda ds: ds.repeat(2),
        lambda ds: ds.skip(2),
        lambda ds: ds.shard(2, 0),
    ]
    chosen = [*generator.choices(stages, k=2), stages[0], *generator.choices(stages, k=2)]

    def make() -> Any:
        ds = read(data, "train")
        for stage in chosen:
            ds = stage(ds)
        return ds.batch(4)

    check(make, generator)


def test_what_differs_is_no_padding(data: Path) -> None:
    assert "pad" not in shardctl.inspect(read(data).concatenate(slices([1, 2]))).ids()
    # Two real datasets: nothing is padding.
    both = shardctl.inspect(read(data).concatenate(read(data, "train[:2]")))
    assert "pad" not in both.ids()


def test_a_batch_size_is_filled_and_counted() -> None:
    stages = "concatenate(pad(5)) | batch(8, drop_remainder=True)"
    files = (ShardFiles(pattern="toy-test-\0", num_shards=2),)
    split = Split(name="test", shard_lengths=TEST, files=files)
    dataset = Dataset(name="toy", splits=(split,))
    # 23 examples and 5 of padding: 3 full batches, the last with one of padding, and a partial.
    found = shardctl.evaluate(dataset, "test", {"stages": stages})
    assert (found.num_examples.tolist(), found.padding.tolist(), found.num_lost) == ([23], [9], 0)
    assert found.own_padding == {"ragged": 5, "drop": 1}
    simulated = shardctl.simulate(dataset, "test", {"stages": stages}, take=None)
    assert simulated.ids.tolist() == [*range(23), -1]
    located = shardctl.locate(dataset, "test", {"stages": stages}, id="pad", position=0)
    assert [match.position for match in located.matches] == [0, 23]
    assert [match.filename is None for match in located.matches] == [False, True]
    taken = shardctl.snapshot(dataset, "test", {"stages": stages})
    fewer = shardctl.snapshot(dataset, "test", {"stages": stages.replace("8", "23")})
    assert shardctl.diff(taken, taken).equal
    assert not shardctl.diff(taken, fewer).equal
    mixed = "choose_from_datasets([test, pad(9)], choices=range(2) | repeat)"
    of_mixture = shardctl.quality(dataset, settings={"stages": mixed}).score
    alone = shardctl.quality(dataset, "test", {"stages": "take(10)"}).score
    assert abs(float(of_mixture) - float(alone)) < 0.05
