"""Functions and dataclasses that check what they are given."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from shardctl.base.arguments import checked, keep_fields
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset


def called(*arguments: Any, **named: Any) -> list[Any]:
    """Call what is checked, with what a type checker would refuse."""
    return function(*arguments, **named)


@checked
def function(first: int, *rest: str, flag: bool = False, **others: Any) -> list[Any]:
    """What it says."""
    return [first, rest, flag, others]


@checked
def promised() -> Dataset:
    """The type of what is returned need not be there."""
    raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Counts:
    """A value that keeps Python's own numbers."""

    consumed: int
    each: tuple[int, ...] = ()
    steps: int | None = None

    def __post_init__(self) -> None:
        keep_fields(self)


def made(**fields: Any) -> Counts:
    """Make what a type checker would refuse."""
    return Counts(**fields)


def test_arguments_come_as_pythons_own_however_they_are_given() -> None:
    expected = [3, ("a", "b"), True, {"other": 1.5}]
    assert called(np.int8(3), "a", np.str_("b"), flag=np.True_, other=1.5) == expected
    assert type(called(np.int8(3))[0]) is int
    assert called(first=np.uint64(3)) == [3, (), False, {}]


def test_a_function_keeps_its_name_and_its_signature() -> None:
    assert function.__name__ == "function"
    assert function.__doc__ == "What it says."
    assert list(inspect.signature(function).parameters) == ["first", "rest", "flag", "others"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: called("3"), 'first="3": a whole number is needed'),
        (lambda: called(1, "a", 2), "rest=2: a text is needed"),
        (lambda: called(1, flag="no"), 'flag="no": true or false is needed'),
        (lambda: called(list(range(9))), "first=list: a whole number is needed"),
        (lambda: called(10**5000), "first=int: a whole number of at most 4100 digits is needed"),
        (lambda: called("\x1b[31m"), r'first="\x1b[31m": a whole number is needed'),
        (lambda: made(consumed=1.5), "consumed=1.5: a whole number is needed"),
        (lambda: made(consumed=None), "consumed=None: a whole number is needed"),
        (lambda: made(consumed=1, each=3), "each=3: a list of whole numbers is needed"),
        (lambda: made(consumed=1, steps=True), "steps=True: a whole number is needed"),
    ],
)
def test_what_is_wrong_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert str(raised.value) == message


@pytest.mark.parametrize("call", [called, lambda: promised(*[3]), lambda: made(other=1)])
def test_arguments_that_are_not_there_are_pythons_own_error(call: Any) -> None:
    with pytest.raises(TypeError, match=r"argument"):
        call()


def test_a_value_keeps_pythons_own_numbers() -> None:
    counts = made(consumed=np.int64(3), each=[np.uint8(1), 2])
    assert counts == Counts(consumed=3, each=(1, 2))
    assert type(counts.consumed) is type(counts.each[0]) is int


class Strange:
    """What does not even write itself."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


def test_a_value_that_does_not_write_itself_is_refused_by_its_type() -> None:
    with pytest.raises(UsageError, match="first=Strange: a whole number is needed"):
        called(Strange())
