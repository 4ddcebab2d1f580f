"""The datasets that names lead to, as people and programs read them."""

from __future__ import annotations

from dataclasses import replace

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN, Screen
from shardctl.verbs.list.answer import DatasetList, ListedDataset
from shardctl.verbs.list.view import list_document, list_rows, list_table

TOY = Dataset(
    name="toy",
    splits=(
        Split(name="train", shard_lengths=(1200, 34), num_bytes=2048),
        Split(name="test", shard_lengths=(5,), num_bytes=512),
    ),
    file_format="array_record",
)
MINE = ListedDataset(name="toy", config="a", version="1.0.0", path="/data/toy/a/1.0.0", dataset=TOY)
SMALL = Dataset(name="x", splits=(Split(name="train", shard_lengths=(7,)),))
COCO = [
    ListedDataset(name="coco", config=year, version="1.1.0", path=None, dataset=SMALL)
    for year in ("2014", "2017")
]
MNIST = ListedDataset(name="mnist", config=None, version="3.0.1", dataset=SMALL)
LISTED = DatasetList(data_dirs=("/data", "/more"), in_data_dirs=(MINE,), built_in=(*COCO, MNIST))


def test_datasets_with_files_are_rows_and_built_in_ones_names() -> None:
    assert "".join(list_table(LISTED, PLAIN)) == (
        "dataset      examples     size  format        folder\n"
        "toy/a:1.0.0     1,239  2.5 KiB  array_record  /data/toy/a/1.0.0\n"
        "\n"
        "built-in layouts\n"
        "coco, mnist\n"
        "(--all shows their configs and versions)\n"
    )


def test_all_of_them_are_rows_on_demand() -> None:
    assert "".join(list_table(LISTED, PLAIN, every_layout=True)) == (
        "dataset          examples     size  format        folder\n"
        "toy/a:1.0.0         1,239  2.5 KiB  array_record  /data/toy/a/1.0.0\n"
        "coco/2014:1.1.0         7  unknown  tfrecord      built-in layout\n"
        "coco/2017:1.1.0         7  unknown  tfrecord      built-in layout\n"
        "mnist:3.0.1             7  unknown  tfrecord      built-in layout\n"
    )


def test_words_make_rows_of_what_has_them() -> None:
    assert "".join(list_table(LISTED.having(["coco", "17"]), PLAIN)) == (
        "dataset          examples     size  format    folder\n"
        "coco/2017:1.1.0         7  unknown  tfrecord  built-in layout\n"
    )
    said = "no dataset in /data, /more or the built-in catalog has"
    table = "".join(list_table(LISTED.having(["mnits"]), PLAIN))
    assert table == f"{said} 'mnits' in its name or format; near: mnist\n"
    table = "".join(list_table(LISTED.having(["coco", "mnist"]), PLAIN))
    assert table == f"{said} 'coco' and 'mnist' in its name or format\n"
    assert list_document(LISTED.having(["mnits"]))["datasets"] == []


def test_a_damaged_dataset_is_a_row() -> None:
    broken = ListedDataset(
        name="b", config=None, version="1.0.0", path="/data/b/1.0.0", problem="no splits"
    )
    damaged = DatasetList(data_dirs=("/data",), in_data_dirs=(broken, MINE), built_in=())
    assert damaged.problems == ("no splits",)
    assert "".join(list_table(damaged, Screen(color=True))).splitlines()[1] == (
        "b:1.0.0       \x1b[1;91mdamaged\x1b[0m        -  -             /data/b/1.0.0"
    )
    assert list_document(damaged)["datasets"][0] == {
        **dict.fromkeys(list_rows(damaged).fields),
        "name": "b", "version": "1.0.0", "path": "/data/b/1.0.0", "source": "data_dir",
        "splits": [], "problem": "no splits",
    }  # fmt: skip


def test_a_long_folder_loses_its_middle_on_a_narrow_screen() -> None:
    far = replace(MINE, path="/home/somebody/tensorflow_datasets/toy/a/1.0.0")
    listed = DatasetList(data_dirs=("/data",), in_data_dirs=(far,), built_in=())
    lines = "".join(list_table(listed, Screen(width=70))).splitlines()
    assert max(map(len, lines)) <= 70
    assert lines[1].endswith("  /home/somebo…toy/a/1.0.0")


def test_folders_without_datasets_are_said() -> None:
    nothing = DatasetList(data_dirs=("/data", "/more"), in_data_dirs=(), built_in=())
    assert "".join(list_table(nothing, PLAIN)) == "no datasets in /data, /more\n"


def test_the_names_of_layouts_are_folded_to_the_screen() -> None:
    many = DatasetList(data_dirs=("/data",), in_data_dirs=(), built_in=(*COCO, MNIST) * 9)
    lines = "".join(list_table(many, Screen(width=20), every_layout=False)).splitlines()
    assert max(map(len, lines)) <= 20


def test_the_document_has_the_folders_and_a_record_for_each_row() -> None:
    document = list_document(LISTED)
    assert (document["kind"], document["data_dirs"]) == ("list", ["/data", "/more"])
    assert document["datasets"][0] == {
        "name": "toy",
        "config": "a",
        "version": "1.0.0",
        "path": "/data/toy/a/1.0.0",
        "source": "data_dir",
        "file_format": "array_record",
        "num_examples": 1239,
        "num_bytes": 2560,
        "splits": [
            {"name": "train", "num_examples": 1234, "num_shards": 2, "num_bytes": 2048},
            {"name": "test", "num_examples": 5, "num_shards": 1, "num_bytes": 512},
        ],
        "problem": None,
    }
    rows = [list(record.values()) for record in document["datasets"]]
    for row in rows:
        row[-2] = " ".join(split["name"] for split in row[-2])
    assert rows == list(map(list, list_rows(LISTED).rows()))
    assert tuple(document["datasets"][-1]) == list_rows(LISTED).fields
    assert rows[-1] == [
        "mnist", None, "3.0.1", None, "catalog", "tfrecord", 7, None, "train", None,
    ]  # fmt: skip
