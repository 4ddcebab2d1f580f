"""Graphs as the stages that they are: from the end of a pipeline to its sources."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.stages.stages import ChooseFromDatasets, Opaque, Pipeline, Range, WithOptions
from shardctl.stages.text import parse_stages
from shardctl.tfds.inspecting.graph import Options, constant, operation_of, options_in_force
from shardctl.tfds.inspecting.inspect import inspect
from shardctl.tfds.inspecting.stage_of import stages_of_operation
from shardctl.tfds.inspecting.walk import sampling, shared_objects, walked
from tests.cases import counted


def _sets() -> Any:
    import tensorflow as tf

    return tf.data.Dataset


def _pipeline(dataset: Any) -> Pipeline:
    return walked(operation_of(dataset), options_in_force(dataset)).pipeline


def _twice(sets: Any, dataset: Any) -> Any:
    return sets.zip((dataset.batch(2), dataset))


PIPELINES = Path(__file__).with_name("walked.txt").read_text("utf-8").splitlines()[2:]


@pytest.mark.parametrize("line", PIPELINES)
def test_pipelines_are_walked_to_their_sources(line: str) -> None:
    written, text = line.split(" => ")
    shuffled = "range(4) | shuffle(3, seed=[87654321, 1])"
    expected = parse_stages(text.replace("{0}", shuffled).replace("{1}", "range(9)"))
    assert _pipeline(eval(written, {**globals(), "d": _sets(), "r": _sets().range(9)})) == expected


def test_options_that_are_in_force(tf: Any) -> None:
    options, loose = tf.data.Options(), WithOptions(deterministic=False)
    options.deterministic = False
    operation = operation_of(_sets().range(3).with_options(options))
    assert stages_of_operation(operation, Options(stated=loose)) == (loose,)
    tight = Options(stated=WithOptions(deterministic=True))
    assert stages_of_operation(operation, tight) == (WithOptions(),)


def _last(dataset: Any) -> Any:
    (stage,) = stages_of_operation(operation_of(dataset), Options())
    assert isinstance(stage, Opaque)
    return stage


def test_what_nobody_knows_is_opaque(tf: Any) -> None:
    numbers = _sets().range(6)
    assert _last(numbers.cache("/nowhere/cache")).call == "cache(filename)"
    slid = tf.raw_ops.SlidingWindowDataset(
        input_dataset=numbers._variant_tensor,
        window_size=2,
        window_shift=1,
        window_stride=1,
        output_types=[tf.int64],
        output_shapes=[tf.TensorShape([None])],
    )
    spec = tf.TensorSpec([None], tf.int64)
    assert _last(tf.data.experimental.from_variant(slid, spec)) == Opaque(
        call="SlidingWindow", reason="SlidingWindowDataset is no stage that shardctl knows"
    )
    pairs = numbers.map(lambda n: tf.stack([n, n]))
    for taken in (
        pairs,
        pairs.batch(2).map(lambda rows: rows[:, 0]),
        pairs.batch(2, True).map(lambda rows: rows[:1]),
        pairs.batch(2, True).map(lambda rows: tf.reshape(rows, [-1])),
        pairs.batch(2, True).map(lambda rows: tf.reshape(rows, [2, 2])).unbatch(),
        numbers.batch(2, True).map(lambda rows: rows[: rows[0]]),
        pairs.batch(2).unbatch(),
        numbers.batch(2).concatenate(pairs),
        _sets().sample_from_datasets([pairs, numbers.batch(2)], seed=1),
    ):
        assert _last(taken.unbatch()).call == "unbatch"


def test_stages_are_told_in_their_order_with_their_depth() -> None:
    dataset = _sets().zip((_sets().range(3).batch(2), _sets().range(4))).repeat(2)
    found = walked(operation_of(dataset), options_in_force(dataset))
    # What is zipped by its index is one source.
    assert [(stage.part.name, stage.level) for stage in found.stages] == [
        *(("range", 1), ("batch", 1), ("range", 1), ("range", 0), ("repeat", 0))
    ]


def test_choices_of_any_number_are_not_listed() -> None:
    sets = _sets()
    for choices in (sets.range(1 << 60), sets.range(1, 1 << 60), sets.range(0, 1 << 60, 3)):
        chosen = sets.choose_from_datasets([sets.range(3)], choices.map(lambda n: n * 0))
        assert "map" in repr(_pipeline(chosen).source)
    kept = sets.choose_from_datasets([sets.range(3)], sets.range(1 << 60).take(1))
    source = _pipeline(kept).source
    assert isinstance(source, ChooseFromDatasets)
    assert source.choices.source == Range(stop=1 << 60)


# Selectors of mixtures, as TensorFlow makes them.


def _selector(weights: Any, seed: int = 4, num_inputs: int = 3, **more: Any) -> Any:
    inputs = [_sets().range(3) for _ in range(num_inputs)]
    mixed = _sets().sample_from_datasets(inputs, weights=weights, seed=seed, **more)
    return operation_of(mixed).inputs[0]


def test_weights_and_seeds_are_found() -> None:
    for weights, again in (((0.5, 0.3, 0.2), None), (None, None), ((1.0, 2.0, 3.0), True)):
        given = None if weights is None else list(weights)
        found = sampling(_selector(given, rerandomize_each_iteration=again), 3)
        seed = (87654321, 4)
        assert found == {
            "weights": weights,
            "weights_dtype": "float32",
            "seed": seed,
            "rerandomize": again,
        }
    numbers = _sets().range(3)
    assert sampling(operation_of(numbers), 3) is None
    assert sampling(operation_of(numbers.map(lambda n: n % 2)), 3) is None
    assert sampling(_selector([0.5, 0.3, 0.2]), 2) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_weights_have_exactly_the_logits(tf: Any, kind: type) -> None:
    generator = np.random.default_rng(1)
    weights = np.concatenate([generator.random(6), 10.0 ** generator.integers(-9, 9, 5)])
    selector = _selector(weights.astype(kind), num_inputs=len(weights))
    found = sampling(selector, len(weights))
    assert found is not None
    assert found["weights_dtype"] == kind.__name__
    again = tf.math.log(tf.constant(found["weights"], kind)).numpy()
    tolerance = 0.0 if kind is np.float32 else 1e-15  # one choice in 1e15
    np.testing.assert_allclose(again, constant(selector.others[0])[0], rtol=tolerance)


def test_what_reshuffles_or_is_cached_and_used_twice_is_shared() -> None:
    sets, numbers = _sets(), _sets().range(5)

    def shared(dataset: Any) -> list[int]:
        """Return which inputs are shared."""
        operation = operation_of(dataset)
        names = shared_objects(operation)
        return [i for i, one in enumerate(operation.inputs) if one.object_name in names]

    shuffled, cached = numbers.shuffle(3, seed=1), numbers.cache()
    assert shared(sets.zip((shuffled, shuffled.skip(1), numbers))) == [0]
    assert shared(cached.concatenate(cached)) == [0, 1]
    fixed = numbers.shuffle(3, seed=1, reshuffle_each_iteration=False)
    assert shared(sets.zip((fixed, fixed))) == []
    batched = shuffled.batch(2)
    assert list(shared_objects(operation_of(sets.zip((batched, batched)))).values()) == ["a"]
    assert shared(shuffled.batch(2)) == []


# What a function makes of numbers, read in turn.


def _in_turn(rng: random.Random) -> Any:
    """Return a random interleave of datasets that a function makes, with stages around it."""
    sets, length, num_parts = _sets(), rng.randrange(23), rng.randrange(1, 6)
    outside, size = sets.range(length), rng.randrange(1, 7)
    inner = rng.sample(["captured", "shuffle", "repeat", "skip", "cache"], rng.randrange(4))

    def part(index: Any) -> Any:
        made = outside if "captured" in inner else sets.range(length)
        made = made.shard(num_parts, num_parts - 1 - index)
        made = made.shuffle(size, seed=5) if "shuffle" in inner else made
        made = made.skip(index) if "skip" in inner else made
        made = made.cache() if "cache" in inner else made
        return made.repeat(2) if "repeat" in inner else made

    def staged(dataset: Any, seed: int) -> Any:
        stages: dict[str, Callable[[Any], Any]] = {
            "shuffle": lambda ds: ds.shuffle(size, seed=seed),
            "repeat": lambda ds: ds.repeat(2),
            "cache": lambda ds: ds.cache(),
            "map": lambda ds: ds.map(lambda number: number + 0),
        }
        for name in rng.sample(list(stages), rng.randrange(3)):
            dataset = stages[name](dataset)
        return dataset

    numbers, in_turn = staged(sets.range(num_parts), 1), {"cycle_length": rng.randrange(1, 5)}
    if rng.random() < 0.3:
        return staged(numbers.flat_map(part), 2)
    calls = {"num_parallel_calls": rng.choice([None, in_turn["cycle_length"], -1])}
    block = {"block_length": rng.randrange(1, 4)}
    return staged(numbers.interleave(part, **in_turn, **block, **calls), 2)


def test_datasets_that_a_function_makes_are_read_in_turn(tf: Any) -> None:
    for seed in counted(range(6)):
        dataset = _in_turn(random.Random(seed))
        found = inspect(dataset)
        for index in range(3):
            said = found.ids(index).tolist()
            assert said == list(dataset.as_numpy_iterator()), f"seed {seed}, pass {index}"
