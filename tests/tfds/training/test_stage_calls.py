"""Stages as calls of tf.data: what hangs on how a script gives an argument."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from shardctl.core.shuffle.seeds import shuffle_kernel_seeds
from shardctl.core.stages.stages import Pipeline, SampleFromDatasets, Values
from shardctl.tfds.training.stage_calls import StageCalls

_SEEDS = shuffle_kernel_seeds(7, None)


def _no_reader(read: object) -> Any:
    raise AssertionError(read)


def _made(source: SampleFromDatasets) -> list[int]:
    dataset = StageCalls(reader=_no_reader).dataset(Pipeline(source=source))
    return [int(number) for number in dataset]


_INPUTS = tuple(Pipeline(source=Values(values=(10 * number,) * 20)) for number in range(3))


@pytest.mark.parametrize("seed", [7, (_SEEDS.seed, _SEEDS.seed2)])
def test_weights_of_64_bits_are_given_as_an_array(seed: int | tuple[int, int]) -> None:
    import tensorflow as tf

    def made(weight: float, dtype: Literal["float32", "float64"]) -> list[int]:
        weights = (weight, weight, 0.0)
        return _made(
            SampleFromDatasets(inputs=_INPUTS, weights=weights, seed=seed, weights_dtype=dtype)
        )

    assert made(1e-60, "float64") == made(1.0, "float64") == made(1.0, "float32")
    # 1e-60 is 0 in float32: nothing is left to choose.
    with pytest.raises(tf.errors.InvalidArgumentError):
        made(1e-60, "float32")


def test_a_mixture_by_the_seeds_of_the_kernel_is_that_of_its_seed() -> None:
    by_seed, by_pair = (
        _made(SampleFromDatasets(inputs=_INPUTS, weights=(0.2, 0.5, 0.3), seed=seed))
        for seed in (7, (_SEEDS.seed, _SEEDS.seed2))
    )
    assert by_seed == by_pair
    assert len(by_seed) == 60
