"""What became of the files of a layout, as a table, a document and CSV rows."""

from __future__ import annotations

from dataclasses import replace

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN
from shardctl.files.documents import to_csv
from shardctl.verbs.index.check import FileChange, IndexCheck
from shardctl.verbs.index.view import (
    check_document,
    check_rows,
    check_table,
)

EQUAL = IndexCheck(
    layout="layout.yaml",
    dataset=Dataset(name="toy", data_dir="/d", splits=(Split(name="train", shard_lengths=(3, 4)),)),
    changes=(),
    num_files=2,
    num_touched=1,
    num_counted=1,
)
GREW = FileChange(
    kind="grew", path="a", split="train", then=3, now=1400, bytes_then=30, bytes_now=2048
)
BROKEN = FileChange(
    kind="broken", path="b", split="train", then=4, bytes_then=30, bytes_now=30, reason="cut off"
)
NEW = FileChange(kind="appeared", path="c", bytes_now=9)


def test_nothing_changed() -> None:
    assert "".join(check_table(EQUAL, PLAIN)).splitlines() == [
        "toy: /d",
        "2 files: all as layout.yaml says",
        "1 file written again, with as many bytes and examples",
    ]


def test_each_change_has_a_row() -> None:
    changed = replace(EQUAL, changes=(GREW, BROKEN, NEW), num_touched=0)
    assert "".join(check_table(changed, PLAIN)).splitlines() == [
        "toy: /d",
        "change    file  examples    now  bytes    now  problem",
        "grew      a            3  1,400     30  2,048",
        "broken    b            4      -     30     30  cut off",
        "appeared  c            -      -      -      9",
        "of 2 files: 1 grew, 1 broken, 1 appeared",
        "next: shardctl index PATH.. -o layout.yaml counts what changed",
    ]


def test_programs_get_every_field() -> None:
    changed = replace(EQUAL, changes=(GREW, NEW))
    document = check_document(changed)
    assert [document["kind"], document["check"], document["equal"]] == [
        "index",
        "layout.yaml",
        False,
    ]
    assert (document["num_files"], document["num_touched"]) == (2, 1)
    assert document["changes"][0]["kind"] == "grew"
    assert "".join(to_csv(check_rows(changed))).splitlines() == [
        "kind,split,path,then,now,bytes_then,bytes_now,reason",
        "grew,train,a,3,1400,30,2048,",
        "appeared,,c,,,,9,",
    ]
