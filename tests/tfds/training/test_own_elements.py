"""Dataset objects whose maps and batches are given other elements than their own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import as_settings
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.tfds.training.edited_graph import EditedGraph, NotRebuildable
from shardctl.tfds.training.own_elements import (
    OwnElements,
    Rest,
    element_after,
    file_source,
    node_source,
    num_examples_before,
    num_examples_of,
)
from shardctl.verbs.inspect.answer import CountedElements
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
    def counted(stages: str) -> CountedElements:
        return CountedElements(as_settings({"stages": stages}))

    endless = counted("range(3) | repeat | batch(2)")
    assert (endless.num_steps, endless.steps_up_to(100)) == (None, 100)
    assert endless.examples_in_steps(0, 3)[1].tolist() == [0, 1, 2, 0, 1, 2]
    far = counted("range(3) | repeat(1000000000) | batch(2)")
    assert (far.num_steps, num_examples_of(far)) == (1500000000, None)
    assert element_after(endless, 1000) == element_after(far, 1000) == 500
    near = counted("range(100001) | batch(1)")
    assert (near.num_steps, near.steps_up_to(200_000)) == (100_001, 100_001)
    assert (num_examples_of(near), element_after(near, 100_001)) == (100_001, 100_001)
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


# Elements of sources by their places.


def test_records_come_in_the_order_asked_for(tf: Any, tfds: Any, tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [300, 0, 7], "test": [4]})
    decode = tfds.builder_from_directory(folder).info.features.deserialize_example
    dataset = read_tfds_folder(folder)
    codes = ExampleCodes(dataset, ["test", "train"])
    rng = random.Random(3)
    for with_ids in (False, True):
        source = file_source(dataset, codes, with_ids=with_ids)
        for _ in range(3):
            wanted = np.array([rng.randrange(311) for _ in range(rng.randrange(40))], np.int64)
            found = source.elements(wanted)
            ids = [int(decode(tf.constant(element[-1]))["id"]) for element in found]
            assert ids == codes.split_ids(wanted).tolist()
            if with_ids:
                assert [e[0].decode() for e in found] == codes.tfds_ids(wanted)
            add_cases()


def test_a_file_is_read_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = read_tfds_folder(build_dataset(tmp_path, splits={"train": [400]}))
    source = file_source(dataset, ExampleCodes(dataset, ["train"]), with_ids=False)
    opened, real = list[Any](), source.open

    def noted(*of: Any) -> Any:
        opened.append(of)
        return real(*of)

    monkeypatch.setattr(source, "open", noted)
    for start in range(0, 400, 100):
        source.elements(np.arange(start, start + 100))
    assert opened == [(0, 0)]


def test_elements_of_a_node_are_those_of_the_dataset(tf: Any) -> None:
    own = tf.data.Dataset.from_tensor_slices(([5, 6, 7], ["a", "b", "c"])).shuffle(3)
    edited = EditedGraph(own)
    source = node_source(edited.graph, edited.root.leaves[0])
    assert source.elements(np.array([2, 0, 2])) == [(7, b"c"), (5, b"a"), (7, b"c")]


# Dataset objects beside the order that is predicted of them.


class Given(CountedElements):
    """Batches of these widths over 0, 1, 2, .."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def steps_up_to(self, stop: int) -> int:
        return min(stop, len(self.sizes))

    def examples_in_steps(self, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
        bounds = np.cumsum([0, *self.sizes])
        codes = np.arange(bounds[start], bounds[stop])
        return np.zeros_like(codes), codes, np.diff(bounds)[start:stop]


def test_windows_end_behind_partial_batches(tf: Any) -> None:
    edited = EditedGraph(tf.data.Dataset.range(40).shuffle(9).batch(3).repeat(2))
    sizes = [3, 3, 1, 3, 2, 2, 3, 3, 3, 3]
    source = node_source(edited.graph, edited.root.leaves[0])
    rest = Rest(edited=edited, sources=[source], elements=Given(sizes), start=1, window=9)
    windows = [window.tolist() for window in rest.windows()]
    assert windows == [[1, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 10]]
    found = [batch.tolist() for batch in rest.dataset().as_numpy_iterator()]
    assert [len(batch) for batch in found] == sizes[1:]
    assert [value for batch in found for value in batch] == list(range(3, 26))


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
