"""What record files hold, as a table, a document and CSV rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import PLAIN
from shardctl.files.documents import to_csv, to_yaml
from shardctl.metadata.index.answer import Index, IndexedSplit
from shardctl.metadata.index.names import NameProblem
from shardctl.metadata.layouts import BrokenFile
from shardctl.verbs.index.view import (
    index_document,
    index_rows,
    index_table,
    summary,
    written,
)

FILES = ShardFiles(data_dir="/d", num_shards=2, names=("a", "x/b"))
WHOLE = Index(
    name="toy",
    version=None,
    file_format="tfrecord",
    compression="GZIP",
    data_dir="/d",
    splits=(
        IndexedSplit(
            split=Split(
                name="train",
                shard_lengths=(1200, 0),
                files=(FILES,),
                num_bytes=5000,
                shard_bytes=(5000, 0),
            ),
            versions=("mtime:1", "etag:y"),
        ),
    ),
    broken=(),
    problems=(),
    keep_going=False,
    num_files=2,
    num_known=0,
    num_counted=2,
    num_bytes_read=4096,
    seconds=0.5,
    paths=("/d",),
)
WRONG = replace(
    WHOLE,
    keep_going=True,
    broken=(BrokenFile("x/c", "train", "cut", "cut off", None, 99, 100, "mtime:3"),),
    problems=(NameProblem(kind="gap", split="train", text="shard 2 is missing"),),
)


def test_a_row_a_split_and_what_is_done_next() -> None:
    assert "".join(index_table(WHOLE, PLAIN, refs=["/d x"])).splitlines() == [
        "toy: tfrecord, GZIP, /d",
        "split  files  examples    bytes  smallest  largest",
        "train      2     1,200  4.9 KiB         0    1,200",
        "smallest, largest: examples in a file",
        "2 files read in 0.5 s (4 files/s, 4.0 KiB)",
        "next: shardctl index '/d x' -o layout.yaml writes the layout",
    ]


def test_what_is_wrong_stands_behind() -> None:
    shown = "".join(index_table(WRONG, PLAIN, refs=["/d"])).splitlines()
    assert shown[4:] == [
        "2 problems:",
        "shard 2 is missing",
        "file  problem",
        "x/c   cut off",
        "2 files read in 0.5 s (4 files/s, 4.0 KiB)",
    ]


def test_what_was_read_and_what_was_known() -> None:
    assert summary(replace(WHOLE, num_known=7, num_counted=0)) == "7 files known, none read"
    slow = replace(WHOLE, seconds=10)
    assert summary(slow) == "2 files read in 10.0 s (0.2 files/s, 4.0 KiB)"
    some = replace(WHOLE, num_known=7, num_counted=1)
    assert summary(some) == "1 file read in 0.5 s (2 files/s, 4.0 KiB), 7 known"


def test_what_was_written() -> None:
    assert list(written(WHOLE, "my layout.yaml")) == [
        "wrote my layout.yaml: 1,200 examples in 2 files of 1 split",
        "2 files read in 0.5 s (4 files/s, 4.0 KiB)",
        "next: shardctl layout -d 'my layout.yaml' shows it; shardctl index --check "
        "'my layout.yaml' says what changed since",
    ]


@pytest.mark.parametrize("path", ["files.csv", "files.txt", "layout"])
def test_a_file_that_is_no_layout_is_not_said_to_be_one(path: str) -> None:
    assert list(written(WHOLE, path))[2:] == [
        f"no layout for -d: {path} would have to end in .yaml, .yml or .json"
    ]


def test_as_many_paths_as_a_shell_made_of_a_glob_are_not_repeated() -> None:
    paths = [f"data/train-{shard:05}.tfrecord" for shard in range(1000)]
    shown = "".join(index_table(WHOLE, PLAIN, refs=paths)).splitlines()
    assert shown[-1] == "next: shardctl index PATH.. -o layout.yaml writes the layout"


def test_the_document_is_the_layout_file() -> None:
    fingerprint = WHOLE.dataset.fingerprint
    assert "".join(to_yaml(index_document(WRONG, "/"))).splitlines() == [
        "format_version: 1",
        "kind: index",
        "dataset: {name: toy, config: null, version: null, file_format: tfrecord, data_dir: d, "
        f"fingerprint: '{fingerprint}'}}",
        "ordered: false",
        "compression: GZIP",
        "paths: ['.']",
        "splits:",
        "- name: train",
        "  num_examples: 1200",
        "  num_shards: 2",
        "  num_bytes: 5000",
        "  shard_lengths: [1200, 0]",
        "  files:",
        "  - names: [a, x/b]",
        "  shard_bytes: [5000, 0]",
        "  versions: ['mtime:1', 'etag:y']",
        "problems:",
        "- {kind: gap, split: train, reason: 'shard 2 is missing'}",
        "broken:",
        "- {path: x/c, split: train, kind: cut, reason: 'cut off', record: null, byte: 99, "
        "num_bytes: 100, version: 'mtime:3'}",
    ]


def test_a_csv_row_a_file() -> None:
    assert "".join(to_csv(index_rows(WRONG))).splitlines() == [
        "split,path,num_examples,num_bytes,version,kind,reason,byte",
        "train,a,1200,5000,mtime:1,,,",
        "train,x/b,0,0,etag:y,,,",
        "train,x/c,,100,mtime:3,cut,cut off,99",
    ]
