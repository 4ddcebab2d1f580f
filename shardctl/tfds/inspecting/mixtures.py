"""Mixtures: the selector of `sample_from_datasets`, and the choices of `choose_from_datasets`.

Source: tensorflow/python/data/ops/sample_from_datasets_op.py and choose_from_datasets_op.py; both
are a DirectedInterleaveDataset whose first input says which of the others is next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shardctl.core.stages.fields import KernelPair
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.graph import Function, NoConstantError, Operation, constant
from shardctl.tfds.inspecting.seeds import kernel_pair

_MOST_DIGITS = 9  # of a float32, as people write it


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What samples: weights (None: all alike), the kernel pair of its random numbers, and whether
    each iterator draws others."""

    weights: tuple[float, ...] | None
    pair: KernelPair | None
    rerandomize: bool | None


def sampling(selector: Operation, num_inputs: int) -> Sampling | None:
    """Return the sampling that a selector is, None where it is none."""
    function = selector.function
    if selector.op != "MapDataset" or function is None or not _is_multinomial(function):
        return None
    batch = selector.input
    if batch.op not in ("BatchDatasetV2", "BatchDataset") or len(selector.others) != 1:
        return None
    numbers = batch.input
    if numbers.op not in ("RandomDataset", "RandomDatasetV2"):
        return None
    logits = constant(selector.others[0])
    try:
        pairs = batch.number("batch_size") == 2
        if logits is None or logits.shape != (1, num_inputs) or not pairs:
            return None
        pair = kernel_pair(numbers)
    except NoConstantError:
        return None
    return Sampling(
        weights=weights_of_logits(logits[0]),
        pair=pair,
        rerandomize=numbers.flag("rerandomize_each_iteration") or None,
    )


def _is_multinomial(function: Function) -> bool:
    """Return whether a function of (seed; logits) is one draw of a multinomial distribution."""
    if len(function.parameters) != 2 or len(function.returned) != 1:
        return False
    squeeze = function.returned[0]
    if function.op(squeeze) != "Squeeze":
        return False
    draw = function.inputs(squeeze)[0]
    if function.op(draw) != "StatelessMultinomial":
        return False
    logits, count, seed = function.inputs(draw)
    one = function.constant(count)
    return (seed, logits) == function.parameters and one is not None and int(one) == 1


def weights_of_logits(logits: Any) -> tuple[float, ...] | None:
    """Return weights whose logarithms are exactly these, in the fewest digits; None for all ones.

    TensorFlow writes logits of 1.0 where a script gives no weights.

    >>> import numpy as np
    >>> weights_of_logits(np.log(np.array([0.7, 0.3], np.float32)))
    (0.7, 0.3)
    >>> weights_of_logits(np.ones(2, np.float32)) is None
    True
    """
    if (logits == 1).all():
        return None
    return tuple(_weight(logit) for logit in logits)


def _weight(logit: Any) -> float:
    import numpy as np

    kind = logit.dtype.type
    near = float(np.exp(np.float64(logit)))
    for candidate in _candidates(near, kind):
        if tensorflow().math.log(tensorflow().constant(candidate, logit.dtype)).numpy() == logit:
            return float(candidate)
    raise NoConstantError("the weights of sample_from_datasets are no logarithms of numbers")


def _candidates(near: float, kind: Any) -> Iterator[float]:
    import numpy as np

    for digits in range(1, _MOST_DIGITS + 1):
        yield float(f"{near:.{digits}g}")
    value = kind(near)
    below = above = value
    for _ in range(64):
        yield float(below)
        yield float(above)
        below, above = np.nextafter(below, kind(0)), np.nextafter(above, kind(np.inf))


def chosen_values(operation: Operation) -> tuple[int, ...] | None:
    """Return the whole numbers that a source of choices lists, None where it is none."""
    try:
        if operation.op == "RangeDataset":
            start, stop, step = (operation.number(name) for name in ("start", "stop", "step"))
            return tuple(range(start, stop, step))
    except NoConstantError:
        return None
    if operation.op not in ("TensorSliceDataset", "TensorDataset") or len(operation.others) != 1:
        return None
    values = constant(operation.others[0])
    rank = 1 if operation.op == "TensorSliceDataset" else 0
    if values is None or values.ndim != rank or values.dtype.kind not in "iu":
        return None
    return tuple(int(value) for value in values.reshape(-1))
