"""Dataset objects whose maps and batches are given other elements than their own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import as_settings
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.tfds.training.edited_graph import EditedGraph, NotRebuildable
from shardctl.tfds.training.own_elements import (
    Opening,
    OwnElements,
    ReadPlan,
    Step,
    element_after,
    num_examples_before,
    num_examples_of,
)
from tests.cases import add_cases
from tests.forked_scripts import forking_python
from tests.tfds_datasets import build_dataset

DATASET = Dataset(name="d", splits=(Split(name="train", shard_lengths=(5, 5)),))


# Elements of orders: where each begins, and counts that end within one.


@pytest.mark.parametrize(
    "stages", ["batch(4) | repeat(2) | shuffle(1, seed=1)", "batch(4) | repeat(2)"]
)
def test_partial_batches_are_counted_as_they_are(stages: str) -> None:
    order = plan_order(DATASET, None, as_settings({"stages": stages})).order
    assert order.examples_in_steps(0, 6)[2].tolist() == [4, 4, 2, 4, 4, 2]
    assert [element_after(order, n) for n in (0, 4, 8, 10, 14, 20)] == [0, 1, 2, 3, 4, 6]
    assert [num_examples_before(order, n) for n in range(7)] == [0, 4, 8, 10, 14, 18, 20]
    for consumed, said in (
        (9, r"consumed=9 .* step 2, .* 8 to 9; .* 8 and 10"),
        (21, "yields 20 examples"),
        (-1, "consumed=-1"),
    ):
        with pytest.raises(UsageError, match=said):
            element_after(order, consumed)


def test_an_end_that_is_far_off_is_counted_and_not_followed_to() -> None:
    def counted(stages: str) -> Order:
        return plan_order(DATASET, None, as_settings({"stages": stages})).order

    endless = counted("range(3) | repeat | batch(2)")
    assert (endless.num_steps, endless.steps_up_to(100)) == (None, 100)
    assert endless.examples_in_steps(0, 3)[1].tolist() == [0, 1, 2, 0, 1, 2]
    far = counted("range(3) | repeat(1000000000) | batch(2)")
    assert (far.num_steps, num_examples_of(far)) == (1500000000, 3000000000)
    assert element_after(endless, 1000) == element_after(far, 1000) == 500
    near = counted("range(100001) | batch(1)")
    assert (near.num_steps, near.steps_up_to(200_000)) == (100_001, 100_001)
    with pytest.raises(UsageError, match="yields 100,001 examples"):
        element_after(near, 100_002)
    parted = counted("range(10) | batch(4) | repeat(3)")
    assert [num_examples_before(parted, n) for n in (0, 2, 3, 9)] == [0, 8, 10, 30]


# Graphs as trees of what each node does, and with other leaves.


def made(graph: EditedGraph, given: Any) -> list[Any]:
    import tensorflow as tf

    window = tf.data.Dataset.range(1).flat_map(lambda _: graph.applied(*given()))
    return [batch.tolist() for batch in window.as_numpy_iterator()]


def test_maps_and_batches_are_given_other_elements(tf: Any) -> None:
    sets, table = tf.data.Dataset, tf.constant([10, 20, 30], tf.int64)
    own = sets.range(3).map(lambda x: table[x]).shuffle(3).repeat(7).batch(2).skip(1)
    given = tf.constant([2, 0, 0, 1, 2], tf.int64)
    found = made(EditedGraph(own), lambda: ([sets.from_tensor_slices(given)], []))
    assert found == [[30, 10], [10, 20], [30]]


def test_a_mixture_follows_its_choices(tf: Any) -> None:
    sets = tf.data.Dataset
    parts = [sets.range(9).map(lambda x, k=k: x + k).batch(2) for k in (2, 3)]
    graph = EditedGraph(sets.sample_from_datasets(parts, seed=1))
    assert graph.full_width == 2
    choices = graph.choices(graph.merges[0], np.array([1, 1, 0, 0, 0, 0, 1, 1]))
    assert choices.tolist() == [1, 0, 0, 1]
    slices = sets.from_tensor_slices
    found = made(graph, lambda: ([sets.range(4), sets.range(4)], [slices(choices)]))
    assert found == [[3, 4], [2, 3], [4, 5], [5, 6]]


@pytest.mark.parametrize(
    "of",
    [
        lambda ds: ds.batch(2, drop_remainder=True).shuffle(3).batch(2),
        lambda ds: ds.batch(2).map(lambda x: x[::-1]).unbatch(),
        lambda ds: ds.batch(2).concatenate(ds.batch(3)),
    ],
)
def test_what_cannot_be_made_of_examples_is_refused(tf: Any, of: Any) -> None:
    with pytest.raises(NotRebuildable, match="batches"):
        EditedGraph(of(tf.data.Dataset.range(9)))


# Sources are read in their own order, and their elements come out as they are wanted.


def reading(batch: int, size: int) -> ReadPlan:
    return ReadPlan(size=batch, end=lambda key: size)


def came_out(plan: ReadPlan, wanted: list[list[int]], *, at_most: int) -> tuple[list[int], int]:
    """Return what comes out of a source of numbers, and how often it is opened."""
    events = list(plan.events(np.array(keys, np.int64) for keys in wanted))
    openings = [event for event in events if isinstance(event, Opening)]

    def batches() -> Iterator[list[int]]:
        for key, stop in openings:
            assert key <= stop
            for start in range(key, stop, plan.size):
                yield list(range(start, min(start + plan.size, stop)))
            yield []

    table: dict[int, int] = {}
    found = list[int]()
    steps = (event for event in events if isinstance(event, Step))
    for step, batch in zip(steps, batches(), strict=False):
        assert step.keys.tolist() == batch
        for number in step.gone.tolist():
            table.pop(number, None)
        table.update(zip(range(step.first, step.first + step.num_kept), batch, strict=False))
        assert len(table) <= at_most
        found += batch if step.num_direct else [table[number] for number in step.yielded.tolist()]
    return found, len(openings)


def test_elements_come_out_in_the_order_wanted() -> None:
    rng = random.Random(3)
    for _ in range(60):
        size, batch = rng.randrange(1, 90), rng.randrange(1, 9)
        wanted = list[list[int]]()
        for _ in range(rng.randrange(1, 6)):
            keys = [rng.randrange(size) for _ in range(rng.randrange(30))]
            wanted.append(sorted(keys) if rng.random() < 0.4 else keys)
        found, _ = came_out(reading(batch, size), wanted, at_most=size + batch)
        assert found == [key for keys in wanted for key in keys]
        add_cases()


def test_a_source_in_order_is_opened_once_and_not_held() -> None:
    plan = reading(16, 1000)
    pieces = [list(range(start, start + 100)) for start in range(100, 900, 100)]
    found, num_openings = came_out(plan, pieces, at_most=32)
    assert (found, num_openings) == (list(range(100, 900)), 1)


def test_a_shuffle_holds_about_its_buffer() -> None:
    order = real_shuffle(5000, 100)[700:]
    pieces = [order[start : start + 1600] for start in range(0, len(order), 1600)]
    plan = reading(16, 5000)
    found, num_openings = came_out(plan, pieces, at_most=150)
    assert (found, num_openings) == (order, 1)


def real_shuffle(size: int, buffer: int) -> list[int]:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(size).shuffle(buffer, seed=4)
    return [int(number) for number in dataset.as_numpy_iterator()]


def test_elements_of_several_shapes_are_read_in_turn(tf: Any) -> None:
    def make() -> Any:
        texts = tf.data.Dataset.from_tensor_slices((list("abcdef"), [1.5] * 6))
        rows = tf.data.experimental.from_list([[1] * n for n in range(1, 7)])
        return tf.data.Dataset.zip((texts, rows)).shuffle(3, seed=1).repeat(2)

    def plain(dataset: Any) -> list[Any]:
        return [(*part, row.tolist()) for part, row in dataset.as_numpy_iterator()]

    dataset = make()
    rest = OwnElements.of(dataset, inspect(dataset), 0).made(start=4)
    assert plain(rest) == plain(make())[4:]


# Dataset objects beside the order that is predicted of them.


def test_sections_end_behind_partial_batches(tf: Any) -> None:
    def make() -> Any:
        return tf.data.Dataset.range(10).shuffle(9, seed=1).batch(3).repeat(3)

    dataset = make()
    rest = OwnElements.of(dataset, inspect(dataset), 0).rest(2)
    sections = [section.tolist() for section in rest.sections()]
    assert sections == [[2, 4], [4, 8], [8, 12]]
    found = [batch.tolist() for batch in rest.dataset().as_numpy_iterator()]
    assert found == [batch.tolist() for batch in make().skip(2).as_numpy_iterator()]


def test_what_maps_keep_beside_examples_is_named(tf: Any) -> None:
    counter = tf.Variable(0)

    def drawn(x: Any) -> Any:  # in a function that the map's function calls
        return tf.cond(x > 3, lambda: tf.random.uniform([]), lambda: 0.0)

    maps: dict[str, Any] = {
        "": lambda x: x + tf.random.stateless_uniform([], [1, 2], maxval=9, dtype=tf.int64),
        "RandomUniform": drawn,
        "AssignAddVariableOp": lambda x: x + tf.cast(counter.assign_add(1), tf.int64),
        "PyFunc": lambda x: tf.numpy_function(lambda y: np.int64(y + 1), [x], tf.int64),
    }
    for op, function in maps.items():
        dataset = tf.data.Dataset.range(3).map(function)
        found = OwnElements.of(dataset, inspect(dataset), 0).state_warning
        assert (found is None) == (not op)
        assert f"({op})" in (found or "()")


LEFT = """
import sys
import tensorflow_datasets as tfds
import shardctl.tfds
from shardctl import ReadSettings
builder = tfds.builder_from_directory(sys.argv[1])
stages = (
    "sample_from_datasets([train[:60%] | shuffle(9, seed=1) | repeat, read(train, shuffle_seed=3)"
    " | repeat], weights=[0.7, 0.3], seed=42) | shuffle(20, seed=3) | take(1200) | batch(7)"
)
settings = ReadSettings(stages=stages)
position = shardctl.tfds.Position(builder, None, settings, consumed=70)
elements = iter(position.count(position.dataset()))
print(len(next(elements)))
"""


@pytest.mark.slow
def test_a_script_that_leaves_its_loop_early_ends(tmp_path: Path) -> None:
    # TFDS reads Parquet in Python, which keeps the threads that read ahead busy with it.
    lengths = [300, 0, 500, 170, 160, 10, 330]
    folder = build_dataset(tmp_path, splits={"train": lengths}, file_format="parquet")
    script = tmp_path / "left.py"
    script.write_text(LEFT)
    several = forking_python().run([[script, folder]] * 2, tmp_path, seconds=150)
    assert [ran.code for ran in several] == [0, 0], several
