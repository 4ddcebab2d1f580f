"""Plan files of millions of instructions: read by line to the same plan as when parsed whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.errors import DatasetError
from shardctl.files import json_text as json_lists
from shardctl.files import record_columns
from shardctl.files import yaml_text as yaml_lists
from shardctl.files.documents import to_json, to_yaml
from shardctl.files.json_text import parse_json
from shardctl.files.plan.reader import LONG_LISTS, parse_plan
from shardctl.files.plan.writer import plan_json, plan_yaml
from shardctl.files.record_columns import RecordColumns
from shardctl.files.yaml_text import parse_yaml
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from shardctl.readers.layout_file import dataset_from_layout
from tests.cases import counted


def dataset(**lengths: tuple[int, ...]) -> Dataset:
    splits = {name: {"shard_lengths": list(shards)} for name, shards in lengths.items()}
    return dataset_from_layout({"splits": splits}, stem="toy", folder=Path("/data"))


TOY = dataset(train=(10,) * 12, test=(8, 8, 8, 7))
Writer = Callable[[ResumePlan], Iterator[str]]


@pytest.fixture(autouse=True)
def short_texts_count_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    set_long(monkeypatch, 0)
    monkeypatch.setattr(record_columns, "_FIRST", 300)  # two or three records
    monkeypatch.setattr(record_columns, "_PIECE", 600)


def set_long(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    for module in (json_lists, yaml_lists):
        monkeypatch.setattr(module, "_LONG", num_bytes)


def plans() -> list[ResumePlan]:
    return [
        resume(TOY, "train", consumed=7),
        resume(TOY, "train+test", consumed=33),
        resume(TOY, "test", consumed=31),
        resume_on_hosts(TOY, "train+test", hosts=3, to_hosts=2, consumed=4),
        resume_on_hosts(TOY, "test", hosts=1, to_hosts=20, consumed=29),
    ]


@pytest.mark.parametrize("write", [plan_json, plan_yaml])
@pytest.mark.parametrize("number", range(5))
def test_a_plan_read_by_line_is_the_plan_that_was_written(write: Writer, number: int) -> None:
    plan = plans()[number]
    data = "".join(write(plan)).encode()
    parse = parse_json if write is plan_json else parse_yaml
    document = parse(data, source="plan", packed=LONG_LISTS)
    assert isinstance(document, dict)
    lists = [share["file_instructions"] for share in (document, *document.get("hosts", []))]
    wanted = [plan.instructions, *(host.instructions for host in plan.hosts)]
    for found, reads in zip(lists, wanted, strict=True):
        assert isinstance(found, RecordColumns) == (len(reads) > 2)
        if isinstance(found, RecordColumns):
            assert list(found.names("filename")) == reads.filenames()
    assert parse_plan(data, source="plan") == plan


@pytest.mark.parametrize("write", [plan_json, plan_yaml])
def test_more_instructions_than_a_document_may_have_values(
    write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json_text", "yaml_text"):
        monkeypatch.setattr(f"shardctl.files.{name}.MAX_VALUES", 200)
    many = dataset(train=(2,) * 300)
    plan = resume(many, "train", consumed=3)
    data = "".join(write(plan)).encode()
    assert parse_plan(data, source="plan") == plan
    set_long(monkeypatch, 1 << 24)
    with pytest.raises(DatasetError, match="more than 200 values"):
        parse_plan(data, source="plan")


@pytest.mark.parametrize("write", [plan_json, plan_yaml])
def test_an_edit_is_found_and_said_as_in_a_short_file(
    write: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = "".join(write(plans()[0])).encode()
    edits = [
        (b": 10}", b": 11}"),
        (b": 10}", b": 9223372036854775808}"),
        (b": 10}", b": -1}"),
        (b": 10}", b": 010}"),
        (b'"train", ', b'"trian", '),
        (b'"train", ', b'"tr\\u0061in", '),
        (b"toy-train.tfrecord-00003", b"toy-train.tfrecord-00004"),
        (b": 10},\n", b": 10}\n"),
        (b": 10}\n  ]", b": 10},\n  ]"),
        (b"}\n", b"},\n"),
        (b": 10}", b": 10, shard_index: 3}"),
        (b": 10}", b': 10, "shard_index": 3}'),
        (b"take", b"tak"),
    ]
    texts = [data.replace(old, new, 1) for old, new in edits]
    lines = data.split(b"\n")
    texts += [b"\n".join(lines[:stop]) for stop in range(len(lines) - 1)]
    texts += [b"\n".join([*lines[:k], *lines[k + 1 :]]) for k in range(len(lines) - 1)]
    for text in texts:
        by_line = _answer(text)
        with monkeypatch.context() as patched:
            set_long(patched, 1 << 24)
            assert by_line == _answer(text)


WORDS = ("a", "b-1", "a/b.c", "no", "n", "null", "", "7", "it's", 'a"b', "a\\b", "a\nb", "é", "a b")


def records(draw: random.Random) -> list[dict[str, Any]]:
    """Return records of one form, but for a value of any kind here and there."""
    kinds: dict[str, tuple[object, ...]] = {
        key: draw.choice(((0, 7, 10**17), WORDS[:3], WORDS[:1], WORDS, (None,)))
        for key in draw.sample(("a", "b", "take", "no"), draw.randint(1, 3))
    }
    rows = [
        {key: draw.choice(values) for key, values in kinds.items()}
        for _ in range(draw.choice((1, 2, 3, 5, 9)))
    ]
    if draw.random() < 0.5:
        draw.choice([*rows, rows[-1]])[draw.choice([*kinds, "new"])] = draw.choice(
            (None, 3, -1, 10**18, "a", "é", 0.5, [1], {"a": 1}, True)
        )
    return rows


@pytest.mark.long
@pytest.mark.parametrize("is_json", [False, True])
def test_records_of_any_form_are_those_of_the_parser(
    is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_packed = 0
    for seed in counted(range(1000)):
        draw = random.Random(seed)
        monkeypatch.setattr(record_columns, "_FIRST", draw.choice((30, 60, 300)))
        listed = records(draw)
        document = {"kind": "toy", "list": listed, "end": draw.choice(WORDS)}
        data = "".join((to_json if is_json else to_yaml)(document)).encode()
        for packed in ((), ("list",)):
            parse = parse_json if is_json else parse_yaml
            found = parse(data, source="f", packed=packed)
            assert isinstance(found, dict)
            if isinstance(found["list"], RecordColumns):
                num_packed += 1
                assert len(found["list"]) == len(listed)
                found["list"] = found["list"].records()
            assert repr(found) == repr(document)  # where True is not 1
    assert num_packed > 100


def _answer(data: bytes) -> str:
    try:
        return repr(parse_plan(data, source="plan"))
    except DatasetError as error:
        return str(error)
