"""Kinds of arguments: what an annotation takes, and as what it is kept.

`int` takes every whole number there is, of NumPy and TensorFlow too, and keeps an int. A type may
say more by an `Annotated` with a `Kind`: `DatasetLike` takes a reference too (`made_kind`), and
every public function that has such an argument then does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from shardctl.base.arguments.values import byte_string, real_number, text, truth_value, whole_number
from shardctl.base.text import choices, nearest_first, quoted
from shardctl.errors import UsageError


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """What an argument takes.

    take: a value -> the value as it is kept; raises a UsageError whose text is the rule.
    needed, several: the kind in words, as one value and as many of them.
    exact: the types whose values are kept as they are.
    """

    take: Callable[[Any], Any]
    needed: str
    several: str
    exact: frozenset[type] = frozenset()


def _anything(value: object) -> object:
    return value


# What a field of a document takes that is narrower, or wider, than its type is there: text that a
# file may be called, and a number of any size and sign in place of a count.
Name = Annotated[str, "name"]
Whole = Annotated[int, "whole"]

_ANYTHING = Kind(take=_anything, needed="a value", several="values")
_PLAIN: dict[type, Kind] = {
    int: Kind(
        take=whole_number,
        needed="a whole number",
        several="whole numbers",
        exact=frozenset({int}),
    ),
    bool: Kind(
        take=truth_value,
        needed="true or false",
        several="truth values",
        exact=frozenset({bool}),
    ),
    float: Kind(take=real_number, needed="a number", several="numbers", exact=frozenset({float})),
    str: Kind(take=text, needed="a text", several="texts", exact=frozenset({str})),
    bytes: Kind(take=byte_string, needed="bytes", several="bytes", exact=frozenset({bytes})),
}

# What to write where one of these is needed.
_EXAMPLES = {
    "Host": "Host(index=0, count=8)",
    "Order": "plan_order(dataset).order",
    "Query": 'Query(kind="position", value=5)',
    "Split": 'dataset.split("train")',
    "Usage": "Usage(hosts=8)",
}


def kind_of(hint: Any) -> Kind:
    """Return the kind that an annotation stands for.

    >>> kind_of(tuple[int, ...] | None).take([1, 2])
    (1, 2)
    >>> kind_of(int | Literal["all"]).take("some")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: a whole number or "all" is needed

    Raises:
        TypeError: an annotation that nobody has said the meaning of.
    """
    origin, of = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return _ANYTHING
    if origin is Annotated:
        return next((said for said in of[1:] if isinstance(said, Kind)), None) or kind_of(of[0])
    if origin in (Union, UnionType):
        return _either([kind_of(part) for part in of if part is not NoneType], NoneType in of)
    if origin is Literal:
        return _word(of)
    if (origin is tuple and of[1:] == (...,)) or origin is Sequence:
        return _list(kind_of(of[0]))
    if origin is Callable:
        return _that_is(callable, "a function", "functions")
    if origin is Iterable:
        return _that_is(_is_iterable, "an iterable", "iterables")
    if origin is Mapping:
        return _mapping(*map(kind_of, of))
    if origin is os.PathLike:
        return _that_is(lambda value: isinstance(value, os.PathLike), "a path", "paths")
    if isinstance(hint, type):
        return _PLAIN.get(hint) or _instance(hint)
    raise TypeError(f"no kind of argument for {hint!r}")


def _that_is(fits: Callable[[Any], bool], needed: str, several: str) -> Kind:
    def take(value: Any) -> Any:
        if not fits(value):
            raise UsageError(f"{needed} is needed")
        return value

    return Kind(take=take, needed=needed, several=several)


def _is_iterable(value: Any) -> bool:
    # A text is a list of letters for Python, and a mapping one of its keys: neither is meant.
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)


def _instance(of: type) -> Kind:
    name = of.__name__
    example = f", as {_EXAMPLES[name]}" if name in _EXAMPLES else ""
    article = "an" if name[0] in "AEIOU" else "a"

    def take(value: Any) -> Any:
        if not isinstance(value, of):
            raise UsageError(f"{article} {name} is needed{example}")
        return value

    return Kind(take=take, needed=f"{article} {name}", several=f"{name} values")


def made_kind(made: Callable[[Any], Any], *, needed: str, several: str) -> Kind:
    """Return the kind of what is made of other values too: `made` returns it, or None for others.

    What `made` says of a value that is nearly right is said also where there are other kinds.

    >>> even = made_kind(lambda value: value * 2 if value == 1 else None, needed="one",
    ...                  several="ones")
    >>> even.take(1)
    2
    >>> even.take(3)
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: one is needed
    """

    def take(value: Any) -> Any:
        try:
            found = made(value)
        except UsageError as error:
            raise _NearlyRightError(error.args[0]) from None
        if found is None:
            raise UsageError(f"{needed} is needed")
        return found

    return Kind(take=take, needed=needed, several=several)


class _NearlyRightError(UsageError):
    """A value of a kind that fits, which breaks a rule of it."""


def _word(words: Sequence[str]) -> Kind:
    def take(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return text(value)
        near = nearest_first(value, words) if isinstance(value, str) else words
        raise UsageError(f"choose from {choices(near)}")

    needed = " or ".join(f'"{word}"' for word in words)
    return Kind(take=take, needed=needed, several=f"words ({needed})", exact=frozenset())


def or_none(take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what takes None as well."""
    return lambda value: None if value is None else take(value)


def _either(kinds: Sequence[Kind], with_none: bool) -> Kind:
    needed = " or ".join(kind.needed for kind in kinds)

    def take(value: Any) -> Any:
        for kind in kinds:
            try:
                return kind.take(value)
            except _NearlyRightError:
                raise
            except UsageError:
                if len(kinds) == 1:
                    raise
        raise UsageError(f"{needed} is needed")

    return Kind(
        take=or_none(take) if with_none else take,
        needed=needed,
        several=kinds[0].several,
        exact=frozenset().union(*(kind.exact for kind in kinds), {NoneType} if with_none else ()),
    )


def _mapping(keys: Kind, values: Kind) -> Kind:
    """Return the kind of a mapping, which is kept as a dict."""

    def take(value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise UsageError("a mapping is needed")
        kept = {}
        for key, one in value.items():
            try:
                name = keys.take(key)
            except UsageError as error:
                raise UsageError(f"{error} as a key") from None
            try:
                kept[name] = values.take(one)
            except UsageError as error:
                raise UsageError(f"{error} at {quoted(name)}") from None
        return kept

    return Kind(take=take, needed="a mapping", several="mappings")


def _list(of: Kind) -> Kind:
    """Return the kind of a list of values, which is kept as a tuple."""
    needed = f"a list of {of.several}"

    def take(value: Any) -> tuple[Any, ...]:
        # There may be millions of them: of the right types, in a tuple, they are as they should be.
        if type(value) is tuple and of.exact.issuperset(set(map(type, value))):
            return value
        if not _is_iterable(value):
            raise UsageError(f"{needed} is needed")
        try:
            given = tuple(value)
        except Exception:  # an array without dimensions, a tensor of a graph
            raise UsageError(f"{needed} is needed") from None
        kept = []
        for index, one in enumerate(given):
            try:
                kept.append(of.take(one))
            except UsageError as error:
                raise UsageError(f"{error} at index {index}") from None
        return tuple(kept)

    return Kind(take=take, needed=needed, several="lists")
