"""Data sources beside the order they are read in: those of TFDS, and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.base.arguments import kind_of
from shardctl.errors import DatasetError, UsageError
from shardctl.live.key_order import BuilderOrDataset, DataSource, KeyOrder, check_source
from tests.grain.toys import raises_in_one_line, toy
from tests.tfds_datasets import build_dataset

SPLITS = {"train": [5, 3, 4], "test": [4, 3, 5], "more": [6, 6]}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("data")
    return {
        form: build_dataset(root / form, "toy", SPLITS, file_format=form)
        for form in ("tfrecord", "array_record")
    }


def source_of(folder: Path, split: Any) -> Any:
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder).as_data_source(split=split)


def order_of(folder: Path, spec: str) -> KeyOrder:
    return KeyOrder(shardctl.read_dataset(folder), spec, ReadSettings())


@pytest.mark.parametrize("form", ["tfrecord", "array_record"])
@pytest.mark.parametrize("spec", ["train", "train[2:9]", "test+train[:4]", "all", "train[50%:]"])
def test_that_of_the_spec_is_taken(folders: dict[str, Path], form: str, spec: str) -> None:
    check_source(source_of(folders["array_record"], spec), order_of(folders[form], spec))


def test_others_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    source = source_of(folders["array_record"], "train")
    order = order_of(folders["tfrecord"], "test")  # of as many examples
    raises_in_one_line(
        lambda: check_source(source, order), DatasetError, "train", "lengths of the files"
    )
    order = order_of(folders["tfrecord"], "more")
    raises_in_one_line(lambda: check_source(source, order), DatasetError, "lengths of the files")
    order = order_of(folders["tfrecord"], "train[:9]")
    raises_in_one_line(lambda: check_source(source, order), DatasetError, "12 records", "9 exam")
    order = order_of(build_dataset(tmp_path, "toy", {"train": [4, 4, 4]}), "train")
    raises_in_one_line(lambda: check_source(source, order), DatasetError, "as many shards")
    order = order_of(build_dataset(tmp_path, "other", SPLITS), "train")
    raises_in_one_line(lambda: check_source(source, order), DatasetError, "toy:1.0.0", "other")
    order = order_of(build_dataset(tmp_path, "toy", SPLITS, version="2.0.0"), "train")
    raises_in_one_line(lambda: check_source(source, order), DatasetError, "1.0.0", "2.0.0")


def test_files_of_equal_lengths_are_told_by_their_names(tmp_path: Path) -> None:
    splits = {"train": [5, 3], "test": [5, 3]}
    folder = build_dataset(tmp_path, "toy", splits, file_format="array_record")
    raises_in_one_line(
        lambda: check_source(source_of(folder, "test"), order_of(folder, "train")),
        DatasetError,
        "toy-test.*-00000-of-00002",
        "toy-train.*-00000-of-00002",
    )


def test_of_a_list_the_length_alone_is_known() -> None:
    check_source(list(range(9)), KeyOrder(toy(4, 5), "train", ReadSettings()))
    with pytest.raises(DatasetError, match="source has 8 records, and train of toy 9 examples"):
        check_source(list(range(8)), KeyOrder(toy(4, 5), "train", ReadSettings()))


def test_a_builder_is_a_dataset(folders: dict[str, Path]) -> None:
    import tensorflow_datasets as tfds

    take = kind_of(BuilderOrDataset).take
    builder = tfds.builder_from_directory(folders["array_record"])
    found = take(builder)
    assert found.fingerprint == shardctl.read_dataset(folders["array_record"]).fingerprint
    assert take(found) is found
    assert take(folders["tfrecord"]).name == "toy"
    for wrong in (7, None, object()):
        with pytest.raises(UsageError, match="a TFDS builder, a reference"):
            take(wrong)


@pytest.mark.parametrize("wrong", [7, "train", b"x", {1: 2}, None, iter([1])])
def test_what_has_no_records_is_no_source(wrong: object) -> None:
    with pytest.raises(UsageError, match="a data source is needed"):
        kind_of(DataSource).take(wrong)
