"""The datasets that names lead to, as people and programs read them."""

from __future__ import annotations

from shardctl.planning.list import DatasetList, ListedDataset
from shardctl.rendering.list import CSV_HEADER, list_document, list_rows, list_table
from shardctl.rendering.text.tables import PLAIN, Screen

MINE = ListedDataset(name="toy", config="a", version="1.0.0", path="/data/toy/a/1.0.0")
COCO = [
    ListedDataset(name="coco", config=year, version="1.1.0", path=None) for year in ("2014", "2017")
]
MNIST = ListedDataset(name="mnist", config=None, version="3.0.1")
LISTED = DatasetList(data_dirs=("/data", "/more"), in_data_dirs=(MINE,), built_in=(*COCO, MNIST))


def test_datasets_with_files_are_rows_and_built_in_ones_names() -> None:
    assert "".join(list_table(LISTED, PLAIN)) == (
        "dataset      folder\n"
        "toy/a:1.0.0  /data/toy/a/1.0.0\n"
        "\n"
        "built-in layouts\n"
        "coco, mnist\n"
        "(--all shows their configs and versions)\n"
    )


def test_all_of_them_are_rows_on_demand() -> None:
    assert "".join(list_table(LISTED, PLAIN, every_layout=True)) == (
        "dataset          folder\n"
        "toy/a:1.0.0      /data/toy/a/1.0.0\n"
        "coco/2014:1.1.0  built-in layout\n"
        "coco/2017:1.1.0  built-in layout\n"
        "mnist:3.0.1      built-in layout\n"
    )


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
    }
    assert [tuple(record.values()) for record in document["datasets"]] == list(list_rows(LISTED))
    assert tuple(document["datasets"][-1]) == CSV_HEADER
    assert list(list_rows(LISTED))[-1] == ("mnist", None, "3.0.1", None, "catalog")
