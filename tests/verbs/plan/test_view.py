"""Plans as tables, documents and rows."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json
from shardctl.spec.host import Host
from shardctl.verbs.plan import view as rendering
from shardctl.verbs.plan.answer import Plans, plan
from tests.cases import counted
from tests.spec.tfds_splits import toy_dataset

TOY = toy_dataset({"train": (3, 4, 0, 3), "test": (2,)})


def text(plans: Plans, screen: Screen = PLAIN) -> str:
    return "".join(rendering.plan_table(plans, screen))


def test_a_table_shows_each_file_and_a_total() -> None:
    assert text(plan(TOY, "train[2:8]")) == (
        "train[2:8] in toy\n"
        "file                               skip  take  of  first id  last id\n"
        "toy-train.tfrecord-00000-of-00004     2     1   3         2        2\n"
        "toy-train.tfrecord-00001-of-00004     0     4   4         3        6\n"
        "toy-train.tfrecord-00003-of-00004     0     1   3         7        7\n"
        "total: 3 files, 6 examples; ids 2 to 7 (6)\n"
    )


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ("train", "total: 3 files, 10 examples; ids 0 to 9 (10)"),
        ("test[:1]", "total: 1 file, 1 example; ids 0 to 0 (1)"),
        ("train[:2]+train[8:]", "total: 2 files, 4 examples; ids 0 to 1 (2), 8 to 9 (2)"),
        ("all", "total: 4 files, 12 examples; ids train 0 to 9 (10), test 0 to 1 (2)"),
        ("test+test[1:]", "total: 2 reads of 1 file, 3 examples; ids 0 to 1 (2), 1 to 1 (1)"),
        ("train[5:5]", "total: no examples"),
        ("train[5:5]+test", "total: 1 file, 2 examples; ids 0 to 1 (2)"),
    ],
)
def test_the_total_counts_files_examples_and_ids(spec: str, total: str) -> None:
    assert text(plan(TOY, spec)).splitlines()[-1] == total


def test_the_total_adds_up() -> None:
    rng = random.Random(7)
    for _ in counted(range(100)):
        lengths = tuple(rng.randint(0, 5000) for _ in range(rng.randint(1, 30)))
        start, stop = sorted(rng.randint(0, sum(lengths)) for _ in range(2))
        shown = text(plan(toy_dataset({"train": lengths}), f"train[{start}:{stop}]")).splitlines()
        takes = [int(line.split()[2]) for line in shown[2:-1]]
        last_ids = [int(line.split()[5]) for line in shown[2:-1]]
        total = shown[-1].replace(",", "")
        if takes:
            assert f" {sum(takes)} example" in total
            assert f"ids {start} to {last_ids[-1]} ({sum(takes)})" in total
            assert last_ids[-1] == stop - 1
        else:
            assert total == "total: no examples"


def test_a_long_table_shows_both_ends_and_counts_what_lies_between() -> None:
    dataset = toy_dataset({"train": (2,) * 100})
    lines = text(plan(dataset, "train"), Screen(width=80, abridged=True)).splitlines()
    assert [line[19:24] for line in lines[2:22]] == [f"{i:05}" for i in range(20)]
    assert lines[22] == "… 60 more rows; --all shows them"
    assert [line[19:24] for line in lines[23:43]] == [f"{i:05}" for i in range(80, 100)]
    assert lines[43] == "total: 100 files, 200 examples; ids 0 to 199 (200)"
    assert len(text(plan(dataset, "train")).splitlines()) == 2 + 100 + 1


def test_every_host_has_its_table() -> None:
    titles = [
        line for line in text(plan(TOY, "train", "test", hosts=2)).splitlines() if " in toy" in line
    ]
    assert titles == [
        "train, host 0 of 2 in toy",
        "train, host 1 of 2 in toy",
        "test, host 0 of 2 in toy",
        "test, host 1 of 2 in toy",
    ]


def test_a_document_has_the_promised_fields_in_order() -> None:
    plans = plan(TOY, "train[:3]", host=Host(index=0, count=2))
    document = json.loads("".join(to_json(rendering.plan_document(plans))))
    assert list(document) == ["format_version", "kind", "dataset", "plans"]
    assert document["format_version"] == 1
    assert document["kind"] == "plan"
    assert document["dataset"] == {
        "name": "toy",
        "config": None,
        "version": None,
        "file_format": "tfrecord",
        "data_dir": None,
        "fingerprint": TOY.fingerprint,
    }
    assert document["plans"] == [
        {
            "spec": "train[:3]",
            "host": {"index": 0, "count": 2},
            "num_examples": 2,
            "file_instructions": [
                {
                    "filename": "toy-train.tfrecord-00000-of-00004",
                    "split": "train",
                    "skip": 0,
                    "take": 2,
                    "examples_in_shard": 3,
                    "first_id": 0,
                }
            ],
        }
    ]
    assert list(document["plans"][0]) == ["spec", "host", "num_examples", "file_instructions"]
    assert rendering.plan_document(plan(TOY, "train"))["plans"][0]["host"] is None


def test_csv_has_a_row_for_each_instruction() -> None:
    plans = plan(TOY, "train[2:8]+test", hosts=2)
    written = "".join(to_csv(rendering.plan_rows(plans)))
    rows = list(csv.DictReader(io.StringIO(written)))
    assert [row["host"] for row in rows] == ["0/2", "0/2", "0/2", "1/2", "1/2", "1/2"]
    assert [int(row["first_id"]) for row in rows] == [2, 3, 0, 5, 7, 1]
    assert sum(int(row["take"]) for row in rows) == 8
    assert {row["spec"] for row in rows} == {"train[2:8]+test"}
    alone = "".join(to_csv(rendering.plan_rows(plan(TOY, "test"))))
    assert alone == (
        "spec,host,filename,split,skip,take,examples_in_shard,first_id\n"
        "test,,toy-test.tfrecord-00000-of-00001,test,0,2,2,0\n"
    )


def test_brackets_in_a_spec_and_a_name_are_text() -> None:
    dataset = toy_dataset({"train": (1,)}, name="[v1][red]x")
    shown = text(plan(dataset, "train[0:]"), Screen(width=200))
    assert "train[0:] in [v1][red]x" in shown
    assert "[v1][red]x-train.tfrecord-00000-of-00001" in shown


def test_a_narrow_screen_folds_and_loses_nothing() -> None:
    plans = plan(TOY, "train[2:8]")
    for width in (20, 30, 50):
        shown = text(plans, Screen(width=width))
        assert max(map(len, shown.splitlines())) <= width
        for name in ("toy-train.tfrecord-00000-of-00004", "toy-train.tfrecord-00003-of-00004"):
            assert name in "".join(line.split("  ")[0].strip() for line in shown.splitlines())


def test_names_that_still_tell_files_apart_lose_their_middle() -> None:
    # skip, take, of, first id and last id take 25 columns, the gaps 10: 25 are left of 60.
    lines = text(plan(TOY, "train[2:8]"), Screen(width=60)).splitlines()
    assert max(map(len, lines)) <= 60
    assert [line.split()[0] for line in lines[2:5]] == [
        "toy-train.…00000-of-00004",
        "toy-train.…00001-of-00004",
        "toy-train.…00003-of-00004",
    ]
