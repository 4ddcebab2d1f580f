"""Options in force at the end of a pipeline."""

from __future__ import annotations

from typing import Any

from shardctl.stages.stages import WithOptions
from shardctl.tfds.recognizing.graph import Options, operation_of, options_in_force, options_of


def _with(dataset: Any, **values: Any) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    for name, value in values.items():
        if name in ("deterministic", "experimental_warm_start"):
            setattr(options, name, value)
        else:
            setattr(options.experimental_optimization, name, value)
    return dataset.with_options(options)


def test_what_one_call_states_and_what_is_in_force() -> None:
    import tensorflow as tf

    inner = _with(tf.data.Dataset.range(3), deterministic=False, shuffle_and_repeat_fusion=False)
    outer = _with(inner.map(lambda n: n + 1), deterministic=True, noop_elimination=False)
    assert options_of(operation_of(inner)) == Options(deterministic=False, fusion=False)
    found = options_in_force(outer)
    assert found == Options(deterministic=True, fusion=False, noop_elimination=False)
    assert found.in_force(options_of(operation_of(inner))) == WithOptions(fusion=False)
    assert not found.hands_out_what_is_ready
    assert not found.removes_nothing_done


def test_operations_made_deterministic_stand_above_options() -> None:
    options = Options(deterministic=False, op_determinism=True)
    assert not options.hands_out_what_is_ready
    assert options.in_force(Options(deterministic=False)) == WithOptions()
    assert Options().removes_nothing_done
    assert not Options(optimizations=False).removes_nothing_done
    assert Options(optimizations=False, noop_elimination=True).removes_nothing_done
