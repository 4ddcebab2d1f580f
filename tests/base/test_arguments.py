"""What annotations take, as what it is kept, and what is said of the rest."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.arguments import (
    Kind,
    byte_count,
    checked,
    keep_fields,
    kind_of,
    made_kind,
    whole_number,
)
from shardctl.errors import UsageError
from shardctl.spec.host import Host

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


@pytest.mark.parametrize(
    ("hint", "values", "kept"),
    [
        (int, [np.uint8(3), Variable(3)], 3),
        (int | None, [None], None),
        (bool, [True, np.bool_(True), np.array(True), np.ones(3)[0] > 0], True),
        (float, [1, np.float32(1), np.array(1.0)], 1.0),
        (str, [np.str_("even"), Mode.EVEN], "even"),
        (bytes, [np.bytes_(b"a\xff"), bytearray(b"a\xff")], b"a\xff"),
        (Sequence[bytes], [[b"a", memoryview(b"b")]], (b"a", b"b")),
        (Any, [1.5], 1.5),
        (int | Literal["auto"], ["auto", np.str_("auto")], "auto"),
        (int | Sequence[int], [np.array([1, 2]), [1, 2]], (1, 2)),
        (int | Sequence[int], [np.array(2)], 2),
        (tuple[int | None, ...], [[1, None]], (1, None)),
        (Sequence[str], [("a",)], ("a",)),
        (Host, [Host(index=0, count=2)], Host(index=0, count=2)),
        (Path_, [Path("a")], Path("a")),
        (Callable[[int], int], [abs], abs),
        (Iterable[Any], [[1, "a"]], [1, "a"]),
        (Mapping[str, Path_], [{"a": Path("b")}], {"a": Path("b")}),
        (Mapping[str, int] | None, [{np.str_("a"): np.uint8(3)}], {"a": 3}),
        (Annotated[Any, EVEN] | None, [5], 4),
    ],
)
def test_what_an_annotation_takes(hint: Any, values: list[Any], kept: Any) -> None:
    for value in values:
        found = kind_of(hint).take(value)
        assert (type(found), found) == (type(kept), kept)


NO_INTS = (True, np.bool_(False), np.array(True), Variable(True), 1.0, np.float64(1), "1", None)
NO_BOOLS: tuple[Any, ...] = (1, 0, "no", "", None, [], [True], np.array([True]), np.int8(1))


@pytest.mark.parametrize(
    ("hint", "values", "rule"),
    [
        (int, [*NO_INTS, Variable(1.5), [1], np.array([1])], "a whole number is needed"),
        (int, [10**4100, -(10**5000)], "a whole number of at most 4100 digits is needed"),
        (int | None, ["3"], "a whole number is needed"),
        (bool, NO_BOOLS, "true or false is needed"),
        (float, ["1", b"1", True, np.nan, np.inf, None, 1j, [1]], "a number is needed"),
        (str, [b"train", 3, None, ["train"]], "a text is needed"),
        (int | Literal["auto"], ["some"], 'a whole number or "auto" is needed'),
        (int | Sequence[int], [[1.5]], "a whole number or a list of whole numbers is needed"),
        (Sequence[int], [[1, 2.5]], "a whole number is needed at index 1"),
        (Sequence[int], [3, np.array(3)], "a list of whole numbers is needed"),
        (bytes, ["abc"], "bytes are needed"),
        (Sequence[bytes], [b"abc"], "a list of bytes is needed"),
        (Sequence[str], ["abc", {"a": 1}], "a list of texts is needed"),
        (Sequence[Host], [["0/2"]], "a Host is needed, as Host(index=0, count=8) at index 0"),
        (Host, ["0/2"], "a Host is needed, as Host(index=0, count=8)"),
        (Literal["a", "b"], ["c", 1], "choose from a, b"),
        (Path_, [b"a"], "a text or a path is needed"),
        (Callable[[int], int], ["abs"], "a function is needed"),
        (Mapping[str, int], ["a=1"], "a mapping is needed"),
        (Mapping[str, int], [{"a": [1]}], "a whole number is needed at 'a'"),
        (Mapping[str, int], [{1: 1}], "a text is needed as a key"),
        (Iterable[Any], [3, "abc", {"a": 1}], "an iterable is needed"),
    ],
)
def test_what_an_annotation_refuses(hint: Any, values: Any, rule: str) -> None:
    for value in values:
        with pytest.raises(UsageError) as raised:
            kind_of(hint).take(value)
        assert str(raised.value) == rule


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


SIZES: dict[object, int] = {
    **dict.fromkeys(("8GiB", "8Gi", "8G", "8 gib"), 8 * 2**30),
    "8GB": 8 * 10**9,
    "500MB": 500_000_000,
    "1.5KiB": 1536,
    ".5 TB": 5 * 10**11,
    "1TiB": 2**40,
    "2P": 2**51,
    "4096": 4096,
    "4_096 B": 4096,
    "1,000kb": 1_000_000,
    "0.3KB": 300,
    7: 7,  # 0.3 * 1000 in floats is 299.99..
}
NO_SIZES = (
    *("", "GiB", "8 Gb its", "8GiBs", "-1", "0", "0.5", "1e9", "1e3GB", "8G8", "nan", "1..2"),
    *("9EiB", "9" * 200, 0, -3),
)


def test_a_size_is_a_number_of_bytes_with_a_unit() -> None:
    assert {size: byte_count(size) for size in SIZES} == SIZES
    for value in NO_SIZES:
        with pytest.raises(UsageError, match="a number of bytes is needed, as 8GiB, 500MB or 4096"):
            byte_count(value)
    for other in (True, 1.5, None):
        with pytest.raises(UsageError):
            byte_count(other)


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: call("3"), 'first="3": a whole number is needed'),
        (lambda: call(1, "a", 2), "rest=2: a text is needed"),
        (lambda: call(1, flag="no"), 'flag="no": true or false is needed'),
        (lambda: call([*range(8)]), f"first={[*range(8)]}: a whole number is needed"),
        (lambda: call([*range(9)]), "first=list: a whole number is needed"),
        (lambda: call(10**5000), "first=int: a whole number of at most 4100 digits is needed"),
        (lambda: call("\x1b[31m"), r'first="\x1b[31m": a whole number is needed'),
        (lambda: call(Strange()), "first=Strange: a whole number is needed"),
        (lambda: made(consumed=None), "consumed=None: a whole number is needed"),
        (lambda: made(consumed=1, each=3), "each=3: a list of whole numbers is needed"),
        (lambda: made(consumed=1, steps=True), "steps=True: a whole number is needed"),
    ],
)
def test_what_is_wrong_is_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        wrong()
    assert str(raised.value) == message


@pytest.mark.parametrize("wrong", [call, lambda: promised(*[3]), lambda: made(other=1)])
def test_arguments_that_are_not_there_are_pythons_own_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"argument"):
        wrong()
