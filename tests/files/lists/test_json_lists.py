"""Long lists of counts in JSON: packed to the same numbers, or left to the parser as they are."""

from __future__ import annotations

import json
import random

import pytest

from shardctl.errors import DatasetError
from shardctl.files import json_text as json_lists
from shardctl.files.json_text import parse_json
from shardctl.files.record_columns import CountsText

KEYS = ("shardLengths", "shard_lengths")


@pytest.fixture(autouse=True)
def short_lists_count_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lists, "_LONG", 1)


def parsed(text: str) -> object:
    return as_list(parse_json(text.encode(), source="info.json", packed=KEYS, in_quotes=True))


def as_list(value: object) -> object:
    """Return a value with its counts as lists."""
    if isinstance(value, dict):
        return {key: as_list(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_list(item) for item in value]
    return tuple(value.packed()) if isinstance(value, CountsText) else value


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("kind", [int, str])
def test_lists_of_counts_are_packed(indent: int | None, kind: type) -> None:
    generator = random.Random(5)
    for size in (1, 2, 3, 10, 100):
        numbers = [generator.choice([0, 7, 1000, 10**17]) for _ in range(size)]
        splits = [
            {"name": "é", "shardLengths": [*map(kind, numbers)], "numBytes": "12"},
            {"shard_lengths": [*map(kind, numbers[::-1])], "of": [{"shardLengths": [5]}]},
        ]
        found = parsed(json.dumps({"splits": splits}, indent=indent, ensure_ascii=False))
        assert isinstance(found, dict)
        first, second = found["splits"]
        assert isinstance(first["shardLengths"], tuple)
        assert first == {"name": "é", "shardLengths": tuple(numbers), "numBytes": "12"}
        assert second == {"shard_lengths": tuple(numbers[::-1]), "of": [{"shardLengths": (5,)}]}


@pytest.mark.parametrize(
    "listed",
    [
        "[]",
        "[ ]",
        "[-1, 2]",
        "[1.0]",
        '["1", 2]',
        '["1,2", "3"]',
        '["12345678,90"]',
        '["1", "", "2"]',
        '["1 "]',
        "[[1]]",
        "[null, 3]",
        "[9223372036854775808]",
        '["9223372036854775807"]',
        '["1e3", "1"]',
    ],
)
def test_other_lists_are_what_json_makes_of_them(listed: str) -> None:
    assert parsed(f'{{"shardLengths": {listed}, "a": 1}}') == json.loads(
        f'{{"shardLengths": {listed}, "a": 1}}'
    )


def test_lists_in_texts_and_under_other_keys_stay() -> None:
    value = {
        "other": [1, 2, 3],
        "text": '"shardLengths": [1, 2, 3]',
        "shardLengths": "[1, 2, 3]",
        'a"shardLengths': [1, 2, 3],
    }
    assert parsed(json.dumps(value)) == {**value, 'a"shardLengths': (1, 2, 3)}
    marked = {"a": "\0list 0", "shardLengths": [1, 2]}
    assert parsed(json.dumps(marked)) == marked


@pytest.mark.parametrize(
    "text",
    [
        '{"shardLengths": [1, 2, 3                ], "a": x}',
        '{"shardLengths": [1,\n 2,\n 3], "a": x}',
        '{"shardLengths": ["1",\n"2"\n  ],\n "a" 1}',
        '{"shardLengths": [1, 2, 3,], "a": 1}',
        '{"shardLengths": [1,, 2, 3]}',
        '{"shardLengths": [01, 2, 3]}',
        '{"shardLengths": [1 2, 3]}',
        '{"shardLengths": [1, 2, 3',
        '{"shardLengths": [1, 2], "shardLengths": [1, 2]}',
        '{"shardLengths": [1, 2                ]]',
    ],
)
def test_errors_are_those_of_the_whole_text(text: str) -> None:
    with pytest.raises(DatasetError) as packed:
        parsed(text)
    with pytest.raises(DatasetError) as whole:
        parse_json(text.encode(), source="info.json")
    assert str(packed.value) == str(whole.value)
