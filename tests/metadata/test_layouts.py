"""Layout files of all forms: written, read back, and refused where they contradict themselves."""

from __future__ import annotations

import copy
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
from shardctl.metadata.index.answer import index_document
from shardctl.metadata.index.index import index
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
from tests.cases import FUZZ, check_cases, few_or_fuzz, few_or_many, some
from tests.record_files import framed
from tests.strategies import datasets, documents, error_line


def read(document: Any) -> Dataset:
    return dataset_from_layout(document, stem="toy", folder=Path("/data"))


def read_split(**split: Any) -> Sequence[int]:
    return read({"splits": {"train": split}}).splits[0].shard_lengths


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
    @pytest.mark.parametrize(
        ("document", "said"),
        [
            (None, "a layout must be a mapping, not nothing"),
            ([], "a layout must be a mapping, not a list"),
            ({1: 2}, "a layout: key 1 is not text; put it in quotes"),
            ({"split": {}}, "unknown key 'split'; did you mean splits? a layout may have: name, c"),
            ({}, "splits must be a mapping of split names, not nothing"),
            ({"splits": {}}, "dataset 'toy' has no splits"),
            ({"splits": "train"}, "splits must be a mapping of split names, not 'train'"),
            ({"splits": {True: {}}}, "split name must be text, not true; put it in quotes"),
            ({"splits": {"": {}}}, "split name is empty"),
            ({"splits": {"--": {}}}, "split name '--' holds no letter or digit"),
            ({"splits": {"a\x1b": {}}}, "split name 'a\\x1b' holds characters that cannot be"),
            ({"splits": {"train": 7}}, "split 'train': its value must be a mapping, not 7"),
            ({"splits": {"train": {}}}, "split 'train': no num_examples and no num_shards; give"),
            ({"splits": [{"name": "a", "shard_lengths": []}] * 2}, "has split 'a' twice"),
            ({"version": 1.0, "splits": {}}, "version must be text, not 1.0; put it in quotes"),
            ({"name": "x" * 5000, "splits": {}}, "has 5000 characters; a file name holds at most"),
            ({"file_format": "zip", "splits": {}}, "file format 'zip'; there are: tfrecord"),
            ({"ordered": "yes", "splits": {"a": {"shard_lengths": []}}}, "must be true or false"),
        ],
    )
    def test_a_broken_layout_is_refused_by_name_and_rule(self, document: Any, said: str) -> None:
        line = some(error_line(lambda: read(document)))
        assert said in line

    @pytest.mark.parametrize(
        ("split", "said"),
        [
            ({"shard_lengths": [3, -1]}, "length of shard 1 -1 is negative"),
            ({"shard_lengths": [1.5]}, "length of shard 0 must be a whole number, not 1.5"),
            ({"shard_lengths": [1.0]}, "length of shard 0 must be a whole number, not 1.0"),
            ({"shard_lengths": ["7"]}, "length of shard 0 must be a whole number, not '7'"),
            ({"shard_lengths": [True]}, "length of shard 0 must be a whole number, not true"),
            ({"shard_lengths": [None]}, "length of shard 0 must be a whole number, not nothing"),
            ({"shard_lengths": [[1]]}, "length of shard 0 must be a whole number, not a list"),
            ({"shard_lengths": [2**63]}, "length of shard 0 9223372036854775808 is more than an"),
            ({"shard_lengths": [16**9999]}, "length of shard 0 a number of more than 40 digits"),
            ({"shard_lengths": [2**63 - 1] * 2}, "an int64 holds at most 9223372036854775807"),
            ({"shard_lengths": 7}, "shard_lengths must be a list, not 7"),
            ({"shard_length": [7]}, "unknown key 'shard_length'; did you mean shard_lengths? a sp"),
            ({"num_examples": 7}, "no num_shards; give shard_lengths, or num_examples and"),
            ({"num_examples": 7, "num_shards": 0}, "num_shards 0 is not between 1 and 10000000"),
            ({"num_examples": 7, "num_shards": 10**7 + 1}, "num_shards 10000001 is not between"),
            ({"num_examples": -7, "num_shards": 1}, "num_examples -7 is negative"),
            ({"num_examples": 7.5, "num_shards": 1}, "num_examples must be a whole number, not 7."),
            ({"num_examples": 2**63 - 1, "num_shards": 3}, "is too large for TFDS's boundaries"),
            ({"num_examples": 2**63, "num_shards": 3}, "is more than an int64 holds"),
            ({"shard_lengths": [1], "num_bytes": -1}, "num_bytes -1 is negative"),
            ({"shard_lengths": [1], "filenames": ["../a"]}, "file name '../a' leaves the dataset'"),
            ({"shard_lengths": [1], "filenames": ["a", "b"]}, "2 file names for 1 shards"),
            ({"shard_lengths": [1], "filepath_template": "{X}"}, "'{X}' is not a variable; TFDS k"),
            ({"shard_lengths": [1], "filepath_template": "/{SPLIT}"}, "leaves the dataset's folde"),
        ],
    )
    def test_a_broken_split_is_refused_by_name_and_rule(self, split: Any, said: str) -> None:
        line = some(error_line(lambda: read({"splits": {"train": split}})))
        assert line.startswith("split 'train'")
        assert said in line

    @few_or_fuzz(200, FUZZ)
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
