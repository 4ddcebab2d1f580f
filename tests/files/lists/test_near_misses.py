"""Long lists taken out before a text is parsed: the values, and the faults, of the parser alone."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from shardctl.errors import DatasetError
from shardctl.files import json_text as json_lists
from shardctl.files import record_columns
from shardctl.files import yaml_text as yaml_lists
from shardctl.files.json_text import parse_json
from shardctl.files.record_columns import CountsText, RecordColumns
from shardctl.files.yaml_text import parse_yaml
from tests.cases import FUZZ, add_cases, seed_of_test
from tests.files.lists.layout_texts import changed, json_layout, yaml_layout

KEYS = ("shard_lengths", "shards")
KINDS: tuple[tuple[Callable[..., object], Callable[[random.Random], str]], ...] = (
    (parse_yaml, yaml_layout),
    (parse_json, json_layout),
)


@pytest.mark.parametrize(("parse", "write"), KINDS)
def test_lists_taken_out_are_those_of_the_parser(
    parse: Callable[..., object],
    write: Callable[[random.Random], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert check(parse, write, range(300), monkeypatch) > 40


@pytest.mark.fuzz
@pytest.mark.parametrize(("parse", "write"), KINDS)
def test_lists_taken_out_of_any_text_are_those_of_the_parser(
    parse: Callable[..., object],
    write: Callable[[random.Random], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = seed_of_test()
    check(parse, write, range(first, first + 10 * FUZZ), monkeypatch)


def check(
    parse: Callable[..., object],
    write: Callable[[random.Random], str],
    seeds: range,
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """Check that a list is taken out or not, with one answer; return of how many it was."""
    num_taken = 0
    for seed in seeds:
        draw = random.Random(seed)
        monkeypatch.setattr(record_columns, "_FIRST", draw.choice((40, 90, 4096)))
        monkeypatch.setattr(record_columns, "_PIECE", draw.choice((60, 200, 1 << 20)))
        data = changed(draw, write(draw)).encode()
        set_long(monkeypatch, 1 << 30)
        wanted, _ = answer(parse, data)
        set_long(monkeypatch, 3)
        found, is_taken = answer(parse, data)
        assert found == wanted, f"seed {seed}: {data!r}"
        num_taken += is_taken
        add_cases()
    return num_taken


def set_long(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    monkeypatch.setattr(yaml_lists, "_LONG", num_bytes)
    monkeypatch.setattr(json_lists, "_LONG", num_bytes)


def answer(parse: Callable[..., object], data: bytes) -> tuple[object, bool]:
    """Return the value or the error, and whether a list was taken out."""
    try:
        value = parse(data, source="f", packed=KEYS)
    except DatasetError as error:
        return f"{error}", False
    listed = in_full(value)
    return typed(listed), listed != value


def in_full(value: object) -> object:
    """Return a value with the lists that were taken out as lists."""
    if isinstance(value, CountsText):
        assert list(value.packed()) == value.ints()
        return value.ints()
    if isinstance(value, RecordColumns):
        assert len(value.records()) == len(value)
        return value.records()
    if isinstance(value, dict):
        return {key: in_full(item) for key, item in value.items()}
    return [in_full(item) for item in value] if isinstance(value, list) else value


def typed(value: object) -> object:
    """Return a value in which 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return [(typed(key), typed(item)) for key, item in value.items()]
    return [typed(item) for item in value] if isinstance(value, list) else repr(value)
