"""The document of `layout` reads back as the dataset it was written of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.layouts import read_layout_file
from shardctl.metadata.names import catalog_dataset, catalog_names, catalog_titles
from shardctl.metadata.reference import merge_datasets
from shardctl.verbs.layout.answer import layout
from shardctl.verbs.layout.view import layout_document
from tests.cases import check_cases, few_or_many
from tests.strategies import datasets


def read_back(dataset: Dataset, folder: Path, *splits: str) -> Dataset:
    """Return what both forms of the document say, which is the same."""
    document = layout_document(layout(dataset, *splits))
    (folder / "layout.yaml").write_text("".join(to_yaml(document)), encoding="utf-8")
    (folder / "layout.json").write_text("".join(to_json(document)), encoding="utf-8")
    found = read_layout_file(folder / "layout.json")
    assert found == read_layout_file(folder / "layout.yaml")
    return found


def part(folder: str | None, name: str, *lengths: int, version: str = "1.0.0") -> Dataset:
    files = ShardFiles.from_template(
        "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        dataset=name,
        split="train",
        file_format="tfrecord",
        num_shards=len(lengths),
        data_dir=folder,
    )
    split = Split(name="train", shard_lengths=lengths, files=(files,), num_bytes=sum(lengths))
    return Dataset(name=name, version=version, splits=(split,), data_dir=folder)


@few_or_many(25, 60)
def test_any_dataset_comes_back(tmp_path: Path, num_cases: int) -> None:
    def check(dataset: Dataset) -> None:
        found = read_back(dataset, tmp_path)
        assert found.identity == dataset.identity
        assert [replace(split, shard_bytes=None) for split in dataset.splits] == [*found.splits]

    check_cases(datasets(), check, num_cases)


@pytest.mark.long
def test_every_dataset_of_the_catalog_comes_back(tmp_path: Path) -> None:
    titles = [title for name in catalog_names() for title in catalog_titles(name)]
    assert len(titles) > 50
    for title in titles:
        name, _, version = title.partition(":")
        name, _, config = name.partition("/")
        dataset = catalog_dataset(name, config or None, version or None)
        assert dataset is not None
        text = "".join(to_json(layout_document(layout(dataset))))
        (tmp_path / "x.json").write_text(text, encoding="utf-8")
        assert read_layout_file(tmp_path / "x.json").identity == dataset.identity, title


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_several_folders_keep_their_order(tmp_path: Path, names: tuple[str, str]) -> None:
    merged = merge_datasets([part(f"/data/{name}", "toy", 3, 4) for name in names])
    found = read_back(merged, tmp_path)
    assert found.identity == merged.identity
    assert len(found.identity.folders) == 2
    assert [files.data_dir for files in found.splits[0].files] == [f"/data/{n}" for n in names]


def test_counted_files_stay_counted(tmp_path: Path) -> None:
    plain = part("data", "toy", 3, 4)
    packed = replace(plain, origin=COUNTED_FILES, compression="GZIP")
    found = read_back(packed, tmp_path)
    assert (found.is_counted, found.compression) == (True, "GZIP")
    assert found.reference == str(tmp_path / "layout.json")
    assert not read_back(plain, tmp_path).is_counted


def test_some_splits_are_a_dataset_of_these(tmp_path: Path) -> None:
    both = Dataset(
        name="toy",
        ordered=True,
        splits=(
            *part(None, "toy", 1, 2).splits,
            replace(part(None, "toy", 5).splits[0], name="test"),
        ),
    )
    found = read_back(both, tmp_path, "test")
    assert [split.name for split in found.splits] == ["test"]
    assert found.ordered
    assert [s.name for s in read_back(both, tmp_path, "test", "train").splits] == ["test", "train"]


def changed(document: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    *path, last = key.split(".")
    place: Any = document
    for step in path:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return document


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("format_version", 2, "format_version 2; this shardctl reads 1"),
        ("splits.0.num_examples", 4, "num_examples 4 is not that of its shards, 3"),
        ("splits.0.num_shards", 1, "num_shards 1 is not that of its shards, 2"),
        ("splits.0.shards.1.num_examples", -1, "num_examples"),
        ("splits.0.shards.1.filename", "x", "file 'x' is 'toy-train.tfrecord-00001-of-00002'"),
        ("splits.0.files", "../{SHARD_INDEX}", "leaves"),
        ("splits.0.files", None, "split 'train': files must be a template"),
        ("splits.0.files", [], "split 'train': files must be a template"),
        ("splits.0.files", [None], "a part of files"),
        ("splits", [], "no splits"),
        ("dataset", None, "dataset"),
        ("compression", "zip", "compression 'zip'; it is GZIP or ZLIB"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(
    tmp_path: Path, key: str, value: Any, said: str
) -> None:
    document = yaml.safe_load("".join(to_yaml(layout_document(layout(part(None, "toy", 1, 2))))))
    path = tmp_path / "x.json"
    path.write_text(json.dumps(changed(document, key, value)), encoding="utf-8")
    with pytest.raises(DatasetError, match=said):
        read_layout_file(path)


def test_documents_of_before_have_their_names_alone(tmp_path: Path) -> None:
    dataset = part(None, "toy", 1, 2)
    document = yaml.safe_load("".join(to_yaml(layout_document(layout(dataset)))))
    del document["ordered"], document["splits"][0]["files"], document["splits"][0]["metadata_bytes"]
    (tmp_path / "x.json").write_text(json.dumps(document), encoding="utf-8")
    assert read_layout_file(tmp_path / "x.json").fingerprint == dataset.fingerprint
