"""Words of a text of stages."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.core.stages.text import Scanner
from shardctl.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-1_000", -1000),
        ("+3", 3),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-07", 1e-7),
        ("True", True),
        ("none", None),
        ("auto", "auto"),
        ("tf.data.AUTOTUNE", "auto"),
        ("UNKNOWN_CARDINALITY", -2),
        ("1/4", "1/4"),
        ("mnist:3.0.1", "mnist:3.0.1"),
        (r"'C:\new'", r"C:\new"),
        (r"'a\'b\\'", r"a'b\ "[:-1]),
        ('"it\'s"', "it's"),
        ("''", ""),
    ],
)
def test_a_value(text: str, value: Any) -> None:
    scanner = Scanner(f" {text} ,")
    found = scanner.atom()
    assert found == value
    assert type(found) is type(value)
    assert scanner.peeked() == ","


def test_words_are_read_one_after_the_other() -> None:
    scanner = Scanner("\n shuffle ( buffer-size = 3 , train[:5] + test\t) | ")
    assert scanner.peeked_name() == "shuffle"
    assert scanner.peeked_after("shuffle") == "("
    assert scanner.name() == "shuffle"
    assert scanner.opened() == ")"
    assert scanner.keyword() == "buffer_size"
    assert scanner.atom() == 3
    assert scanner.keyword() is None
    assert scanner.took(",")
    assert scanner.spec() == "train[:5] + test"
    assert scanner.took(")")
    assert not scanner.took(")")
    assert scanner.took("|")
    assert scanner.at_end
    assert scanner.name() is scanner.spec() is scanner.string() is scanner.opened() is None


@pytest.mark.parametrize("code", ["lambda x: f(x, ')')", 'g([1, {2: 3}], "a\'b")', "", "x | y"])
def test_code_is_read_over_up_to_its_end(code: str) -> None:
    for end in (",", ")"):
        scanner = Scanner(f"{code}{end}rest")
        scanner.skip_code()
        assert scanner.peeked() == end


@pytest.mark.parametrize("code", ["f(]", "]", "'a"])
def test_code_that_does_not_close_is_refused(code: str) -> None:
    with pytest.raises(UsageError):
        Scanner(code).skip_code()


def test_a_place_is_shown_safe_and_short() -> None:
    assert str(Scanner("ab").error("why")) == "at 'ab': why"
    assert str(Scanner("ab").error("why", 1)) == "at 'b': why"
    assert str(Scanner("").error("why")) == "at the end: why"
    message = str(Scanner("\x1b" * 9).error("why"))
    assert message.isprintable()
    assert len(message) < 60
