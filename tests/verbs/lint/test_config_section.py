"""What may stand under `lint:` in a shardctl.yaml, and options that go over it."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.verbs.lint.answer import lint_arguments

KEYS = (
    "specs, eval, hosts, take, as_data_source, assert_cardinality, autocache, seeds, open_files, "
    "select, ignore"
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, {}),
        ({"eval": None, "hosts": None}, {}),
        ({"eval": "test"}, {"eval": ("test",)}),
        ({"specs": ["train[:9]", "test"]}, {"specs": ("train[:9]", "test")}),
        ({"select": "SC01, SC02"}, {"select": ("SC01", "SC02")}),
        ({"ignore": ["SC01,SC02", "SC03"]}, {"ignore": ("SC01", "SC02", "SC03")}),
        ({"seeds": [1, -2]}, {"seeds": (1, -2)}),
        ({"seeds": 7}, {"seeds": (7,)}),
        ({"seeds": "1,2"}, {"seeds": (1, 2)}),
        (
            {"as-data-source": True, "autocache": False},
            {"as_data_source": True, "autocache": False},
        ),
        ({"open_files": 1024, "take": 5}, {"open_files": 1024, "take": 5}),
    ],
)
def test_a_list_may_be_one_value_and_names_have_either_dash(
    document: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert lint_arguments(document) == expected


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"ignored": []}, f"ignored: no such setting; did you mean ignore? there are: {KEYS}"),
        (
            {"as-data-source": True, "as_data_source": True},
            "--as-data-source: the setting is there",
        ),
        ({"hosts": 0}, "--hosts '0': a whole number, at least 1, is needed"),
        ({"hosts": True}, "--hosts 'True': a whole number"),
        ({"take": "7"}, "--take '7': a whole number"),
        ({"eval": 7}, "--eval '7': text, or a list of texts, is needed"),
        ({"eval": [""]}, "--eval '['']': text, or a list"),
        ({"ignore": [1]}, "--ignore '[1]': text, or a list"),
        ({"seeds": "1,x"}, "--seeds '1,x': whole numbers, with commas, are needed"),
        ({"seeds": [1.5]}, "--seeds '[1.5]': a list of whole numbers is needed"),
        ({"autocache": "no"}, "--autocache 'no': true or false is needed"),
    ],
)
def test_anything_else_is_refused_with_file_name_and_rule(
    document: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        lint_arguments(document)
    assert str(refused.value).startswith(message)
