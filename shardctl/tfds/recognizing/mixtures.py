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
from shardctl.tfds.recognizing.graph import Function, NoConstantError, Operation, constant
from shardctl.tfds.recognizing.seeds import kernel_pair

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
            weights=weights_of_logits(logits[0]),
            pair=kernel_pair(numbers),
            rerandomize=numbers.flag("rerandomize_each_iteration") or None,
        )
    except NoConstantError:
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
