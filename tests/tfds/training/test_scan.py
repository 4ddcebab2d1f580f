"""Stages that data decides, scanned once, beside what TensorFlow yields."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.tfds
from shardctl.errors import DatasetError, UnpredictableOrderError
from shardctl.saved.scan_file import read_scan
from shardctl.tfds.inspecting.inspect import inspected
from shardctl.tfds.inspecting.watch import Lines, Returned
from shardctl.tfds.training.own_elements import OwnElements
from shardctl.tfds.training.scan import Scans
from tests.cases import counted, few_or_many, first
from tests.tfds_datasets import build_dataset

pytestmark = pytest.mark.filterwarnings("ignore:.*read again from its start")
NUM_EXAMPLES = 66


@pytest.fixture(scope="module")
def world(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that reads a dataset with shuffled files, as TFDS does."""
    root = tmp_path_factory.mktemp("scanned")
    folder = build_dataset(root, "toy", {"train": [20, 0, 17, 29], "other": [5, 6]})

    def read(split: str = "train") -> Any:
        config = tfds.ReadConfig(shuffle_seed=3)
        builder = tfds.builder_from_directory(folder)
        return builder.as_dataset(split=split, shuffle_files=True, read_config=config)

    return read


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scanned(dataset: Any) -> Any:
    scans = Scans(folder=Path(), runs=True)
    return inspected(Returned(dataset=dataset), lines=Lines(), loop="python", scans=scans)


def rows(dataset: Any) -> list[list[int]]:
    """Return the ids in each element, whose examples are rows full of their own id plus one."""
    first = (next(iter(e.values())) if isinstance(e, dict) else e for e in dataset)
    parts = (np.asarray(one.to_tensor() if hasattr(one, "to_tensor") else one) for one in first)
    return [[int(v) - 1 for v in part.ravel() if v] for part in parts]


def once(row: list[int]) -> list[int]:
    return list(dict.fromkeys(row))


def is_answered(make: Callable[[], Any], found: Any, ids_in: Callable[[list[int]], Any]) -> None:
    """Compare three passes, and the rest at three counts."""
    assert found.predictable, (found.open, found.refused)
    dataset = make()
    for index in range(3):
        order = OwnElements.of(dataset, found, index).elements
        steps = range(order.steps_up_to(1 << 40))
        predicted = [order.examples_in_steps(step, step + 1)[1].tolist() for step in steps]
        assert predicted == list(map(ids_in, rows(dataset)))
    whole = rows(make())
    for step in (0, len(whole) // 2, len(whole)):
        assert rows(shardctl.tfds.resume_like(make(), steps=step)) == whole[step:]


def drawn(read: Any, number: int) -> tuple[Callable[[], Any], Callable[[list[int]], Any]]:
    """Return a random pipeline with a stage of each kind, and what its elements say of ids."""
    import tensorflow as tf

    draw = random.Random(f"scan-{number}")
    values = [draw.choice([0, 1, 1, 2, 3]) for _ in range(NUM_EXAMPLES)]
    kind = ["filter", "take_while", "flat_map", "unbatch", "bucket", "group"][number % 6]
    seed, buffer, repeat = draw.randrange(99), draw.choice([1, 9, 100]), draw.randrange(1, 3)
    drop, bounds = draw.random() < 0.5, sorted(draw.sample(range(1, 4), 2))
    batched, filters = draw.random() < 0.5, draw.random() < 0.5
    sizes = [draw.randrange(1, 7) for _ in range(3)]

    def value(row: Any) -> Any:
        return tf.constant(values, tf.int64)[row - 1]

    def make() -> Any:
        sets = tf.data.Dataset
        ds = read().map(lambda example: example["id"] + 1)
        if filters:
            ds = ds.filter(lambda row: row % 5 != 0)
        ds = ds.shuffle(buffer, seed=seed)
        if kind == "filter":
            ds = ds.filter(lambda row: value(row) > 0)
        elif kind == "take_while":
            ds = ds.take_while(lambda row: row != 13)
        elif kind == "flat_map":
            ds = ds.flat_map(lambda row: sets.from_tensors(row).repeat(value(row)))
        elif kind == "unbatch":
            ds = ds.map(lambda row: tf.fill([value(row)], row)).unbatch()
        elif kind == "group":
            ds = ds.group_by_window(value, lambda key, w: w.batch(2 + key, drop), window_size=6)
        else:
            ds = ds.map(lambda row: tf.fill([1 + value(row)], row)).bucket_by_sequence_length(
                tf.size, bounds, sizes, drop_remainder=drop
            )
        if kind not in ("group", "bucket") and batched:
            ds = ds.batch(4)
        return ds.repeat(repeat)

    return make, once if kind == "bucket" else list


@few_or_many(2, 24)
def test_a_scan_says_what_tensorflow_yields(world: Any, num_cases: int) -> None:
    for number in counted(range(num_cases)):
        make, ids_in = drawn(world, number)
        is_answered(make, scanned(make()), ids_in)


def pack(dataset: Any, sizes: dict[str, int]) -> Any:
    """Return packed rows, written after what Tensor2Tensor's packer does."""
    import tensorflow as tf

    def packed(batch: Any) -> Any:
        first = next(iter(sizes))
        done = {k: tf.TensorArray(tf.int32, 0, True, element_shape=[n]) for k, n in sizes.items()}
        open_row = {k: tf.zeros([0], tf.int32) for k in sizes}

        def closed(done: Any, row: Any) -> Any:
            padded = {k: tf.pad(row[k], [[0, n - tf.size(row[k])]]) for k, n in sizes.items()}
            return {k: done[k].write(done[k].size(), padded[k]) for k in sizes}

        def step(index: Any, done: Any, row: Any) -> Any:
            own = {k: tf.boolean_mask(batch[k][index], batch[k][index] != 0) for k in sizes}
            fits = [tf.size(row[k]) + tf.size(own[k]) <= n for k, n in sizes.items()]
            does_fit = tf.reduce_all(fits)
            done = tf.cond(does_fit, lambda: done, lambda: closed(done, row))
            kept = {k: tf.where(does_fit, tf.size(row[k]), 0) for k in sizes}
            return index + 1, done, {k: tf.concat([row[k][: kept[k]], own[k]], 0) for k in sizes}

        count = tf.shape(batch[first])[0]
        shapes = {k: tf.TensorShape([None]) for k in sizes}
        _, done, row = tf.while_loop(
            lambda index, *_: index < count,
            step,
            (0, done, open_row),
            (tf.TensorShape([]), {k: tf.TensorShape(None) for k in sizes}, shapes),
        )
        return {k: array.stack() for k, array in closed(done, row).items()}

    return dataset.map(packed, num_parallel_calls=2).unbatch()


@pytest.mark.parametrize("batched", first(1, [1, 3]))
def test_rows_of_a_known_packer_hold_the_ids_of_their_examples(
    world: Any, tf: Any, batched: int
) -> None:
    def example(one: Any) -> Any:
        row = tf.cast(one["id"] + 1, tf.int32)
        return {"inputs": tf.fill([1 + row % 5], row), "targets": tf.fill([1 + row % 3], row)}

    def make() -> Any:
        ds = world().map(example).shuffle(30, seed=5)
        ds = pack(ds.padded_batch(11), {"inputs": 12, "targets": 9})
        return ds.batch(batched) if batched > 1 else ds

    is_answered(make, scanned(make()), once)


def test_what_depends_on_more_than_the_example_is_refused(world: Any, tf: Any) -> None:
    def rows() -> Any:
        return world().map(lambda example: example["id"])

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), 0)
    state = tf.Variable(0)
    twice = tf.data.Dataset.sample_from_datasets([rows(), rows()], seed=1)
    refused = {
        "Random": rows().filter(lambda row: tf.random.uniform([]) < 0.5),
        "PyFunc": rows().filter(lambda row: tf.numpy_function(lambda r: r > 3, [row], tf.bool)),
        "LookupTable": rows().filter(lambda row: table.lookup(tf.cast(row, tf.int32)) == 0),
        "ReadVariable": rows().filter(lambda row: state == 0),
        "several sources read the same": twice.filter(lambda row: row > 3),
        "counted": rows().enumerate().filter(lambda index, row: index % 2 == 0),
        "several examples": rows().batch(2).filter(lambda batch: batch[0] > 3),
        "one size": rows().group_by_window(lambda row: row % 2, lambda k, w: w, window_size=4),
        "order of completion": rows().group_by_window(
            lambda row: row % 2,
            lambda k, w: w.map(lambda row: row + 0, 4, deterministic=False).batch(4),
            window_size=4,
        ),
        "made by skip": rows().group_by_window(
            lambda row: row % 2, lambda k, w: w.skip(1).batch(4), window_size=4
        ),
        "rows of whole numbers": rows().batch(4).map(lambda b: b[b > 3]).unbatch(),
    }
    for reason, dataset in refused.items():
        assert reason in str(scanned(dataset).open[0].reason), reason


def test_a_filter_behind_a_mixture_is_scanned_in_each_of_its_sources(world: Any, tf: Any) -> None:
    def rows(split: str) -> Any:
        return world(split).map(lambda example: example["id"] + 1)

    def make() -> Any:
        one = rows("train[:30]").filter(lambda row: row % 2 == 0).shuffle(9, seed=2)
        mixed = tf.data.Dataset.sample_from_datasets([one, rows("train[30:]")], seed=1)
        return mixed.filter(lambda row: row % 5 != 0).repeat(2).batch(4)

    is_answered(make, scanned(make()), list)


def test_elements_of_sources_without_files_are_scanned(tf: Any) -> None:
    sets = tf.data.Dataset
    odd = sets.range(1, 22).filter(lambda row: row % 2 == 1)

    def make() -> Any:
        return odd.repeat(2).group_by_window(lambda x: x % 3, lambda k, w: w.batch(2), 4)

    is_answered(make, scanned(make()), list)
    mixed = sets.sample_from_datasets([odd.shuffle(4, seed=1), sets.range(1, 30)], seed=1)
    found = scanned(mixed).ids()
    assert [int(one.rpartition(":")[2]) + 1 for one in found] == list(mixed.as_numpy_iterator())
    # Nothing at all is scanned, too.
    assert scanned(sets.range(0).filter(lambda row: row > 1)).ids().tolist() == []


def test_scans_of_one_function_over_two_splits_are_kept_together(world: Any, tf: Any) -> None:
    def kept(split: str) -> Any:
        return world(split).map(lambda example: example["id"]).filter(lambda row: row % 3 == 0)

    def make() -> Any:
        padding = tf.data.Dataset.from_tensors(tf.constant(-1, tf.int64)).repeat(3)
        return kept("train").concatenate(kept("other")).concatenate(padding)

    found = scanned(make())
    order = found.order(0).order
    names = [str(name).rpartition(":")[2] for name in order.codes.names(order.read(0, 29))]
    assert [-1 if name == "pad" else int(name) for name in names] == list(map(int, make()))
    assert scanned(kept("other")).predictable
    assert scanned(make()).predictable


def test_a_changed_function_needs_another_scan(world: Any) -> None:
    def make(least: int) -> Any:
        return world().filter(lambda example: example["id"] > least).batch(2)

    assert scanned(make(3)).predictable
    assert shardctl.tfds.inspect(make(3)).predictable
    changed = shardctl.tfds.inspect(make(4))
    assert "of other functions" in changed.open[0].reason
    with pytest.raises(UnpredictableOrderError, match="scan again"):
        shardctl.tfds.resume_like(make(4), consumed=2)


def test_a_scan_that_was_interrupted_continues(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "shardctl.tfds.training.scan"
    for name, value in {"_PIECE": 10, "_SECONDS": 0}.items():
        monkeypatch.setattr(f"{module}.{name}", value)
    keep, seen = Scans.__call__.__globals__["_Scanned"]._keep, []

    def stopped(*args: Any) -> None:
        keep(*args)
        seen.append(int((args[3] >= 0).sum()))
        if len(seen) == 3:
            raise KeyboardInterrupt

    def make() -> Any:
        return world().group_by_window(
            lambda example: example["id"] % 3, lambda _, group: group.batch(4), window_size=8
        )

    monkeypatch.setattr(f"{module}._Scanned._keep", stopped)
    with pytest.raises(KeyboardInterrupt):
        scanned(make())
    assert seen[:3] == [10, 20, 30]
    assert "was interrupted" in (shardctl.tfds.inspect(make()).refused or "")
    found = scanned(make())
    assert seen[4] == seen[3] + 10
    assert sorted(found.ids().tolist()) == list(range(NUM_EXAMPLES))


def test_a_scan_of_a_part_is_no_scan_of_the_whole(world: Any) -> None:
    def make(split: str) -> Any:
        return world(split).filter(lambda example: example["id"] % 2 == 0)

    assert scanned(make("train[:20]")).ids().tolist() == list(range(0, 20, 2))
    assert "has not scanned all that this reads" in (
        shardctl.tfds.inspect(make("train")).refused or ""
    )
    assert len(scanned(make("train")).ids()) == NUM_EXAMPLES // 2
    (path,) = Path().glob("*.scan")
    kept = read_scan(os.fspath(path))
    assert (kept.call, kept.values["train"].shape) == ("filter", (NUM_EXAMPLES,))
    other = shardctl.Dataset(
        name="toy", splits=(shardctl.Split.even(name="train", num_examples=66, num_shards=2),)
    )
    with pytest.raises(DatasetError, match="another dataset"):
        shardctl.simulate(other, settings={"stages": f"filter(kept={path})"})
