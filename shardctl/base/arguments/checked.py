"""Public functions and values that check what they are given, by their annotations.

This is the one edge: behind it a whole number is an int, a list a tuple, and a flag a bool.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar, cast, get_type_hints

from shardctl.base.arguments.kinds import kind_of
from shardctl.base.text import printable
from shardctl.errors import UsageError

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_Take = Callable[[Any], Any]
# How arguments are taken: those by position, the rest of them (`*args`), and those by name.
_Takers = tuple[list[tuple[str, _Take]], tuple[str, _Take] | None, dict[str, _Take]]

_MOST_SHOWN = 8  # elements of a value that a message writes out


def checked(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Return a function that takes what its annotations say, and gets it as Python's own.

    >>> @checked
    ... def half(*, consumed: int) -> int:
    ...     return consumed // 2
    >>> half(consumed=1.5)
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: consumed=1.5: a whole number is needed
    """

    # Annotations name classes that are not imported yet, so they are read at the first call.
    @cache
    def takers() -> _Takers:
        return _takers_of(function)

    @wraps(function)
    def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        positional, rest, by_name = takers()
        kept: list[Any] = []
        named: dict[str, Any] = {}
        name, value = "", None
        try:
            for (name, take), value in zip(positional, args):  # noqa: B007, B905  # fewer may be given
                kept.append(take(value))
            if len(args) > len(kept):  # without a `rest` too many, and Python says so
                name, take = rest or ("", _as_it_is)
                for value in args[len(kept) :]:
                    kept.append(take(value))
            for name, value in kwargs.items():
                named[name] = by_name.get(name, _as_it_is)(value)
        except UsageError as error:
            raise _refusal(name, value, error) from None
        return function(*kept, **named)

    return call


def _as_it_is(value: Any) -> Any:
    return value


def _takers_of(function: Callable[..., Any]) -> _Takers:
    given = dict(function.__annotations__)
    given.pop("return", None)  # may name what is imported for a type checker only
    hints = get_type_hints(
        SimpleNamespace(__annotations__=given), function.__globals__, include_extras=True
    )
    positional: list[tuple[str, _Take]] = []
    rest: tuple[str, _Take] | None = None
    by_name: dict[str, _Take] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:  # self or cls
            positional.append((name, _as_it_is))
            continue
        take = kind_of(hints[name]).take
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = (name, take)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            by_name[name] = take
            if parameter.kind is not parameter.KEYWORD_ONLY:
                positional.append((name, take))
    return positional, rest, by_name


def keep_fields(value: object, takers: Mapping[str, _Take] | None = None) -> None:
    """Check the fields of a frozen dataclass, and keep them as Python's own; for `__post_init__`.

    `takers` are those of the fields, where they are not as the annotations say.

    Raises:
        UsageError: the field that is wrong, and the rule.
    """
    if takers is None:
        takers = _of_fields(cast(Hashable, type(value)))
    for name, take in takers.items():
        given = getattr(value, name)
        try:
            kept = take(given)
        except UsageError as error:
            raise _refusal(name, given, error) from None
        if kept is not given:
            object.__setattr__(value, name, kept)


@cache
def _of_fields(of: Any) -> dict[str, _Take]:
    hints = get_type_hints(of, include_extras=True)
    return {field.name: kind_of(hints[field.name]).take for field in fields(of)}


def _refusal(name: str, value: object, rule: UsageError) -> UsageError:
    """Return the error that says which argument breaks a rule."""
    return UsageError(f"{name}={shown(value)}: {rule}")


def shown(value: Any) -> str:
    """Return a value as a message shows it: what is long, or refuses to be written, by its type."""
    if isinstance(value, str):
        return f'"{printable(value, 80)}"'
    try:
        long = len(value) > _MOST_SHOWN
    except Exception:  # a scalar
        long = hasattr(value, "__dataclass_fields__")
    try:
        return type(value).__name__ if long else printable(repr(value), 80)
    except Exception:  # a number of more digits than Python writes
        return type(value).__name__
