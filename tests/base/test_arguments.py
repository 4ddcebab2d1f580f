"""What annotations take, as what it is kept, and what is said of the rest."""

from __future__ import annotations

import collections.abc
import inspect
import os
import typing
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base import arguments
from shardctl.base.arguments import Kind, checked, keep_fields, kind_of, made_kind, whole_number
from shardctl.errors import UsageError
from shardctl.spec.host import Host
from tests.golden import assert_answers

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset

EVEN = Kind(take=lambda value: value // 2 * 2, needed="an even number", several="even numbers")
Path_ = str | os.PathLike[str]


class Variable:
    """Holds a value, as a variable of TensorFlow or Keras does."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __int__(self) -> int:
        return int(self.value)

    def numpy(self) -> Any:
        return self.value


class Mode(str, Enum):  # noqa: UP042  # str() of a StrEnum is its value
    EVEN = "even"


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**2048), 2**2048))
def test_a_whole_number_of_any_library_is_kept_as_an_int(number: int, long: int) -> None:
    for value in (number, np.int64(number), np.array(number), Variable(np.int64(number))):
        assert (whole_number(value), type(whole_number(value))) == (number, int)
    assert whole_number(long) == long


@pytest.mark.long
def test_a_step_of_jax_or_flax_is_a_whole_number() -> None:
    import jax.numpy as jnp
    from flax import nnx

    for dtype in (jnp.int8, jnp.uint8, jnp.int32, jnp.uint32):
        for value in (dtype(7), jnp.asarray(7, dtype), nnx.Variable(dtype(7))):
            assert (whole_number(value), type(whole_number(value))) == (7, int)
    wrong = (jnp.float32(7), jnp.bfloat16(7), jnp.asarray(True), jnp.asarray([7]))
    for value in (*wrong, *map(nnx.Variable, wrong)):
        with pytest.raises(UsageError, match=r"^a whole number is needed$"):
            whole_number(value)


def take(hint: Any, value: Any) -> Any:
    return kind_of(hint).take(value)


def test_what_is_taken_and_what_is_refused() -> None:
    path = Path(__file__).parent / "golden" / "arguments.txt"
    names = {**vars(typing), **vars(collections.abc), **vars(arguments), "Host": Host, **globals()}
    assert_answers(path, lambda question: repr(eval(question, names)))


def test_a_tuple_of_the_right_types_is_kept_as_it_is() -> None:
    values = tuple(range(1000))
    assert kind_of(tuple[int, ...]).take(values) is values
    for wrong in ((*values, True), (*values, 1.0)):
        with pytest.raises(UsageError, match="at index 1000"):
            kind_of(tuple[int, ...]).take(wrong)
    with pytest.raises(TypeError, match="no kind of argument"):  # a fault of ours
        kind_of(dict[str, int])


def test_a_kind_made_of_other_values_takes_these() -> None:
    def number(value: object) -> int | None:
        if value == "none":
            raise UsageError("none of them")
        return {"one": 1, "two": 2}.get(value) if isinstance(value, str) else None

    kind = made_kind(number, needed="one or two", several="numbers in words")
    assert kind_of(tuple[Annotated[int, kind], ...]).take(["one", "two"]) == (1, 2)
    either = kind_of(bool | Annotated[int, kind])
    assert (either.take(True), either.take("two")) == (True, 2)
    # Among several kinds, what is said of a value that is nearly right is said.
    for one, value, rule in (
        (kind, "three", "one or two is needed"),
        (either, "none", "none of them"),
        (either, 3, "true or false or one or two is needed"),
    ):
        with pytest.raises(UsageError, match=f"^{rule}$"):
            one.take(value)


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
    consumed: int
    each: tuple[int, ...] = ()
    steps: int | None = None

    def __post_init__(self) -> None:
        keep_fields(self)


class Strange:
    """What does not even write itself."""

    def __repr__(self) -> str:
        raise RuntimeError

    __len__ = __repr__


call: Any = function  # with what a type checker would refuse
made: Any = Counts


def test_arguments_come_as_pythons_own_however_they_are_given() -> None:
    expected = [3, ("a", "b"), True, {"other": 1.5}]
    assert call(np.int8(3), "a", np.str_("b"), flag=np.True_, other=1.5) == expected
    assert type(call(np.int8(3))[0]) is int
    assert call(first=np.uint64(3)) == [3, (), False, {}]
    assert (function.__name__, function.__doc__) == ("function", "What it says.")
    assert list(inspect.signature(function).parameters) == ["first", "rest", "flag", "others"]
    counts = made(consumed=np.int64(3), each=[np.uint8(1), 2])
    assert counts == Counts(consumed=3, each=(1, 2))
    assert type(counts.consumed) is type(counts.each[0]) is int


@pytest.mark.parametrize("wrong", [call, lambda: promised(*[3]), lambda: made(other=1)])
def test_arguments_that_are_not_there_are_pythons_own_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"argument"):
        wrong()
