"""The graph of a dataset: operations, arguments by their names, functions, options, seeds."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.stages.stages import WithOptions
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from shardctl.tfds.inspecting.graph import (
    NoConstantError,
    Options,
    operation_of,
    options_in_force,
    options_of,
)
from shardctl.tfds.inspecting.stage_of import global_seed_of, kernel_pair, stated_seed


def _sets() -> Any:
    import tensorflow as tf

    return tf.data.Dataset


def test_operations_have_their_inputs_and_arguments() -> None:
    batch = operation_of(_sets().range(9).shuffle(4, seed=1).batch(2, drop_remainder=True))
    ops = [batch.op, batch.input.op, batch.input.input.op]
    assert ops == ["BatchDatasetV2", "ShuffleDatasetV3", "RangeDataset"]
    assert (batch.number("batch_size"), batch.number("drop_remainder")) == (2, 1)
    assert batch.input.flag("reshuffle_each_iteration")
    with pytest.raises(NoConstantError, match="seed of TakeDataset is no constant"):
        operation_of(_sets().range(3).take(2)).number("seed")


def test_one_object_has_one_name_and_a_name_of_the_script_is_none() -> None:
    one = _sets().range(3)
    zipped = operation_of(_sets().zip((one, one, _sets().range(3))))
    first, second, third = (each.object_name for each in zipped.inputs)
    assert first == second != third
    assert operation_of(_sets().range(3, name="mine")).object_name is None


def test_a_long_pipeline_is_no_deep_recursion() -> None:
    dataset = _sets().range(3)
    for _ in range(300):
        dataset = dataset.skip(0)
    assert len(list(operation_of(dataset).all())) == 301


def test_what_has_no_graph_is_refused(tf: Any) -> None:
    copied = _sets().range(3).apply(tf.data.experimental.copy_to_device("/cpu:0"))
    with pytest.raises(
        UsageError, match=r"not write this .* inspect the dataset before that stage"
    ):
        operation_of(copied.take(2))


def _with(dataset: Any, **values: Any) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    for name, value in values.items():
        own = name in ("deterministic", "experimental_warm_start")
        setattr(options if own else options.experimental_optimization, name, value)
    return dataset.with_options(options)


def test_what_one_call_states_and_what_is_in_force() -> None:
    inner = _with(
        _sets().range(3),
        deterministic=False,
        shuffle_and_repeat_fusion=False,
        experimental_warm_start=True,
        apply_default_optimizations=False,
    )
    stated = options_of(operation_of(inner))
    assert stated == WithOptions(
        deterministic=False, fusion=False, warm_start=True, optimizations=False
    )
    found = options_in_force(
        _with(inner.map(lambda n: n + 1), deterministic=True, noop_elimination=False)
    )
    in_force = WithOptions(deterministic=True, fusion=False, warm_start=True, optimizations=False)
    assert found == Options(stated=in_force, noop_elimination=False)
    assert found.in_force(stated) == WithOptions(fusion=False, warm_start=True, optimizations=False)
    assert not found.hands_out_what_is_ready
    # Operations made deterministic stand above options.
    loose = WithOptions(deterministic=False)
    above = Options(stated=loose, op_determinism=True)
    assert Options(stated=loose).hands_out_what_is_ready
    assert not above.hands_out_what_is_ready
    assert above.in_force(loose) == WithOptions()


@pytest.mark.parametrize("global_seed", [None, 0, 5, 87654321])
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 2])
def test_a_stated_seed_gives_the_pair_that_it_was_made_of(
    seed: int, global_seed: int | None
) -> None:
    kernel = shuffle_kernel_seeds(seed, global_seed)
    pair = (kernel.seed, kernel.seed2)
    found = global_seed_of([pair])
    assert found == (None if global_seed == 87654321 else global_seed)
    assert stated_seed(pair, found) == seed


def test_pairs_of_several_global_seeds_stay_pairs() -> None:
    assert global_seed_of([(3, 1), (4, 1)]) is None
    assert global_seed_of([]) is None
    assert stated_seed((3, 1), None) == (3, 1)
    assert stated_seed((87654321, 2**33), None) == (87654321, 2**33)
    assert stated_seed(None, 3) is None


def test_the_pair_of_a_shuffle_without_seeds_is_none() -> None:
    from tensorflow.python.eager import context

    context.context()._seed = None
    numbers = _sets().range(3)
    assert kernel_pair(operation_of(numbers.shuffle(2))) is None
    assert kernel_pair(operation_of(numbers.shuffle(2, seed=0))) == (87654321, 0)
