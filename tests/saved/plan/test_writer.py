"""A plan as a file: an instruction a line, in JSON, YAML and CSV, however many there are."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from shardctl.base import columns
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.saved.plan_file import (
    instruction_rows,
    plan_document,
)
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.verbs.resume.resume_cases import TOY, dataset

IN_ORDER = ReadSettings(cycle=1)
ONE_RECORD = (
    '{"filename": "toy-train-00001", "split": "train", "skip": 1, "take": 4, '
    '"examples_in_shard": 5}'
)


def as_json(plan: ResumePlan, **extra: Any) -> str:
    return "".join(to_json({**plan_document(plan), **extra}))


def as_yaml(plan: ResumePlan, **extra: Any) -> str:
    return "".join(to_yaml({**plan_document(plan), **extra}))


def test_an_instruction_takes_a_line() -> None:
    plan = resume(TOY, "train", IN_ORDER, consumed=4)
    assert f"    {ONE_RECORD},\n" in as_json(plan)
    assert "- {filename: toy-train-00001, split: train, skip: 1," in as_yaml(plan)


@pytest.mark.parametrize("num_left", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize("piece", [1, 4, 1 << 14])
def test_files_hold_every_instruction_whatever_the_piece(
    num_left: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_PIECE", piece)
    plan = resume(dataset(train=(2,) * 40), "train", IN_ORDER, consumed=2 * (40 - num_left))
    expected = [
        {
            "filename": f"toy-train-{shard:05}",
            "split": "train",
            "skip": 0,
            "take": 2,
            "examples_in_shard": 2,
        }
        for shard in range(40 - num_left, 40)
    ]
    assert json.loads(as_json(plan))["file_instructions"] == expected
    assert yaml.safe_load(as_yaml(plan))["file_instructions"] == expected
    assert list(instruction_rows(plan).rows()) == [(None, *record.values()) for record in expected]


def test_hosts_have_lists_of_their_own_an_idle_one_an_empty_list() -> None:
    plan = resume_on_hosts(TOY, "train", hosts=2, to_hosts=3, consumed=[6, 4])
    document = json.loads(as_json(plan))
    assert yaml.safe_load(as_yaml(plan)) == document
    assert document["file_instructions"] == []
    assert [(h["index"], h["count"], h["num_examples"]) for h in document["hosts"]] == [
        (0, 3, 1),
        (1, 3, 0),
        (2, 3, 0),
    ]
    assert [len(host["file_instructions"]) for host in document["hosts"]] == [1, 0, 0]
    assert as_json(plan).count('      "file_instructions": []\n    }') == 2
    assert [row[0] for row in instruction_rows(plan).rows()] == ["0/3"]


def test_a_field_takes_a_line() -> None:
    plan = resume(TOY, "train", consumed=11)
    assert not len(plan.instructions)
    first, *fields, last = as_json(plan).splitlines()
    assert (first, last) == ("{", "}")
    assert all(field.startswith(("  ", "    {")) for field in fields)


def test_further_fields_come_last() -> None:
    plan = resume(TOY, "train", consumed=4)
    for document in (
        json.loads(as_json(plan, note={"a": 1})),
        yaml.safe_load(as_yaml(plan, note={"a": 1})),
    ):
        assert list(document)[-2:] == ["digest", "note"]


def test_files_of_one_name_in_several_folders_are_told_apart_by_their_index() -> None:
    parts = [ShardFiles(data_dir=f"/{day}", pattern="d-\0", num_shards=1) for day in ("mon", "tue")]
    split = Split(name="train", shard_lengths=(3, 4), files=tuple(parts))
    plan = resume(Dataset(name="d", splits=(split,)), "train", IN_ORDER, consumed=0)
    for document in (json.loads(as_json(plan)), yaml.safe_load(as_yaml(plan))):
        assert [
            (record["filename"], record["shard_index"]) for record in document["file_instructions"]
        ] == [("d-00000", 0), ("d-00000", 1)]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *[(name, name) for name in ('a"b', "a\\b", "a'b: #", "é數", "yes")],
        ("a##[b]", r"a\x23#[b]"),
        ("\x7f\u2028", r"\x7f\u2028"),
        ("-\t", r"'-\t"),
    ],
)
def test_names_of_any_characters_are_quoted(name: str, cell: str) -> None:
    files = ShardFiles(pattern=f"{name}-\0", num_shards=1)
    toy = Dataset(name="d", splits=(Split(name="no", shard_lengths=(3,), files=(files,)),))
    plan = replace(resume(toy, "no", consumed=0), warnings=())
    for document in (json.loads(as_json(plan)), yaml.safe_load(as_yaml(plan))):
        (record,) = document["file_instructions"]
        assert (record["filename"], record["split"]) == (f"{name}-00000", "no")
    (row,) = csv.reader(io.StringIO("".join(to_csv(instruction_rows(plan))).partition("\n")[2]))
    assert row[1] == f"{cell}-00000"
    assert len(row) == len(instruction_rows(plan).fields)
