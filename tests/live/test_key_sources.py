"""Data sources beside the order they are read in: those of TFDS, and lists."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.base.arguments import kind_of
from shardctl.errors import DatasetError, UsageError
from shardctl.live.key_order import (
    BuilderOrDataset,
    DataSource,
    KeyOrder,
    check_source,
    says_types,
    typed,
    with_types,
)
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
    source, own = source_of(folders["array_record"], "train"), folders["tfrecord"]
    cases: list[tuple[Path, str, tuple[str, ...]]] = [
        (own, "test", ("train", "same number of shards")),  # of as many examples
        (own, "more", ("same number of shards",)),
        (own, "train[:9]", ("12 records", "9 exam")),
        (
            build_dataset(tmp_path / "a", "toy", {"train": [4, 4, 4]}),
            "train",
            ("same number of shards",),
        ),
        (build_dataset(tmp_path, "other", SPLITS), "train", ("toy:1.0.0", "other")),
        (build_dataset(tmp_path, "toy", SPLITS, version="2.0.0"), "train", ("1.0.0", "2.0.0")),
    ]
    for folder, spec, words in cases:
        order = order_of(folder, spec)
        raises_in_one_line(lambda o=order: check_source(source, o), DatasetError, *words)  # type: ignore[misc]


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


# Examples with the types that tf.data gives them.

TYPES = {"f": np.float32, "u": np.uint8, "s": np.int32, "t": np.object_}


class Source(list[Any]):
    """A source that says of which types its features are, as TFDS's do."""

    def __init__(self, *examples: Any) -> None:
        super().__init__(examples)
        info = {name: SimpleNamespace(np_dtype=kind) for name, kind in TYPES.items()}
        self.dataset_info = SimpleNamespace(features=SimpleNamespace(get_tensor_info=lambda: info))

    def __reduce__(self) -> Any:
        return Source, tuple(self)

    def __repr__(self) -> str:
        return "the source"


def test_numbers_and_lists_get_the_types_of_their_features() -> None:
    source = Source({"f": 0.1, "u": 3, "s": [1, 2], "t": b"a"}, {"f": 1, "u": 0, "s": [], "t": ""})
    found = pickle.loads(pickle.dumps(with_types(source)))
    assert (len(found), len(list(found)), repr(found)) == (2, 2, "the source")
    assert found[0]["f"] == np.float32(0.1)
    assert [type(found[i][name]) for i in (0, 1) for name in "fu"] == [np.float32, np.uint8] * 2
    assert [found[i]["s"].dtype for i in (0, 1)] == [np.dtype("int32")] * 2
    assert [found[i]["t"] for i in (0, 1)] == [b"a", ""]


def test_what_has_a_type_or_none_stays() -> None:
    array, rows = np.arange(3), [[1], [1, 2]]
    assert typed(array, "int64") is array
    assert typed(rows, "int64") is rows
    assert typed({"x": 5}, {}) == {"x": 5}
    assert typed({"x": {"y": 5}}, {"x": {"y": "uint8"}}) == {"x": {"y": np.uint8(5)}}


def test_a_source_that_knows_no_types_is_itself() -> None:
    plain = [1, 2]
    assert not says_types(plain)
    assert with_types(plain) is plain
