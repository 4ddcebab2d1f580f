from __future__ import annotations

import ast

import pytest
from hypothesis import strategies as st

from shardctl.base.text import inert
from shardctl.code.source import call, comment, literal, module
from tests.cases import check_cases

HOSTILE = [
    "'",
    '"',
    "\\",
    "'\"",
    '"""',
    "a\nb",
    "#",
    "\u202e",
    "\ud800",
    "{}",
    "%s",
    "\0",
    "é",
    "##[error]x",
    "\\##vso[task.x]",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_a_literal(text: str) -> None:
    source = literal(text)
    assert ast.literal_eval(source) == text
    assert source.isprintable()
    assert inert(source) == source
    assert all(inert(line) == line for line in comment(text))


def test_any_text_stays_a_literal_and_a_comment() -> None:
    def check(text: str) -> None:
        assert ast.literal_eval(literal(text)) == text
        for line in comment(text):
            assert line.startswith("# ")
            assert len(line.splitlines()) == 1

    check_cases(st.text(), check, 100)


def test_a_call_takes_a_line_where_it_fits() -> None:
    assert list(call("f", ["1", "x=2"])) == ["f(1, x=2)"]
    long = "a" * 50
    assert list(call("f", [long, long], indent=1)) == [
        "    f(",
        f"        {long},",
        f"        {long},",
        "    )",
    ]


def test_definitions_have_two_empty_lines_around_them() -> None:
    parts = [["import a"], [], ["def f():", "    pass"], ["b = 1"], ["c = 2"]]
    assert "".join(module(*parts)) == ("import a\n\n\ndef f():\n    pass\n\n\nb = 1\n\nc = 2\n")


def test_two_lines_stand_around_definitions() -> None:
    parts: tuple[list[str], ...] = (
        ["a = 1"],
        ["b = a", "", "", "def f():", "    return b"],
        ["c = f()"],
        [],
        ["d = c"],
    )
    text = "".join(module(*parts))
    assert text == "a = 1\n\nb = a\n\n\ndef f():\n    return b\n\n\nc = f()\n\nd = c\n"
