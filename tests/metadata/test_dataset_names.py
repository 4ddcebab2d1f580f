"""Names are read as TFDS reads them, and lead to data dirs and then to the built-in catalog."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from shardctl.errors import DatasetError
from shardctl.metadata import dataset_names as module
from shardctl.metadata.dataset_names import (
    CATALOG,
    DataDirs,
    DatasetName,
    catalog_dataset,
    catalog_names,
    catalog_titles,
    data_dirs,
    dataset_names,
    find_dataset,
    list_datasets,
    newest_version,
    parse_dataset_name,
    version_key,
)
from shardctl.metadata.project_file import Project
from tests.cases import some
from tests.golden import assert_answers
from tests.tfds_datasets import build_dataset

VERSIONS = ["3.9.0", "3.10.0", "3.9.9", "10.0.0", "latest", "30.0"]


def read(text: str) -> object:
    found = parse_dataset_name(text)
    assert found is None or found.shown == text
    return found and (found.name, found.config, found.version, list(map(str, found.readings())))


def newest(wanted: str | None) -> str | None:
    return newest_version(VERSIONS, wanted)


def facts(title: str, split: str) -> tuple[int, int, int | None]:
    wanted = some(parse_dataset_name(title))
    found = some(catalog_dataset(wanted.name, wanted.config, wanted.version)).split(split)
    return found.num_examples, found.num_shards, found.num_bytes


def test_names_versions_and_what_the_catalog_holds() -> None:
    assert newest_version(["latest"]) is None
    path = Path(__file__).parent / "golden" / "names.txt"
    assert_answers(path, lambda question: repr(eval(question, globals())))


@pytest.mark.parametrize("text", ["mnist", "FashionMNIST", "D4rlAdroitDoor", "SVHNCropped", "aB1C"])
def test_camel_case_becomes_the_snake_case_of_tfds(text: str) -> None:
    from tensorflow_datasets.core import naming

    found = some(parse_dataset_name(text))
    assert found.name == naming.camelcase_to_snakecase(text)


# Data dirs.


def dirs_in(env: dict[str, str], given: Any, project: Project) -> DataDirs:
    with mock.patch.dict(os.environ, env):
        return data_dirs(given, project)


def test_data_dirs_are_in_the_order_they_are_searched(tmp_path: Path) -> None:
    env = {"HOME": "/home/me", "TFDS_DATA_DIR": "~/tfds"}
    expected = [str(tmp_path), "/home/me/tfds", "/home/me/tensorflow_datasets"]
    project = Project(data_dir=str(tmp_path))
    dirs = dirs_in(env, tmp_path, Project(data_dir="/other"))
    assert list(map(str, dirs)) == list(dirs.sources) == expected
    assert [kind for kind, _ in dirs.sources.values()] == ["option", "environment", "default"]
    assert next(iter(dirs_in(env, None, project).sources.values()))[0] == "file"
    assert list(map(str, dirs_in(env, None, project))) == expected
    assert list(map(str, dirs_in(env, None, Project()))) == expected[1:]
    assert list(map(str, dirs_in({"HOME": "/home/me"}, None, Project()))) == expected[2:]
    (tmp_path / "tensorflow_datasets").mkdir()
    once = dirs_in({"HOME": str(tmp_path)}, "~/tensorflow_datasets", Project())
    assert list(once) == [tmp_path / "tensorflow_datasets"]
    assert [kind for kind, _ in once.sources.values()] == ["option"]


@pytest.mark.parametrize(
    ("given", "variable", "project", "error"),
    [
        ("no://me:pw@bucket", None, None, "unknown scheme no://"),
        ("/no/such", None, None, "--data-dir '/no/such': no such local folder"),
        (None, None, "/no", "/project/shardctl.yaml: data_dir '/no': no such local folder"),
    ],
)
def test_a_data_dir_that_cannot_be_searched_is_refused_by_name(
    given: str | None, variable: str | None, project: str | None, error: str
) -> None:
    env = {"HOME": "/home/me"} | ({"TFDS_DATA_DIR": variable} if variable else {})
    dirs = dirs_in(env, given, Project(path=Path("/project/shardctl.yaml"), data_dir=project))
    with pytest.raises(DatasetError, match=f"^{re.escape(error)}"):
        find_dataset(dirs, DatasetName(name="toy"))
    assert list(dirs.local())[-1] == Path("/home/me/tensorflow_datasets")


def test_a_folder_before_a_remote_one_may_hold_the_dataset(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    dirs = dirs_in({"HOME": "/home/me", "TFDS_DATA_DIR": "no://bucket"}, tmp_path, Project())
    assert find_dataset(dirs, DatasetName(name="toy")) == folder
    with pytest.raises(DatasetError, match="unknown scheme"):
        find_dataset(dirs, DatasetName(name="mnist"))


def test_datasets_are_listed_by_name_config_and_version_number(tmp_path: Path) -> None:
    for version in ("1.10.0", "1.9.0"):
        build_dataset(tmp_path / "a", version=version, with_files=False)
        build_dataset(tmp_path / "b", config="plain", version=version, with_files=False)
    build_dataset(tmp_path / "b", name="another", with_files=False)
    dirs = [tmp_path / "a", tmp_path / "b", tmp_path / "nothing"]
    of_toy = ["toy:1.9.0", "toy:1.10.0", "toy/plain:1.9.0", "toy/plain:1.10.0"]
    found = list_datasets(dirs)
    assert list(map(str, found)) == ["another:1.0.0", *of_toy]
    assert found[1].path == tmp_path / "a" / "toy" / "1.9.0"
    assert list(map(str, list_datasets(dirs, "toy"))) == of_toy
    assert dataset_names(dirs) == ("another", "toy")


@pytest.mark.parametrize("named", ["../other", "../toy/plain", "plain/..", 7, "", None, ["plain"]])
def test_a_default_config_is_the_name_of_a_folder_there(tmp_path: Path, named: object) -> None:
    folder = build_dataset(tmp_path, config="plain", with_files=False)
    build_dataset(tmp_path, name="other", with_files=False)
    metadata = tmp_path / "toy" / ".config" / "metadata.json"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text(json.dumps({"default_config_name": "plain"}))
    assert find_dataset([tmp_path], DatasetName(name="toy")) == folder
    metadata.write_text(json.dumps({"default_config_name": named}))
    with pytest.raises(DatasetError, match=r"none of them the default; choose one: toy/plain"):
        find_dataset([tmp_path], DatasetName(name="toy"))


def test_folders_of_another_shape_or_closed_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    (tmp_path / "toy" / "2.0.0").mkdir()  # a version without metadata
    (tmp_path / "toy" / "3.0.0.incompleteX").mkdir()
    (tmp_path / "toy" / "3.0.0.incompleteX" / "dataset_info.json").touch()
    (tmp_path / "toy" / "latest").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "secret").mkdir()
    (tmp_path / "file").touch()
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert [found.path for found in list_datasets([tmp_path])] == [folder]


# The built-in catalog.

DOCUMENTS: dict[str, Any] = {path.stem: json.loads(path.read_text()) for path in CATALOG.iterdir()}


@pytest.mark.parametrize("name", catalog_names())
def test_each_file_of_the_catalog_states_facts_and_their_source(name: str) -> None:
    document = DOCUMENTS[name]
    assert tuple(document) == ("name", "default_config", "entries")
    assert document["name"] == name
    titles, versions = catalog_titles(name), dict[str | None, list[Any]]()
    assert len(set(titles)) == len(titles) > 0
    for title, entry in zip(titles, document["entries"], strict=True):
        assert set(entry) == {"config", "version", "file_format", "source", "splits"}
        assert entry["source"].startswith("tensorflow/datasets@")
        assert (entry["config"] is None) == (document["default_config"] is None)
        versions.setdefault(entry["config"], []).append(version_key(entry["version"]))
        wanted = some(parse_dataset_name(title))
        dataset = some(catalog_dataset(wanted.name, wanted.config, wanted.version))
        assert (dataset.title, dataset.file_format) == (title, "tfrecord")
        assert (dataset.data_dir, dataset.origin) == (None, "built-in catalog")
        for split, stated in zip(dataset.splits, entry["splits"], strict=True):
            assert min(split.shard_lengths) > 0
            lengths, total, count = split.shard_lengths, split.num_examples, split.num_shards
            rounded = [round(total * i / count) for i in range(count + 1)]
            even = [b - a for a, b in pairwise(rounded)]
            assert (list(lengths) == even) == ("shard_lengths" not in stated)
    assert all(each == sorted(each, reverse=True) for each in versions.values())
    assert len((CATALOG / f"{name}.json").read_bytes()) < 16_000  # read at each start


def test_no_config_means_the_default_config_of_tfds() -> None:
    coco, other = catalog_dataset("coco"), catalog_dataset("coco", "2017")
    assert (coco and coco.config, other and other.title) == ("2014", "coco/2017:1.1.0")
    with pytest.raises(DatasetError, match=r"'x' has .* choose one: imagenet_resized/32x32, image"):
        catalog_dataset("imagenet_resized", shown="x")


def test_the_newest_version_is_taken_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = [{"name": "train", "num_examples": 3, "num_shards": 2}]
    entries = [
        {"config": None, "version": version, "splits": splits}
        for version in ("2.10.0", "2.9.0", "10.0.0")
    ]
    monkeypatch.setattr(module, "_catalog_document", lambda name: {"entries": entries})
    newest, newest_2 = catalog_dataset("toy"), catalog_dataset("toy", version="2.*.*")
    assert (newest and newest.version, newest_2 and newest_2.version) == ("10.0.0", "2.10.0")
