"""What the fields of stages take, in the ranges of tf.data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from shardctl.base.arguments import Kind, kind_of, text, whole_number
from shardctl.base.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.errors import UsageError

KernelPair = tuple[int, int]


def _number(rule: str, least: int, *also: int, most: int = INT64_MAX) -> Kind:
    def take(value: Any) -> int:
        number = whole_number(value)
        if not least <= number <= most and number not in also:
            raise UsageError(rule)
        return number

    return Kind(take=take, needed="a whole number", several="whole numbers")


def _times(value: Any) -> int | None:
    number = whole_number(value)
    if number == 0:
        raise UsageError("nothing would be left, and TensorFlow refuses it behind a shuffle")
    if not -1 <= number <= INT64_MAX:
        raise UsageError("1 or more is needed, or -1 for ever")
    return None if number == -1 else number


def _auto(least: int) -> Kind:
    """Return the kind of a number of threads or elements; -1 is AUTOTUNE, as in tf.data."""
    counted = _number(f'a number from {least} is needed, or "auto"', least, -1)

    def take(value: Any) -> int | str:
        if isinstance(value, str) and value == "auto":
            return "auto"
        number: int = counted.take(value)
        return "auto" if number == -1 else number

    return Kind(take=take, needed="a number or auto", several="numbers")


def _seed(value: Any) -> int | KernelPair:
    if not isinstance(value, tuple | list):
        return whole_number(value)
    pair = tuple(map(whole_number, value))
    if len(pair) != 2 or not all(-INT64_MAX <= seed <= INT64_MAX for seed in pair):
        raise UsageError("a seed, or the two seeds of the kernel, is needed")
    return pair


_NUMBERS = kind_of(tuple[float, ...])


def _weights(value: Any) -> tuple[float, ...]:
    weights: tuple[float, ...] = _NUMBERS.take(value)
    if any(weight < 0 for weight in weights) or not 0 < sum(weights) < float("inf"):
        raise UsageError("weights of 0 or more are needed, of which one is more than 0")
    return weights


def _word(value: Any) -> str:
    word = text(value)
    if not word:
        raise UsageError("a name is needed")
    return word


def _own_settings(value: Any) -> tuple[tuple[str, object], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value
    if not isinstance(pairs, Iterable) or isinstance(pairs, str):
        raise UsageError("settings by their names are needed")
    kept: dict[str, object] = {}
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UsageError("pairs of a name and a value are needed")
        name = text(pair[0])
        if name in kept:
            raise UsageError(f"{name} is there twice")
        kept[name] = tuple(pair[1]) if isinstance(pair[1], list) else pair[1]
    return tuple(kept.items())


_FROM_0 = f"a number from 0 to {INT64_MAX}"
_BUFFER = f"a number of elements from 1 to {INT64_MAX} is needed, or {WHOLE_DATASET} for all"
Buffer = Annotated[int, _number(_BUFFER, 1, WHOLE_DATASET)]
PositiveCount = Annotated[int, _number(f"a number from 1 to {INT64_MAX} is needed", 1)]
Number = Annotated[int, _number(f"{_FROM_0} is needed", 0)]
CountOrAll = Annotated[int, _number(f"{_FROM_0}, or -1 for all, is needed", -1)]
Cardinality = Annotated[int, _number(f"{_FROM_0}, or -1 for what has no end, is needed", -1)]
Times = Annotated[int, Kind(take=_times, needed="a whole number", several="whole numbers")]
Calls = Annotated[int | Literal["auto"], _auto(1)]
Held = Annotated[int | Literal["auto"], _auto(0)]
Seed = Annotated[int | KernelPair, Kind(take=_seed, needed="a seed", several="seeds")]
Weights = Annotated[tuple[float, ...], Kind(take=_weights, needed="weights", several="weights")]
Word = Annotated[str, Kind(take=_word, needed="a name", several="names")]
OwnSettings = Annotated[
    tuple[tuple[str, object], ...],
    Kind(take=_own_settings, needed="settings by their names", several="settings"),
]
