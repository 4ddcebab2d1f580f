"""Layout files of all forms: written, read back, and refused where they contradict themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.index.index import index, index_document
from shardctl.metadata.layouts import (
    LAYOUT_KEYS,
    SPLIT_KEYS,
    dataset_from_layout,
    read_index_file,
    read_layout_file,
)
from shardctl.metadata.reference import merge_datasets
from shardctl.verbs.layout.answer import layout
from shardctl.verbs.layout.view import layout_document
from tests.cases import FUZZ, check_cases, few_or_many, fuzzed, some
from tests.golden import assert_answers
from tests.record_files import framed
from tests.strategies import datasets, documents, error_line

GOLDEN = Path(__file__).parent / "golden"


def read(document: Any) -> Dataset:
    return dataset_from_layout(document, stem="toy", folder=Path("/data"))


def of_split(split: Any) -> dict[str, Any]:
    return {"splits": {"train": split}}


def read_split(**split: Any) -> Sequence[int]:
    return read(of_split(split)).splits[0].shard_lengths


class TestReading:
    def test_the_least_layout_takes_its_name_from_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "birds.yaml"
        path.write_text("splits:\n  train: {shard_lengths: [3, 0, 5]}\n")
        dataset = read_layout_file(path)
        assert (dataset.name, dataset.config, dataset.version) == ("birds", None, None)
        assert (dataset.file_format, dataset.ordered, dataset.data_dir) == ("tfrecord", False, None)
        assert dataset.splits[0].filename(2) == "birds-train.tfrecord-00002-of-00003"
        assert dataset.splits[0].num_bytes is None
        assert dataset.origin == "layout file"

    def test_every_key_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "layout.yaml"
        path.write_text(
            "name: birds\nconfig: small\nversion: 2.0.0\nfile_format: array_record\n"
            "ordered: yes\ndata_dir: files\nfilepath_template: '{SPLIT}/{SHARD_X_OF_Y}'\n"
            "splits:\n"
            "  train: {num_examples: 10, num_shards: 3, num_bytes: 999}\n"
            "  test: {shard_lengths: [1], filenames: [one.array_record]}\n"
        )
        dataset = read_layout_file(path)
        assert dataset.title == "birds/small:2.0.0"
        assert (dataset.file_format, dataset.ordered) == ("array_record", True)
        train, test = dataset.splits
        assert (train.shard_lengths, train.num_bytes) == ((3, 4, 3), 999)
        assert train.location(1) == (str(tmp_path / "files"), "train/00001-of-00003")
        assert test.location(0) == (str(tmp_path / "files"), "one.array_record")

    def test_boundaries_are_those_tfds_writes(self) -> None:
        def check(numbers: tuple[int, int]) -> None:
            from tensorflow_datasets.core.utils import shard_utils

            num_shards, more = numbers
            ends = shard_utils.get_shard_boundaries(num_shards + more, num_shards)
            lengths = read_split(num_examples=num_shards + more, num_shards=num_shards)
            assert [sum(lengths[: i + 1]) for i in range(num_shards)] == ends

        numbers = st.tuples(st.integers(1, 60), st.integers(0, 10**6))
        check_cases(numbers, check, 80)

    def test_ordered_is_disable_shuffling(self) -> None:
        splits = {"train": {"shard_lengths": [1]}}
        assert read({"disable_shuffling": True, "splits": splits}).ordered
        with pytest.raises(DatasetError, match="are one setting"):
            read({"disable_shuffling": True, "ordered": True, "splits": splits})


class TestRefusals:
    def test_what_is_broken_is_refused_by_name_and_rule(self) -> None:
        assert_answers(GOLDEN / "layouts.txt", lambda text: read(eval(text, globals())).title)

    @fuzzed(80, FUZZ)
    def test_nonsense_gives_a_dataset_or_one_line_of_error(self, num_cases: int) -> None:
        check_cases(nonsense, check_nonsense, num_cases)


_ANY = documents(LAYOUT_KEYS + SPLIT_KEYS)
nonsense = (
    _ANY
    | st.fixed_dictionaries({"splits": st.fixed_dictionaries({"train": _ANY})})
    | st.builds(
        lambda key, value: {"splits": {"train": {"shard_lengths": [1, 2], key: value}}},
        st.sampled_from(SPLIT_KEYS),
        _ANY,
    )
    | st.builds(
        lambda key, value: {"splits": {"train": {"shard_lengths": [1, 2]}}} | {key: value},
        st.sampled_from(LAYOUT_KEYS),
        _ANY,
    )
)


def check_nonsense(value: Any) -> None:
    try:
        dataset = read(value)
    except DatasetError as error:
        line = str(error)
    else:
        assert dataset.title.isprintable()
        assert all(name.isprintable() for split in dataset.splits for name in split.filenames)
        return
    assert line.isprintable()


def read_back(dataset: Dataset, folder: Path, *splits: str) -> Dataset:
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


def check_refusals(name: str, folder: Path, document: dict[str, Any]) -> None:
    def answer(change: str) -> str:
        changed = yaml.safe_load("".join(to_yaml(document)))
        eval(change, {"d": changed})
        (folder / "layout.json").write_text(json.dumps(changed))
        line = some(error_line(lambda: read_layout_file(folder / "layout.json")))
        return line.replace(f"{folder}/", "")

    assert_answers(GOLDEN / name, answer)


def test_a_document_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    document = layout_document(layout(part(None, "toy", 1, 2)))
    check_refusals("layout_documents.txt", tmp_path, document)


def test_documents_of_before_have_their_names_alone(tmp_path: Path) -> None:
    dataset = part(None, "toy", 1, 2)
    document = yaml.safe_load("".join(to_yaml(layout_document(layout(dataset)))))
    del document["ordered"], document["splits"][0]["files"], document["splits"][0]["metadata_bytes"]
    (tmp_path / "x.json").write_text(json.dumps(document), encoding="utf-8")
    assert read_layout_file(tmp_path / "x.json").fingerprint == dataset.fingerprint


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


def test_what_contradicts_itself_is_refused(data: Path, document: dict[str, Any]) -> None:
    check_refusals("index_documents.txt", data.parent, document)
