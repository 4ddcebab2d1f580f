"""What is written beside record files is read back by TFDS itself, whatever their names."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.tfds import metadata_files as module
from shardctl.tfds.metadata_files import find_features, first_record, place_files, write_metadata
from tests.cases import FUZZ, check_cases
from tests.record_files import framed, header
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset

_NAMES = (
    "toy-{split}.{format}-{i:05d}-of-{n:05d}",
    "{split}/part-{i:05d}",
    "{split}{{x}}-{i:05d}.{format}",
    "deep/er/{i:05d}/{split}",
)


def files_of_toy(
    root: Path, names: str, splits: Mapping[str, Sequence[int]], file_format: str = "tfrecord"
) -> Dataset:
    """Write a dataset with TFDS, take its metadata away, and give its files other names."""
    built = build_dataset(root / "built", splits=splits, file_format=file_format)
    target = root / "data"
    made = []
    for split in read_tfds_folder(built).splits:
        new = [
            names.format(i=i, n=split.num_shards, split=split.name, format=file_format)
            for i in range(split.num_shards)
        ]
        if split.num_shards == 1:
            new = [f"{split.name}.{file_format}"]
        for old, name in zip(split.filenames, new, strict=True):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.rename(built / old, target / name)
        files = ShardFiles(data_dir=str(target), names=tuple(new), num_shards=len(new))
        made.append(Split(name=split.name, shard_lengths=split.shard_lengths, files=(files,)))
    os.rename(built / "features.json", root / "features.json")
    return Dataset(name="toy", splits=tuple(made), data_dir=str(target), file_format=file_format)


def read_by_tfds(folder: Path, split: str, file_format: str) -> list[int]:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    if file_format == "array_record":
        return [int(example["id"]) for example in builder.as_data_source(split=split)]
    return [int(example["id"]) for example in tfds.as_numpy(builder.as_dataset(split=split))]


_LENGTHS = st.lists(st.sampled_from((0, 0, 1, 2, 5)), min_size=1, max_size=11).filter(any)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, str, dict[str, list[int]], bool]:
    names = draw(st.sets(st.sampled_from(("train", "test", "été-2")), min_size=1))
    return (
        draw(st.sampled_from(("tfrecord", "array_record", "parquet"))),
        draw(st.sampled_from(_NAMES)),
        {name: draw(_LENGTHS) for name in sorted(names)},
        draw(st.booleans()),
    )


def _check_read_back(layout: tuple[str, str, dict[str, list[int]], bool], tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    file_format, names, splits, above = layout
    with tempfile.TemporaryDirectory(dir=tmp_path) as made:
        root = Path(made)
        dataset = files_of_toy(root, names, splits, file_format)
        folder = root if above else root / "data"
        write_metadata(dataset, str(folder), str(root / "features.json"))
        info = tfds.builder_from_directory(folder).info
        back = read_tfds_folder(folder)
        for name, lengths in splits.items():
            assert info.splits[name].shard_lengths == lengths
            assert read_by_tfds(folder, name, file_format) == list(range(sum(lengths)))
            assert list(back.split(name).shard_lengths) == lengths
            assert _paths(back.split(name)) == _paths(dataset.split(name))


def _paths(split: Split) -> list[str]:
    places = map(split.location, range(split.num_shards))
    return [os.path.join(folder or "", name) for folder, name in places]


def test_tfds_reads_back_files_of_any_template(tmp_path: Path) -> None:
    check_cases(layouts(), lambda layout: _check_read_back(layout, tmp_path), 3)


@pytest.mark.fuzz
def test_fuzz_tfds_reads_back_files_of_any_template(tmp_path: Path) -> None:
    check_cases(layouts(), lambda layout: _check_read_back(layout, tmp_path), FUZZ // 20)


@pytest.fixture
def toy(tmp_path: Path) -> Dataset:
    return files_of_toy(tmp_path, "{split}-{i:05d}", {"train": [2, 1]})


def test_what_is_there_is_replaced_when_told(toy: Dataset, tmp_path: Path) -> None:
    features = str(tmp_path / "features.json")
    folder = tmp_path / "data"
    (folder / "dataset_info.json").write_text("{}")
    with pytest.raises(UsageError, match=r"has dataset_info.json already.*--force"):
        write_metadata(toy, str(folder), features)
    assert sorted(os.listdir(folder)) == ["dataset_info.json", "train-00000", "train-00001"]
    found = write_metadata(toy, str(folder), features, force=True)
    assert found.written == ("features.json", "dataset_info.json")
    assert read_by_tfds(folder, "train", "tfrecord") == [0, 1, 2]
    # Once more says the same, and changes nothing.
    assert write_metadata(toy, str(folder), features).written == found.written


def test_features_that_lie_there_stay_as_they_are(toy: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    text = (tmp_path / "features.json").read_text() + "\n\n"
    (folder / "features.json").write_text(text)
    for features in (folder, folder / "features.json"):
        write_metadata(toy, str(folder), str(features), force=True)
        assert (folder / "features.json").read_text() == text
    assert read_by_tfds(folder, "train", "tfrecord") == [0, 1, 2]


def test_names_that_follow_no_template_write_nothing(tmp_path: Path) -> None:
    dataset = files_of_toy(tmp_path, "part-{split}-{i}", {"train": [2, 1]})
    before = sorted(os.listdir(tmp_path / "data"))
    with pytest.raises(DatasetError, match="'part-train-0' would be 'toy-train"):
        write_metadata(dataset, str(tmp_path / "data"), str(tmp_path / "features.json"))
    assert sorted(os.listdir(tmp_path / "data")) == before


def test_features_that_do_not_fit_are_told(tfds: Any, toy: Dataset, tmp_path: Path) -> None:
    import numpy as np

    folder = str(tmp_path / "data")
    for wrong, said in (
        ({"id": tfds.features.Tensor(shape=(2,), dtype=np.int64)}, "Key: id"),
        ({"id": np.float32}, "Data types don't match"),
        ({"name": tfds.features.Text()}, "required but could not be found"),
    ):
        with pytest.raises(DatasetError, match=said) as caught:
            write_metadata(toy, folder, wrong)
        assert "do not fit the records of split 'train'" in str(caught.value)
        assert "train-00000" in str(caught.value)
    assert sorted(os.listdir(folder)) == ["train-00000", "train-00001"]


def test_an_empty_split_is_warned_of(tmp_path: Path) -> None:
    dataset = files_of_toy(tmp_path, "{split}-{i:05d}", {"train": [2], "test": [0, 0]})
    found = write_metadata(dataset, str(tmp_path / "data"), str(tmp_path / "features.json"))
    assert ["'test' has no examples" in line for line in found.warnings] == [True]
    assert read_by_tfds(tmp_path / "data", "train", "tfrecord") == [0, 1]


def moved_to(toy: Dataset, folder: str) -> Dataset:
    (split,) = toy.splits
    files = tuple(replace(part, data_dir=folder) for part in split.files)
    return replace(toy, splits=(replace(split, files=files),), data_dir=None)


def test_the_version(toy: Dataset, tmp_path: Path) -> None:
    features, folder = str(tmp_path / "features.json"), str(tmp_path / "2.3.4")
    os.rename(tmp_path / "data", folder)
    moved = moved_to(toy, folder)
    assert write_metadata(moved, folder, features).version == "2.3.4"
    assert write_metadata(moved, str(tmp_path), features).version == "1.0.0"
    versioned = replace(moved, version="5.0.0")
    assert write_metadata(versioned, folder, features, force=True).version == "5.0.0"
    with pytest.raises(UsageError, match="TFDS takes three numbers"):
        write_metadata(replace(moved, version="5"), folder, features)
    # A place that TensorFlow does not reach.
    with pytest.raises(UsageError, match=r"no file system for s3:// here; it has .*gs://"):
        write_metadata(moved_to(toy, "s3://bucket/data"), "s3://bucket/data", features)


# Features are found wherever they are named, and what is none is refused in a line.


_SCRIPT = Path(__file__).with_name("script.txt").read_text("utf-8")


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "toys.py"
    path.write_text(_SCRIPT)
    return str(path)


@pytest.mark.tensorflow
def test_features_of_a_file_come_with_their_labels(script: str, tmp_path: Path) -> None:
    find_features(f"{script}:make").features.save_config(str(tmp_path))
    for named in (str(tmp_path), str(tmp_path / "features.json"), tmp_path):
        assert find_features(named).features["label"].names == ["a", "b"]
    other = tmp_path / "mine.json"
    (tmp_path / "features.json").rename(other)
    assert find_features(str(other)).features["label"].names == ["a", "b"]


@pytest.mark.tensorflow
def test_features_of_a_script_and_of_a_dataset_of_tfds(script: str) -> None:
    for named, features in (("make", ["label", "x"]), ("FEATURES", ["x"])):
        assert sorted(find_features(f"{script}:{named}").features) == features
    found = find_features(f"{script}:Toys")
    assert sorted(found.features) == ["label", "x"]
    assert found.said["supervised_keys"] == ("x", "label")
    found = find_features("mnist")
    assert sorted(found.features) == ["image", "label"]
    assert "citation" in found.said


@pytest.mark.tensorflow
def test_what_names_no_features_is_refused(script: str, tmp_path: Path) -> None:
    for named, said in (
        (f"{script}:wrong", "no features of TFDS"),
        (f"{script}:broken", "failed with ValueError: not today"),
        (f"{script}:absent", "has no function 'absent'"),
        ("there/is/none.json", "no file 'there/is/none.json'"),
        ("no_such_dataset_of_tfds", "names no features"),
    ):
        with pytest.raises(UsageError, match=said):
            find_features(named)
    bad = tmp_path / "features.json"
    for text in ("{", "[]", json.dumps({"a": 1}), json.dumps({"type": "no.Such", "content": {}})):
        bad.write_text(text)
        with pytest.raises(DatasetError, match=r"features\.json"):
            find_features(str(bad))


# The first record of a file is that which TFDS reads first.


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
def test_the_first_record_is_that_of_tfds(tfds: Any, file_format: str, tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3]}, file_format=file_format)
    record = first_record(str(next(folder.glob("toy-train*"))), file_format)
    assert record is not None
    features = tfds.builder_from_directory(folder).info.features
    assert int(features.deserialize_example_np(record)["id"]) == 0


@pytest.mark.tensorflow
def test_what_has_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"", b"abc", header(2**40) + b"abc", framed(b"abc")[:-5]):
        path.write_bytes(data)
        for file_format in ("tfrecord", "parquet", "array_record"):
            with pytest.raises(DatasetError, match=r"cannot read a record of '.*file'"):
                first_record(str(path), file_format)
    with pytest.raises(DatasetError, match="none"):
        first_record(str(tmp_path / "none"), "tfrecord")
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": [b"1"], "label": [2]}), path)
    with pytest.raises(DatasetError, match="cannot read a record"):
        first_record(str(path), "parquet")


# Several files get to a folder all or none.


FILES = {"a.json": "new a", "b.txt": "new b", "info.json": "new info"}


def placed(target: Path, last: str = "info.json", *, force: bool) -> list[str]:
    with tempfile.TemporaryDirectory() as made:
        for name, text in FILES.items():
            (Path(made) / name).write_text(text)
        return place_files(Path(made), str(target), last=last, force=force)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.tensorflow
@pytest.mark.parametrize("by_epath", [False, True])  # which reaches local folders as others
def test_files_are_placed_all_or_none(
    by_epath: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_epath:
        monkeypatch.setattr(module, "is_remote", lambda _: True)
    assert placed(tmp_path, last="a.json", force=False)[-1] == "a.json"
    assert contents(tmp_path) == FILES
    before = {"b.txt": "other", "a.json": "new a"}
    (tmp_path / "b.txt").write_text("other")
    (tmp_path / "info.json").unlink()
    with pytest.raises(UsageError, match=r"has b.txt already, of other contents; --force"):
        placed(tmp_path, force=False)
    assert contents(tmp_path) == before
    put = module._put
    for fails_at in ("b.txt", "info.json"):
        fails = iter([True])

        def failing(path: Any, data: bytes | None, at: str = fails_at, fails: Any = fails) -> None:
            if path.name == at and next(fails, False):
                raise UsageError("the disk is full")
            put(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(module, "_put", failing)
            with pytest.raises(UsageError, match="disk is full"):
                placed(tmp_path, force=True)
        assert contents(tmp_path) == before
    assert placed(tmp_path, force=True)[-1] == "info.json"
    assert contents(tmp_path) == FILES
    with pytest.raises(UsageError, match="cannot write"):
        placed(tmp_path / "a.json", force=False)
    if not by_epath:
        with pytest.raises(UsageError, match="there is no folder"):
            placed(tmp_path / "none", force=False)
