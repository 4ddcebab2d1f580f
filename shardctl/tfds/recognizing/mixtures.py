"""Mixtures: the selector of `sample_from_datasets`, and the choices of `choose_from_datasets`.

Source: tensorflow/python/data/ops/sample_from_datasets_op.py and choose_from_datasets_op.py; both
are a DirectedInterleaveDataset whose first input says which of the others is next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from shardctl.core.mixture.weights import weights_of_logits
from shardctl.core.stages.fields import KernelPair
from shardctl.errors import UsageError
from shardctl.tfds.recognizing.graph import Function, NoConstantError, Operation, constant
from shardctl.tfds.recognizing.seeds import kernel_pair

_FLOAT32_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What samples: weights (None: all alike), the kernel pair of its random numbers, and whether
    each iterator draws others."""

    weights: tuple[float, ...] | None
    dtype: Literal["float32", "float64"]
    pair: KernelPair | None
    rerandomize: bool | None


def sampling(selector: Operation, num_inputs: int) -> Sampling | None:
    """Return the sampling that a selector is, None where it is none."""
    function = selector.function
    if selector.op != "MapDataset" or function is None:
        return None
    logits = _logits(function, selector)
    batch = selector.input
    if logits is None or batch.op not in ("BatchDatasetV2", "BatchDataset"):
        return None
    numbers = batch.input
    if numbers.op not in ("RandomDataset", "RandomDatasetV2"):
        return None
    try:
        in_pairs = batch.number("batch_size") == 2
        if logits.shape != (1, num_inputs) or not in_pairs:
            return None
        return Sampling(
            weights=_weights(logits[0]),
            dtype="float64" if logits.dtype.itemsize > _FLOAT32_BYTES else "float32",
            pair=kernel_pair(numbers),
            rerandomize=numbers.flag("rerandomize_each_iteration") or None,
        )
    except (NoConstantError, UsageError):
        return None


def _logits(function: Function, selector: Operation) -> Any:
    """Return the logits of a function of a seed that is one draw of a multinomial distribution.

    They are captured, or a constant of the function where a script gives no weights.
    """
    if len(function.returned) != 1 or function.op(function.returned[0]) != "Squeeze":
        return None
    draw = function.inputs(function.returned[0])[0]
    if function.op(draw) != "StatelessMultinomial":
        return None
    logits, count, seed = function.inputs(draw)
    one = function.constant(count)
    if seed != function.parameters[0] or one is None or int(one) != 1:
        return None
    if logits in function.parameters[1:]:
        captured = selector.others
        place = function.parameters.index(logits) - 1
        return constant(captured[place]) if place < len(captured) else None
    return function.constant(logits)


def _weights(logits: Any) -> tuple[float, ...] | None:
    """Return weights with these logarithms; None for all ones, where a script gives no weights."""
    if (logits == 1).all():
        return None
    if logits.dtype.itemsize > _FLOAT32_BYTES:
        return tuple(map(_in_few_digits, logits.tolist()))
    return weights_of_logits(logits)


def _in_few_digits(logit: float) -> float:
    """Return a number whose logarithm this is, as people write it, or else the nearest there is.

    >>> _in_few_digits(math.log(0.7))
    0.7
    """
    near = math.exp(logit)
    said = (float(f"{near:.{digits}g}") for digits in range(1, 17))
    return next((weight for weight in said if math.log(weight) == logit), near)


def chosen_values(operation: Operation) -> Sequence[int] | None:
    """Return the whole numbers that a source of choices lists, None where it is none.

    Those of a range, which may be of any length, are a range.
    """
    try:
        if operation.op == "RangeDataset":
            return range(*(operation.number(name) for name in ("start", "stop", "step")))
    except NoConstantError:
        return None
    if operation.op not in ("TensorSliceDataset", "TensorDataset") or len(operation.others) != 1:
        return None
    values = constant(operation.others[0])
    rank = 1 if operation.op == "TensorSliceDataset" else 0
    if values is None or values.ndim != rank or values.dtype.kind not in "iu":
        return None
    return tuple(int(value) for value in values.reshape(-1))
