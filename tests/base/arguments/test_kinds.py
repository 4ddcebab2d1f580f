"""What annotations take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from shardctl.base.arguments import Kind, kind_of, made_kind, or_none
from shardctl.errors import UsageError
from shardctl.spec.host import Host

EVEN = Kind(take=lambda value: value // 2 * 2, needed="an even number", several="even numbers")


@pytest.mark.parametrize(
    ("hint", "value", "kept"),
    [
        (int, np.uint8(3), 3),
        (int | None, None, None),
        (bool, np.bool_(True), True),
        (float, 1, 1.0),
        (str, np.str_("a"), "a"),
        (bytes, np.bytes_(b"a"), b"a"),
        (bytes, bytearray(b"a\xff"), b"a\xff"),
        (Sequence[bytes], [b"a", memoryview(b"b")], (b"a", b"b")),
        (Any, 1.5, 1.5),
        (Literal["a", "b"], "b", "b"),
        (int | Literal["auto"], "auto", "auto"),
        (int | Sequence[int], np.array([1, 2]), (1, 2)),
        (int | Sequence[int], np.array(2), 2),
        (tuple[int | None, ...], [1, None], (1, None)),
        (Sequence[str], ("a",), ("a",)),
        (Host, Host(index=0, count=2), Host(index=0, count=2)),
        (str | os.PathLike[str], Path("a"), Path("a")),
        (Callable[[int], int], abs, abs),
        (Iterable[Any], [1, "a"], [1, "a"]),
        (Mapping[str, str | os.PathLike[str]], {"a": Path("b")}, {"a": Path("b")}),
        (Mapping[str, int] | None, {np.str_("a"): np.uint8(3)}, {"a": 3}),
        (Annotated[Any, EVEN], 5, 4),
        (Annotated[Any, EVEN] | None, 5, 4),
    ],
)
def test_what_an_annotation_takes(hint: Any, value: Any, kept: Any) -> None:
    found = kind_of(hint).take(value)
    assert (type(found), found) == (type(kept), kept)


@pytest.mark.parametrize(
    ("hint", "value", "rule"),
    [
        (int | None, "3", "a whole number is needed"),
        (int | Literal["auto"], "some", 'a whole number or "auto" is needed'),
        (int | Sequence[int], [1.5], "a whole number or a list of whole numbers is needed"),
        (Sequence[int], [1, 2.5], "a whole number is needed at index 1"),
        (Sequence[int], 3, "a list of whole numbers is needed"),
        (bytes, "abc", "bytes are needed"),
        (Sequence[bytes], b"abc", "a list of bytes is needed"),
        (Sequence[str], "abc", "a list of texts is needed"),
        (Sequence[str], {"a": 1}, "a list of texts is needed"),
        (Sequence[Host], ["0/2"], "a Host is needed, as Host(index=0, count=8) at index 0"),
        (Literal["a", "b"], "c", "choose from a, b"),
        (Host, "0/2", "a Host is needed, as Host(index=0, count=8)"),
        (str | os.PathLike[str], b"a", "a text or a path is needed"),
        (Callable[[int], int], "abs", "a function is needed"),
        (Mapping[str, int], "a=1", "a mapping is needed"),
        (Mapping[str, int], {"a": [1]}, "a whole number is needed at 'a'"),
        (Mapping[str, int], {1: 1}, "a text is needed as a key"),
        (Iterable[Any], 3, "an iterable is needed"),
        (Iterable[Any], "abc", "an iterable is needed"),
    ],
)
def test_what_an_annotation_refuses(hint: Any, value: Any, rule: str) -> None:
    with pytest.raises(UsageError) as raised:
        kind_of(hint).take(value)
    assert str(raised.value) == rule


def test_a_tuple_of_the_right_types_is_kept_as_it_is() -> None:
    values = tuple(range(1000))
    assert kind_of(tuple[int, ...]).take(values) is values
    for wrong in ((*values, True), (*values, 1.0)):
        with pytest.raises(UsageError, match="at index 1000"):
            kind_of(tuple[int, ...]).take(wrong)


def test_an_annotation_without_a_meaning_is_a_fault_of_ours() -> None:
    with pytest.raises(TypeError, match="no kind of argument"):
        kind_of(dict[str, int])


def test_none_is_taken_where_it_is_said() -> None:
    assert or_none(int)(None) is None
    assert or_none(int)("3") == 3


def test_a_kind_of_what_is_made_of_other_values_takes_these_and_says_what_it_takes() -> None:
    def number(value: object) -> int | None:
        if value == "none":
            raise UsageError("none of them")
        return {"one": 1, "two": 2}.get(value) if isinstance(value, str) else None

    kind = made_kind(number, needed="one or two", several="numbers in words")
    assert kind_of(tuple[Annotated[int, kind], ...]).take(["one", "two"]) == (1, 2)
    with pytest.raises(UsageError, match=r"^one or two is needed$"):
        kind.take("three")
    # Among several kinds, what is said of a value that is nearly right is said.
    either = kind_of(bool | Annotated[int, kind])
    assert (either.take(True), either.take("two")) == (True, 2)
    with pytest.raises(UsageError, match=r"^none of them$"):
        either.take("none")
    with pytest.raises(UsageError, match=r"^true or false or one or two is needed$"):
        either.take(3)
