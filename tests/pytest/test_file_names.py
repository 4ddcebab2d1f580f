"""Names of snapshot files: safe everywhere, and never those of another check."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from shardctl.pytest.checks import file_name, folder_of, safe, stem_of

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=150)


@given(words, words)
@example("a/b", "a-b")
@example("Adam", "adam")
@example("x" * 120, "x" * 121)
@example("..", "--")
def test_two_parameters_have_two_files_on_any_file_system(first: str, second: str) -> None:
    names = [file_name(stem_of(f"test_order[{text}]"), None, 0) for text in (first, second)]
    assert (names[0].lower() == names[1].lower()) == (first == second)
    assert all(re.fullmatch(r"[\w=+,-]{1,130}\.yaml", name, re.ASCII) for name in names)


@given(words, words)
def test_two_checks_have_two_files(first: str, second: str) -> None:
    names = [file_name("test_order", text, 0) for text in (first, second)]
    assert (names[0].lower() == names[1].lower()) == (first == second)


def test_a_test_of_a_class_and_its_passes() -> None:
    stem = stem_of("TestTrain::test_order")
    names = [file_name(stem, None, index) for index in range(3)]
    assert names == [
        "TestTrain.test_order.yaml",
        "TestTrain.test_order.pass.1.yaml",
        "TestTrain.test_order.pass.2.yaml",
    ]


def test_a_name_that_looks_like_a_pass_is_another_file() -> None:
    assert safe("pass-1") == "pass-1"
    assert file_name("test_order", "pass-1", 0) != file_name("test_order", None, 1)


def test_the_folder_lies_beside_the_test() -> None:
    assert folder_of(Path("a/test_b.py")) == Path("a/order_snapshots/test_b")
