"""The layout file of `index`: written, read back, and refused where it contradicts itself."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.errors import DatasetError
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.index.answer import index_document
from shardctl.metadata.index.index import index
from shardctl.metadata.layouts import read_index_file, read_layout_file
from tests.record_files import framed


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, count in (("a-train-0", 3), ("a-train-1", 0), ("b c-test-0", 2)):
        folder = tmp_path / "data" / name.split("-")[1]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.tfrecord").write_bytes(framed(*[b"x"] * count))
    return tmp_path / "data"


@pytest.fixture
def document(data: Path) -> dict[str, Any]:
    return index_document(index(data), str(data.parent))


def test_it_says_what_the_contract_says(data: Path, document: dict[str, Any]) -> None:
    assert list(document) == ["format_version", "kind", "dataset", "ordered", "paths", "splits"]
    assert [document["format_version"], document["kind"]] == [1, "index"]
    assert document["dataset"]["data_dir"] == "data"
    assert document["paths"] == ["."]
    train, test = document["splits"]
    assert (train["name"], train["num_examples"], train["num_shards"]) == ("train", 3, 2)
    assert train["shard_lengths"] == [3, 0]
    assert train["shard_bytes"] == [3 * 17, 0]
    assert train["num_bytes"] == 51
    assert test["files"] == [{"names": ["test/b c-test-0.tfrecord"]}]
    times = [(data / "train" / f"a-train-{n}.tfrecord").stat().st_mtime_ns for n in (0, 1)]
    assert list(train["versions"]) == [f"mtime:{time}" for time in times]


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_it_is_read_back(data: Path, document: dict[str, Any], ending: str) -> None:
    path = data.parent / f"layout.{ending}"
    path.write_text("".join(to_json(document) if ending == "json" else to_yaml(document)))
    found = index(data).dataset
    dataset = read_layout_file(path)
    assert dataset.fingerprint == found.fingerprint
    assert (dataset.name, dataset.data_dir) == (found.name, str(data))
    assert [split.num_bytes for split in dataset.splits] == [51, 34]
    layout = read_index_file(path)
    paths = [f"{data}/{name}" for split in found.splits for name in split.files[0]]
    assert [one.file.path for one in layout.files()] == paths
    assert [one.file.num_bytes for one in layout.files()] == [51, 0, 34]
    assert [one.num_records for one in layout.files()] == [3, 0, 2]
    assert [one.split for one in layout.files()] == ["train", "train", "test"]
    assert list(layout.wanted()) == [str(data)]


def test_the_same_bytes_whoever_counts(data: Path) -> None:
    texts = {
        "".join(to_yaml(index_document(index(data, jobs=jobs, cache=cache), "/")))
        for jobs in (1, 2)
        for cache in (True, False)
    }
    assert len(texts) == 1


def test_a_folder_elsewhere_is_whole(data: Path) -> None:
    found = index(data)
    for beside in (None, "/elsewhere", str(data / "train")):
        assert index_document(found, beside)["dataset"]["data_dir"] == str(data)
    assert index_document(found, str(data))["dataset"]["data_dir"] == "."


def test_broken_files_are_kept_apart(data: Path) -> None:
    file = data / "train" / "a-train-0.tfrecord"
    file.write_bytes(file.read_bytes()[:-2])
    document = index_document(index(data, keep_going=True), str(data.parent))
    (broken,) = document["broken"]
    assert (broken["path"], broken["split"]) == ("train/a-train-0.tfrecord", "train")
    assert (broken["kind"], broken["record"], broken["byte"]) == ("cut", 2, 34)
    path = data.parent / "layout.yaml"
    path.write_text("".join(to_yaml(document)))
    (again,) = read_index_file(path).broken
    assert (again.path, again.num_bytes) == ("train/a-train-0.tfrecord", 49)
    assert read_layout_file(path).split("train").shard_lengths == (0,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(format_version=2), "format_version 2; this shardctl reads 1"),
        (lambda d: d["splits"][0].update(num_examples=4), "num_examples 4 is not that of shard_le"),
        (lambda d: d["splits"][0]["shard_lengths"].append(1), "is not that of shard_lengths, 4"),
        (lambda d: d["splits"][0]["shard_bytes"].append(1), "not one length, size and version"),
        (lambda d: d["splits"][0].update(shard_lengths=[0, 3]), "not those of its fingerprint"),
        (lambda d: d["splits"][0].update(shard_lengths=[-1, 4]), "shard 0 -1 is negative"),
        (lambda d: d["splits"][0].update(versions=None), "versions must be a list"),
        (lambda d: d.update(check="layout.yaml"), "what index --check said of a layout"),
        (lambda d: d.update(splits=None), "splits must be a list"),
        (lambda d: d.update(broken=[{}]), "broken.0. has no path"),
        (lambda d: d.update(compression="zip"), "compression 'zip'"),
    ],
)
def test_what_contradicts_itself_is_refused(
    data: Path, document: dict[str, Any], change: Any, said: str
) -> None:
    changed = copy.deepcopy(yaml.safe_load("".join(to_yaml(document))))
    change(changed)
    path = data.parent / "layout.json"
    path.write_text(json.dumps(changed))
    with pytest.raises(DatasetError, match=said):
        read_layout_file(path)
