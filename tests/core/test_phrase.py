"""Phrases: arguments in the reader's language, and nothing else taken for one."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.hosts.host import Host
from shardctl.core.phrase import Argument, Phrase, listed, named_arguments, phrase, spelled
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.rendering.text.command_line import as_options
from tests.core.phrase_calls import PACKAGE, calls_of_phrase


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (phrase("{cycle=auto} needs {cpus=N}"), 'cycle="auto" needs cpus=N'),
        (phrase("{reverse} and {file_order}"), "reverse and file_order"),
        (phrase("{shuffle_files=True}, {reshuffle=False}"), "shuffle_files=True, reshuffle=False"),
        (phrase("{buffer=-2}"), "buffer=-2"),
        (phrase("{ignore=[SC014,SC02]}"), 'ignore=["SC014", "SC02"]'),
        (phrase("{skip=} of {:,}", 12345, skip=7), "skip=7 of 12,345"),
        (phrase("{host!}", host=Host(index=1, count=4)), "host=Host(index=1, count=4)"),
        (phrase("{mode!}", mode='a"\x1b'), 'mode="a\\"\\x1b"'),
        (phrase("{take=}", take=None), "take=None"),
        (phrase("host {}: {}", 1, UsageError(phrase("{steps!}", steps=3))), "host 1: steps=3"),
        (listed([], ", "), ""),
    ],
)
def test_a_phrase_is_its_python_form(text: Phrase, expected: str) -> None:
    assert text == expected
    assert str(UsageError(text)) == expected


@given(st.text(), st.text(alphabet="{}cyle=!: "))
def test_what_is_filled_in_is_never_a_marker(one: str, other: str) -> None:
    text = phrase("{} and {cycle}, {}", one, phrase("{}", other))
    assert text == f"{one} and cycle, {other}"
    assert [argument.name for argument in named_arguments(text)] == ["cycle"]
    assert spelled(text, lambda argument: "*") == f"{one} and *, {other}"


@given(st.text())
def test_a_plain_error_names_no_argument(text: str) -> None:
    assert named_arguments(UsageError(text)) == ()
    assert spelled(UsageError(text), lambda argument: "*") == text


def test_a_phrase_survives_copies_and_processes() -> None:
    text = phrase("{cycle=auto} needs {cpus=N}")
    for twin in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert twin == text
        assert [argument.name for argument in named_arguments(twin)] == ["cycle", "cpus"]
    error = pickle.loads(pickle.dumps(UsageError(text)))
    assert len(named_arguments(error)) == 2


def test_an_error_of_python_is_its_text() -> None:
    assert phrase("{}", FileNotFoundError(2, "gone", "x")) == "[Errno 2] gone: 'x'"


def test_the_name_of_an_argument_may_be_any_text_in_a_document() -> None:
    assert str(Argument("\x1b[2J\n")) == "\\x1b[2J\\n"


@pytest.mark.long
def test_templates_are_literals() -> None:
    """What comes from outside can then be no template; `lint/stories.md` is our own file."""
    calls = calls_of_phrase()
    assert len(calls) > 60
    assert [
        where
        for where, call in calls
        if "lint/rule.py" not in where
        and not (isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str))
    ] == []


def test_templates_have_no_other_braces_and_all_that_is_filled_in() -> None:
    for where, call in calls_of_phrase():
        if "lint/rule.py" in where:
            continue
        template = ast.literal_eval(call.args[0])
        asked = re.findall(r"\{([a-z_]+)(?:=|!)\}", template)
        assert sorted(set(asked)) == sorted(k.arg or "" for k in call.keywords), where
        if not any(isinstance(argument, ast.Starred) for argument in call.args):
            assert len(re.findall(r"\{(?::[^{}]*)?\}", template)) == len(call.args) - 1, where
        left = re.sub(r"\{(?:(?::[^{}]*)?|[a-z_]+(?:!|=[^{}]*)?)\}", "", template)
        assert "{" not in left, where
        assert "}" not in left, where


def texts_with_options() -> Iterator[str]:
    """Yield what core, planning and the bridge say in a command line's words."""
    for room in ("core", "planning", "tfds"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            source = path.read_text("utf-8")
            if "--" not in source:
                continue
            tree = ast.parse(source)
            not_said = {id(node) for node in ast.walk(tree) for node in documentation(node)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    # A command in backticks is one to run in a shell, whoever is told.
                    text = re.sub(r"`shardctl [^`]*`", "", node.value)
                    if id(node) not in not_said and re.search(r"(^|[\s(])--[a-z]", text):
                        yield f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.value}"


def documentation(node: ast.AST) -> Iterator[ast.AST]:
    """Yield docstrings, and the command lines that are the examples of lint's stories."""
    if isinstance(node, ast.Expr):
        yield node.value
    if isinstance(node, ast.keyword) and node.arg == "example":
        yield node.value


def test_no_text_of_the_library_is_in_the_words_of_the_command_line() -> None:
    assert list(texts_with_options()) == []


def test_an_error_says_the_same_once_it_was_pickled_or_copied() -> None:
    """As it is on its way from another process."""
    with pytest.raises(UsageError) as refused:
        ReadSettings(cpus=3)
    for carried in (pickle.loads(pickle.dumps(refused.value)), copy.deepcopy(refused.value)):
        assert str(carried) == 'cpus is read with cycle="auto" only'
        assert as_options(carried) == "--cpus is read with --cycle auto only"
