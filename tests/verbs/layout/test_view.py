"""A layout as tables, documents and rows."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.verbs.layout.answer import layout
from shardctl.verbs.layout.view import layout_document, layout_rows, layout_table
from tests.cases import check_cases, few_or_many
from tests.strategies import datasets


def split_of(name: str, *lengths: int, **facts: Any) -> Split:
    files = ShardFiles(pattern=f"toy-{name}-\0", num_shards=len(lengths))
    return Split(name=name, shard_lengths=lengths, files=(files,), **facts)


def toy(*splits: Split, **facts: Any) -> Dataset:
    return Dataset(name="toy", version="1.0.0", splits=splits, **facts)


def lines(dataset: Dataset, screen: Screen = PLAIN) -> list[str]:
    return "".join(layout_table(layout(dataset), screen)).splitlines()


def test_a_summary_comes_first_then_the_shards_of_each_split() -> None:
    train = split_of("train", 1000, 1500, num_bytes=2048, shard_bytes=(900, 1400))
    assert lines(toy(train, data_dir="/data/toy/1.0.0")) == [
        "toy:1.0.0: tfrecord, /data/toy/1.0.0, bytes on disk",
        "split  examples  shards    bytes  smallest  largest     mean  imbalance",
        "train     2,500       2  2.2 KiB     1,000    1,500  1,250.0      1.200",
        "smallest, largest, mean: examples in a shard; imbalance: largest / mean, 1 is even",
        "",
        "train: 2 shards",
        "file             first id  last id  examples    bytes",
        "toy-train-00000         0      999      1000    900 B",
        "toy-train-00001      1000     2499      1500  1.4 KiB",
        "divides evenly among this many hosts: 1, 2",
    ]


@pytest.mark.parametrize(
    ("facts", "title", "cell"),
    [
        ({}, "bytes unknown", "unknown"),
        ({"num_bytes": 7}, "bytes by metadata", "7 B"),
        ({"num_bytes": 7, "shard_bytes": (9,)}, "bytes on disk", "9 B"),
    ],
)
def test_the_title_says_where_the_bytes_are_known_from(
    facts: dict[str, Any], title: str, cell: str
) -> None:
    shown = lines(toy(split_of("train", 1, **facts)))
    assert shown[0] == f"toy:1.0.0: tfrecord, metadata, {title}"
    assert cell in shown[2]


def test_each_split_says_it_where_they_differ() -> None:
    shown = lines(
        toy(
            split_of("train", 1, num_bytes=7, shard_bytes=(9,)),
            split_of("test", 1, num_bytes=7),
            split_of("dev", 1),
        )
    )
    assert shown[0] == "toy:1.0.0: tfrecord, metadata"
    assert ["9 B on disk" in shown[2], "7 B by metadata" in shown[3], "unknown" in shown[4]] == [
        True,
        True,
        True,
    ]


def test_a_file_that_is_not_here_is_missing_unless_it_holds_nothing() -> None:
    shown = lines(toy(split_of("train", 1, 0, 2, shard_bytes=(5, None, None))))
    assert [line.split()[-1] for line in shown if line.startswith("toy-")] == ["B", "-", "missing"]


def test_an_empty_shard_has_no_last_id() -> None:
    shown = lines(toy(split_of("train", 2, 0)))
    assert shown[-2].split() == ["toy-train-00001", "2", "-", "0"]


def test_splits_without_shards_or_examples_divide_nothing_by_zero() -> None:
    shown = lines(toy(split_of("train"), split_of("test", 0, 0)))
    assert shown[2].split() == ["train", "0", "0", "unknown", "-", "-", "-", "-"]
    assert shown[3].split() == ["test", "0", "2", "unknown", "0", "0", "0.0", "-"]
    assert "train: 0 shards" in shown


@pytest.mark.parametrize(
    ("num_shards", "abridged", "num_rows"),
    [(7, True, 7), (8, True, 6), (1024, True, 6), (1024, False, 1024)],
)
def test_the_first_and_last_shards_stand_for_many(
    num_shards: int, abridged: bool, num_rows: int
) -> None:
    screen = Screen(width=80, abridged=abridged)
    shown = lines(toy(split_of("train", *[1] * num_shards)), screen)
    rows = [line.split()[0] for line in shown if line.startswith("toy-")]
    assert len(rows) == num_rows
    assert (rows[0], rows[-1]) == ("toy-train-00000", f"toy-train-{num_shards - 1:05}")
    gap = f"… {num_shards - num_rows:,} more rows; --all shows them"
    gaps = [line for line in shown if line.startswith("…")]
    assert gaps == ([] if num_rows == num_shards else [gap])


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_no_line_is_wider_than_the_screen_and_no_number_is_lost(width: int) -> None:
    dataset = toy(split_of("train", *[1251] * 1024, num_bytes=146_999_114_192))
    shown = lines(dataset, Screen(width=width, abridged=True))
    assert max(map(len, shown)) <= width
    assert "1,281,024" in "\n".join(shown)
    assert "1279773" in "\n".join(shown)  # the first id of the last shard


def test_names_are_text_and_reach_the_terminal_without_escape_codes() -> None:
    split = Split(
        name="[red]train",
        shard_lengths=(1,),
        files=(ShardFiles(num_shards=1, names=("a\x1b[31m-[v1]",)),),
    )
    shown = "\n".join(lines(toy(split)))
    assert "[red]train" in shown
    assert "a\\x1b[31m-[v1]" in shown
    assert "\x1b" not in shown


def test_the_document_has_the_fields_that_programs_rely_on() -> None:
    train = split_of("train", 3, 0, 5, num_bytes=2048)
    document = layout_document(layout(toy(train)))
    assert list(document) == ["format_version", "kind", "dataset", "ordered", "splits"]
    assert document["kind"] == "layout"
    assert document["splits"] == [
        {
            "name": "train",
            "num_examples": 8,
            "num_shards": 3,
            "num_bytes": 2048,
            "shards": [
                {
                    "index": 0,
                    "filename": "toy-train-00000",
                    "first_id": 0,
                    "num_examples": 3,
                    "num_bytes": None,
                },
                {
                    "index": 1,
                    "filename": "toy-train-00001",
                    "first_id": 3,
                    "num_examples": 0,
                    "num_bytes": None,
                },
                {
                    "index": 2,
                    "filename": "toy-train-00002",
                    "first_id": 3,
                    "num_examples": 5,
                    "num_bytes": None,
                },
            ],
            "balance": {"min": 0, "max": 5, "mean": 8 / 3, "imbalance": 1.875},
            "metadata_bytes": 2048,
            "files": "toy-train-{SHARD_INDEX}",
        }
    ]


@few_or_many(25, 60)
def test_json_yaml_and_csv_say_the_same(num_cases: int) -> None:
    check_cases(datasets(), check_formats, num_cases)


def check_formats(dataset: Dataset) -> None:
    """Check that the layout of a dataset reads back alike from every format."""
    shown = layout(dataset)
    document = layout_document(shown)
    assert json.loads("".join(to_json(document))) == document
    assert yaml.safe_load("".join(to_yaml(document))) == document
    header, *rows = csv.reader("".join(to_csv(layout_rows(shown))).splitlines())
    assert header == ["split", "index", "filename", "first_id", "num_examples", "num_bytes"]
    # A name that a spreadsheet would compute has a ' before it (tests/files/test_documents.py).
    assert [[cell.removeprefix("'") for cell in row] for row in rows] == [
        [split["name"], *("" if value is None else str(value) for value in shard.values())]
        for split in document["splits"]
        for shard in split["shards"]
    ]


def test_numbers_of_hosts_lose_their_middle_on_a_terminal_alone() -> None:
    dataset = toy(split_of("train", *[1] * 1024))
    said = "divides evenly among this many hosts: 1, 2, 4, 8, 16, 32, "
    assert lines(dataset, Screen(width=99, abridged=True))[-1] == f"{said}… 512, 1024"
    for screen in (PLAIN, Screen(width=99)):  # the second is a terminal with --all
        assert lines(dataset, screen)[-1] == f"{said}64, 128, 256, 512, 1024"


def test_a_file_that_is_missing_is_marked_where_colour_is_shown() -> None:
    train = split_of("train", 3, 3, shard_bytes=(9, None))
    shown = lines(toy(train), Screen(color=True))
    assert sum(line.endswith("\x1b[1;91mmissing\x1b[0m") for line in shown) == 1
