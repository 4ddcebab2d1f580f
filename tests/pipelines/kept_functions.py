"""The functions of datasets, traced once: tracing takes half of the time of a small pipeline."""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

# What was traced, by what it follows from; kept objects keep their ids, which count for some.
_traced: dict[Hashable, dict[str, Any]] = {}
_kept: list[object] = []


@contextmanager
def functions_kept() -> Iterator[None]:
    """Let datasets that are made meanwhile share what is traced of functions that are alike.

    They are of the same code, over equal values, for elements of the same kind. None of them may
    draw random numbers: tf.random.set_seed counts where it is traced.
    """
    from tensorflow.python.data.ops.structured_function import StructuredFunctionWrapper

    trace = StructuredFunctionWrapper.__init__

    def traced_once(
        wrapper: Any, function: Any, call: str, dataset: Any = None, **how: Any
    ) -> None:
        import tensorflow as tf

        if not tf.executing_eagerly():  # inside a function, which is kept as a whole
            trace(wrapper, function, call, dataset, **how)
            return
        elements = None if dataset is None else dataset.element_spec
        key = _likeness(function), call, repr((elements, how))
        if key not in _traced:
            trace(wrapper, function, call, dataset, **how)
            _traced[key] = dict(vars(wrapper))
        vars(wrapper).update(_traced[key])

    with mock.patch.object(StructuredFunctionWrapper, "__init__", traced_once):
        yield


def _likeness(value: Any) -> Hashable:
    """Return what is equal for values with which a function is traced alike."""
    match value:
        case functools.partial():
            return _likeness(value.func), _likeness(value.args), _likeness(value.keywords)
        case types.FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            given = [value.__defaults__, value.__kwdefaults__, cells]
            return value.__module__, value.__code__, _likeness(given)
        case tuple() | list():
            return type(value), *map(_likeness, value)
        case dict():
            return _likeness(list(value.items()))
    if type(value).__name__ in ("Reader", "ExampleParser"):  # TFDS makes them for each dataset
        return type(value), _likeness(vars(value))
    try:
        hash(value)
    except TypeError:  # as a tensor
        _kept.append(value)
        return object, id(value)
    return type(value), value
