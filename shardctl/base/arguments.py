"""Arguments of public functions and values: what their annotations take, kept as Python's own.

`int` takes every whole number there is, of NumPy and TensorFlow too, and keeps an int. A type may
say more by an `Annotated` with a `Kind`: `DatasetLike` takes a reference too (`made_kind`), and
every public function that has such an argument then does.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache, wraps
from itertools import chain, repeat
from operator import index
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from shardctl.base.text import choices, near_or_all, nearest_first, printable
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.errors import UnknownArgumentError, UsageError

# Single values as Python's own: what a value of NumPy, TensorFlow or Keras stands for.
#
# Nothing is imported for it: numbers of other libraries are known by what they can do.

# More than a seed has, and few enough digits that Python writes the number out (4300).
_MOST_DIGITS = 4100
_MOST = 10**_MOST_DIGITS


def whole_number(value: object) -> int:
    """Return the int that a value is: an int, or a scalar of NumPy, TensorFlow, Keras, JAX, ...

    A truth value is no number, and 1.0 is not a whole one.

    >>> whole_number(7)
    7
    >>> whole_number(True)
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: a whole number is needed

    Raises:
        UsageError: it is none; the text is the rule.
    """
    if type(value) is int and -_MOST < value < _MOST:
        return value
    number = _index(value)
    if number is None:
        number = _index(_held_by_variable(value))
    if number is None:
        raise UsageError("a whole number is needed")
    if not -_MOST < number < _MOST:
        raise UsageError(f"a whole number of at most {_MOST_DIGITS} digits is needed")
    return number


def truth_value(value: object) -> bool:
    """Return the bool that a value is: True or False, or one of NumPy or TensorFlow.

    A text counts as true in Python whatever it says, and so does a number: both are refused.

    >>> truth_value("no")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: true or false is needed

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, bool):
        return value
    if _is_truth(value) and tuple(getattr(value, "shape", (0,))) == ():
        return bool(value)
    raise UsageError("true or false is needed")


def real_number(value: Any) -> float:
    """Return the float that a number is, whole ones included.

    >>> real_number(1)
    1.0

    Raises:
        UsageError: it is none, or not finite.
    """
    if not isinstance(value, str | bytes | bytearray) and not _is_truth(value):
        try:
            number = float(value)
        except Exception:  # noqa: S110  # what a foreign type raises is its own affair
            pass
        else:
            if math.isfinite(number):
                return number
    raise UsageError("a number is needed")


def text(value: object) -> str:
    """Return the str that a text is; NumPy has one of its own, and a member of an enum may be one.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str):
        return str.__str__(value)  # str() of a member of an enum is its name there
    raise UsageError("a text is needed")


def byte_string(value: object) -> bytes:
    """Return the bytes that a value is; a text is none, NumPy's `bytes_` and a bytearray are.

    >>> byte_string(bytearray(b"ab"))
    b'ab'

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise UsageError("bytes are needed")


def _index(value: Any) -> int | None:
    try:
        return None if _is_truth(value) else index(value)
    except Exception:  # TensorFlow: AttributeError of floats, TypeError of graphs
        return None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))


def _held_by_variable(value: Any) -> object:
    """Return what a variable holds, as `optimizer.iterations`; None where it cannot be had.

    Variables of TensorFlow and Keras convert to an int, which floats do too; `numpy()` keeps the
    type.
    """
    try:
        return value.numpy()
    except Exception:  # no variable, or one within a graph
        return None


# Numbers of bytes as people write them: 8GiB, 500 MB, 4096.

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d*)?|\.\d+)\s*(?:([kmgtpe])(i?))?(b?)", re.IGNORECASE)
_RULE = "a number of bytes is needed, as 8GiB, 500MB or 4096"


def byte_count(value: object) -> int:
    """Return how many bytes a value says: a whole number, or a text with a unit.

    KiB, MiB, GiB and so on are powers of 1024, and so is a letter alone, as in `free -h` and
    Kubernetes' `Gi`; KB, MB, GB are powers of 1000. A part of a byte is dropped.

    >>> byte_count("8GiB"), byte_count("1.5 kB"), byte_count(4096)
    (8589934592, 1500, 4096)

    Raises:
        UsageError: it says none, or fewer than 1 or more than an int64 holds.
    """
    if not isinstance(value, str):
        number = whole_number(value)
    else:
        found = _NUMBER.fullmatch(value.strip())
        if found is None or len(value) > 100:
            raise UsageError(_RULE)
        power = "kmgtpe".index(found[2].lower()) + 1 if found[2] else 0
        base = 1000 if found[4] and not found[3] else 1024
        number = int(Fraction(re.sub("[_,]", "", found[1])) * base**power)
    if not 1 <= number <= INT64_MAX:
        raise UsageError(_RULE)
    return number


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """What an argument takes.

    take: a value -> the value as it is kept; raises a UsageError whose text is the rule.
    needed, several: the kind in words, as one value and as many of them.
    exact: the types whose values are kept as they are.
    join: for `settings`: what is given, keywords and the names of a function's own arguments -> all
        settings as one value; raises an UnknownArgumentError for a keyword that is no setting.
    """

    take: Callable[[Any], Any]
    needed: str
    several: str
    exact: frozenset[type] = frozenset()
    join: Callable[[Any, Mapping[str, Any], Collection[str]], Any] | None = None


def _as_it_is(value: Any) -> Any:
    return value


# What a field of a document takes that is narrower, or wider, than its type is there: text that a
# file may be called, and a number of any size and sign in place of a count.
Name = Annotated[str, "name"]
Whole = Annotated[int, "whole"]

_ANYTHING = Kind(take=_as_it_is, needed="a value", several="values")
_PLAIN: dict[type, Kind] = {
    of: Kind(take=take, needed=needed, several=several, exact=frozenset({of}))
    for of, take, needed, several in (
        (int, whole_number, "a whole number", "whole numbers"),
        (bool, truth_value, "true or false", "truth values"),
        (float, real_number, "a number", "numbers"),
        (str, text, "a text", "texts"),
        (bytes, byte_string, "bytes", "bytes"),
    )
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
        return next((kind for kind in of[1:] if isinstance(kind, Kind)), None) or kind_of(of[0])
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


def _that_is(fits: Callable[[Any], bool], needed: str, several: str, example: str = "") -> Kind:
    def take(value: Any) -> Any:
        if not fits(value):
            raise UsageError(f"{needed} is needed{example}")
        return value

    return Kind(take=take, needed=needed, several=several)


def _is_iterable(value: Any) -> bool:
    # A text is a list of letters for Python, and a mapping one of its keys: neither is meant.
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)


def _instance(of: type) -> Kind:
    name = of.__name__
    example = f", as {_EXAMPLES[name]}" if name in _EXAMPLES else ""
    needed = f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
    return _that_is(lambda value: isinstance(value, of), needed, f"{name} values", example)


def made_kind(made: Callable[[Any], Any], *, needed: str, several: str, **more: Any) -> Kind:
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

    return Kind(take=take, needed=needed, several=several, **more)


class _NearlyRightError(UsageError):
    """A value of a kind that fits, which breaks a rule of it."""


def _word(words: Sequence[str]) -> Kind:
    def take(value: Any) -> str:
        if isinstance(value, str) and value in words:
            return text(value)
        near = nearest_first(value, words) if isinstance(value, str) else words
        raise UsageError(f"choose from {choices(near)}")

    needed = " or ".join(f'"{word}"' for word in words)
    return Kind(take=take, needed=needed, several=f"words ({needed})")


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
        join=kinds[0].join,
        exact=frozenset().union(*(kind.exact for kind in kinds), {NoneType} if with_none else ()),
    )


def _mapping(keys: Kind, values: Kind) -> Kind:
    """Return the kind of a mapping, which is kept as a dict."""

    def take(value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise UsageError("a mapping is needed")
        return {keys.take(key): values.take(one) for key, one in value.items()}

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
        for number, one in enumerate(given):
            try:
                kept.append(of.take(one))
            except UsageError as error:
                raise UsageError(f"{error} at index {number}") from None
        return tuple(kept)

    return Kind(take=take, needed=needed, several="lists")


# Public functions and values that check what they are given, by their annotations.
#
# This is the one edge: behind it a whole number is an int, a list a tuple, and a flag a bool.

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")
_Take = Callable[[Any], Any]
# How arguments are taken: those by position, the rest of them (`*args`), those by name, and how
# keywords that are settings are joined with `settings`.
_Join = Callable[[Any, Mapping[str, Any], Collection[str]], Any]
_Takers = tuple[list[tuple[str, _Take]], tuple[str, _Take], dict[str, _Take], _Join | None]

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
    def call(*args: Any, **kwargs: Any) -> _Result:
        positional, rest, by_name, join = takers()
        unknown = [] if "**" in by_name else [name for name in kwargs if name not in by_name]
        more = {name: kwargs.pop(name) for name in unknown}
        # Without a `rest` there are too many, and Python says so.
        kept: Any = [_kept(*of, value) for of, value in zip(chain(positional, repeat(rest)), args)]  # noqa: B905
        named = {name: _kept(name, by_name.get(name, _as_it_is), kwargs[name]) for name in kwargs}
        if more and join is None:
            raise no_such_argument(next(iter(more)), by_name)
        if more and join is not None:
            names = [name for name, _ in positional[: len(kept)]]
            if "settings" in names:
                at = names.index("settings")
                kept[at] = join(kept[at], more, by_name)
            else:
                named["settings"] = join(named.get("settings"), more, by_name)
        return function(*kept, **named)

    return call


def no_such_argument(name: str, names: Iterable[str]) -> UnknownArgumentError:
    """Return the error of a keyword that is none of a function's arguments.

    >>> raise no_such_argument("consumd", ["consumed", "steps"])
    Traceback (most recent call last):
    ...
    shardctl.errors.UnknownArgumentError: there is no argument consumd; did you mean consumed?
    """
    return UnknownArgumentError(f"there is no argument {name}; {near_or_all(name, names)}")


def _takers_of(function: Callable[..., Any]) -> _Takers:
    given = dict(function.__annotations__)
    given.pop("return", None)  # may name what is imported for a type checker only
    hints = get_type_hints(
        SimpleNamespace(__annotations__=given), function.__globals__, include_extras=True
    )
    positional: list[tuple[str, _Take]] = []
    rest: tuple[str, _Take] = ("", _as_it_is)
    by_name: dict[str, _Take] = {}
    join: _Join | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:  # self or cls
            positional.append((name, _as_it_is))
            continue
        if parameter.kind is parameter.VAR_KEYWORD and "settings" in hints:
            join = kind_of(hints["settings"]).join
            continue
        take = kind_of(hints[name]).take
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = (name, take)
        elif parameter.kind is parameter.VAR_KEYWORD:
            by_name["**"] = take  # any are taken
        else:
            by_name[name] = take
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                positional.append((name, take))
    return positional, rest, by_name, join


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
        kept = _kept(name, take, given)
        if kept is not given:
            object.__setattr__(value, name, kept)


@cache
def _of_fields(of: Any) -> dict[str, _Take]:
    hints = get_type_hints(of, include_extras=True)
    return {field.name: kind_of(hints[field.name]).take for field in fields(of)}


def _kept(name: str, take: _Take, value: object) -> Any:
    """Return what is kept of an argument; where it breaks a rule, the error says which one."""
    try:
        return take(value)
    except UsageError as rule:
        raise UsageError(f"{name}={shown(value)}: {rule}") from None


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
