"""Files on disk are compared with the metadata: what is missing, extra, miscounted or empty."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import COUNTED_LAYOUT, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata import files_on_disk
from shardctl.metadata.files_on_disk import check_files, with_disk_bytes
from shardctl.metadata.names import catalog_dataset
from shardctl.metadata.reference import read_dataset
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.stores.paths import RemotePath
from tests.cases import check_cases, few_or_many
from tests.strategies import Recipe, recipes
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return build_dataset(tmp_path, splits={"train": [3, 0, 5], "test": [2]})


@pytest.mark.parametrize("remote", [True, False])
def test_a_folder_that_cannot_be_listed_is_said_of_a_remote_one(
    remote: bool, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether its files are there; a local one has none that could be read."""

    def refused(folder: object) -> object:
        raise DatasetError("no answer")

    monkeypatch.setattr(files_on_disk, "files_in", refused)
    if remote:
        monkeypatch.setattr(files_on_disk, "path_of", lambda text: RemotePath(f"gs://b{text}"))
    found = check_files(read_tfds_folder(toy))
    assert found.unlisted == ("no answer" if remote else None)


def problems(folder: Path) -> list[tuple[str, str | None, str]]:
    found = check_files(read_tfds_folder(folder))
    assert all(problem.text.isprintable() for problem in found.problems)
    return [(problem.kind, problem.split, problem.filename) for problem in found.problems]


@few_or_many(20, 60)
def test_a_dataset_tfds_wrote_has_no_problems_and_its_sizes(tmp_path: Path, num_cases: int) -> None:
    roots = itertools.count()

    def check(recipe: Recipe) -> None:
        dataset = read_tfds_folder(build_dataset(tmp_path / str(next(roots)), **recipe.arguments()))
        found = check_files(dataset)
        assert found.problems == ()
        assert found.present == any(split.num_shards for split in dataset.splits)
        for split in with_disk_bytes(dataset).splits:
            paths = [Path(*map(str, split.location(i))) for i in range(split.num_shards)]
            sizes = tuple(os.path.getsize(path) for path in paths)
            assert (split.shard_bytes or ()) == sizes

    check_cases(recipes(WRITABLE_FORMATS), check, num_cases)


def test_a_missing_shard_is_named(toy: Path) -> None:
    (toy / "toy-train.tfrecord-00002-of-00003").unlink()
    assert problems(toy) == [("missing", "train", "toy-train.tfrecord-00002-of-00003")]
    sizes = with_disk_bytes(read_tfds_folder(toy)).split("train").shard_bytes
    assert sizes is not None
    assert [size is None for size in sizes] == [False, False, True]


def test_a_missing_shard_without_examples_is_not_a_problem(toy: Path) -> None:
    (toy / "toy-train.tfrecord-00001-of-00003").unlink()
    assert problems(toy) == []


def test_a_split_without_any_file_is_one_problem(toy: Path) -> None:
    for path in toy.glob("toy-train*"):
        path.unlink()
    assert problems(toy) == [("missing", "train", "toy-train.tfrecord-00000-of-00003")]


def test_an_extra_shard_is_named(toy: Path) -> None:
    (toy / "toy-train.tfrecord-00003-of-00003").touch()
    (toy / "toy-train.tfrecord-000001-of-00003").touch()
    assert problems(toy) == [
        ("extra", "train", "toy-train.tfrecord-000001-of-00003"),
        ("extra", "train", "toy-train.tfrecord-00003-of-00003"),
    ]


def test_files_that_were_counted_are_those_that_were_chosen(toy: Path) -> None:
    pattern = read_dataset([toy / "toy-train.tfrecord-*"], env={}, cwd=toy)
    layout = replace(pattern, origin=COUNTED_LAYOUT)
    (toy / "toy-test.tfrecord-00000-of-00001").touch()
    assert check_files(pattern).problems == ()
    grown = toy / pattern.splits[0].filename(0)
    grown.write_bytes(grown.read_bytes() * 2)
    (problem,) = check_files(layout).problems
    size = sum(pattern.splits[0].shard_bytes or ())  # type: ignore[arg-type]
    assert problem.text == (
        f"the files of split 'train' have {size + grown.stat().st_size // 2:,} bytes, and had "
        f"{size:,} when they were counted"
    )
    grown.unlink()
    (problem,) = check_files(layout).problems
    assert problem.kind == "missing"


def test_a_file_of_no_split_is_extra(toy: Path) -> None:
    (toy / "toy-valid.tfrecord-00000-of-00001").touch()
    assert problems(toy) == [("extra", None, "toy-valid.tfrecord-00000-of-00001")]


def test_another_count_of_shards_is_named(toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00004").touch()
    found = check_files(read_tfds_folder(toy))
    assert [(problem.kind, problem.split) for problem in found.problems] == [
        ("wrong-count", "train")
    ]
    assert found.problems[0].text == (
        "'toy-train.tfrecord-00000-of-00004' is one of 4; "
        "the metadata has 3 shards of split 'train'"
    )


def test_a_size_of_0_is_a_problem_where_there_should_be_examples(toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00003").write_bytes(b"")
    (toy / "toy-train.tfrecord-00001-of-00003").write_bytes(b"")
    assert problems(toy) == [("empty", "train", "toy-train.tfrecord-00000-of-00003")]


def test_other_files_do_not_matter(toy: Path) -> None:
    for name in ("notes.txt", "toy-train.array_record-00000-of-00009", "toy-train.tfrecord-x"):
        (toy / name).touch()
    (toy / "toy-train.tfrecord-00009-of-00003").mkdir()
    assert problems(toy) == []


def test_links_count_as_the_files_they_lead_to(toy: Path) -> None:
    first = toy / "toy-train.tfrecord-00000-of-00003"
    first.rename(toy / "elsewhere")
    first.symlink_to(toy / "elsewhere")
    assert problems(toy) == []
    (toy / "elsewhere").unlink()
    assert problems(toy) == [("missing", "train", first.name)]


def test_shards_in_subfolders_are_found(tmp_path: Path) -> None:
    template = "{SPLIT}/{SHARD_X_OF_Y}.{FILEFORMAT}"
    folder = build_dataset(tmp_path, template=template)
    assert problems(folder) == []
    (folder / "train" / "00000-of-00004.tfrecord").touch()
    (folder / "train" / "00000-of-00003.tfrecord").unlink()
    assert problems(folder) == [
        ("missing", "train", "00000-of-00003.tfrecord"),
        ("wrong-count", "train", "00000-of-00004.tfrecord"),
    ]


def nothing_here() -> list[Dataset]:
    mnist = catalog_dataset("mnist")
    assert mnist is not None
    return [mnist]


def test_a_dataset_without_files_here_has_no_problems(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    for dataset in (*nothing_here(), read_tfds_folder(folder)):
        found = check_files(dataset)
        assert (found.present, found.problems) == (False, ())
        assert with_disk_bytes(dataset) is dataset


def test_an_index_that_a_name_says_many_times_is_looked_for_once(tmp_path: Path) -> None:
    """With a choice for each, 12 of them take longer than the age of the universe."""
    template = "{SHARD_INDEX}" * 12
    split = {"name": "train", "shardLengths": ["1", "1"], "filepathTemplate": template}
    info = {"name": "toy", "version": "1.0.0", "splits": [split]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    for index in ("00000", "00001", "00002"):
        (tmp_path / (index * 12)).write_text("x")
    (tmp_path / ("9" * 200 + "x")).write_text("x")
    assert problems(tmp_path) == [("extra", "train", "00002" * 12)]


def test_a_count_that_a_name_says_twice_is_one_count(tmp_path: Path) -> None:
    template = "{SHARD_X_OF_Y}.{SHARD_X_OF_Y}"
    split = {"name": "train", "shardLengths": ["1"], "filepathTemplate": template}
    info = {"name": "toy", "version": "1.0.0", "splits": [split]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    for name in ("00000-of-00001.00000-of-00001", "00003-of-00007.00003-of-00007"):
        (tmp_path / name).write_text("x")
    (tmp_path / "00003-of-00007.00003-of-00008").write_text("x")  # no template makes it
    assert problems(tmp_path) == [("wrong-count", "train", "00003-of-00007.00003-of-00007")]


def test_files_of_another_size_than_the_metadata_says(toy: Path) -> None:
    first = toy / "toy-train.tfrecord-00000-of-00003"
    first.write_bytes(first.read_bytes() + b"x")
    found = check_files(read_tfds_folder(toy))
    (problem,) = found.problems
    assert (problem.kind, problem.split, problem.filename) == ("size", "train", first.name)
    sizes = sum(os.path.getsize(path) for path in toy.glob("toy-train*"))
    assert problem.text == (
        f"the files of split 'train' have {sizes:,} bytes, and the metadata says {sizes - 1:,}: "
        f"{sizes - 1 - 16 * 8:,} of examples and 16 for each"
    )


def test_a_size_that_is_not_known_or_that_of_the_files_is_no_problem(toy: Path) -> None:
    dataset = read_tfds_folder(toy)
    sizes = sum(os.path.getsize(path) for path in toy.glob("toy-train*"))
    for stated in (None, 0, sizes):
        splits = (replace(dataset.splits[0], num_bytes=stated), *dataset.splits[1:])
        assert check_files(replace(dataset, splits=splits)).problems == ()
    splits = (replace(dataset.splits[0], num_bytes=sizes - 1), *dataset.splits[1:])
    assert [p.kind for p in check_files(replace(dataset, splits=splits)).problems] == ["size"]


def test_what_the_writer_of_tfds_says_is_the_size_of_all_examples(tmp_path: Path) -> None:
    from tensorflow_datasets.core import example_serializer, file_adapters, naming, writer
    from tensorflow_datasets.core.utils import shard_utils

    features = tfds_features()
    template = naming.ShardedFileTemplate(
        data_dir=tmp_path, dataset_name="toy", split="train", filetype_suffix="tfrecord"
    )
    writing = writer.Writer(
        serializer=example_serializer.ExampleSerializer(features.get_serialized_info()),
        filename_template=template,
        hash_salt="train",
        disable_shuffling=False,
        example_writer=writer.ExampleWriter(file_adapters.FileFormat.TFRECORD),
        shard_config=shard_utils.ShardConfig(num_shards=3),
    )
    for number in range(200):
        writing.write(number, features.encode_example({"text": "x" * (number % 50)}))
    lengths, size = writing.finalize()
    files = ShardFiles(
        data_dir=str(tmp_path), pattern="toy-train.tfrecord-\0-of-00003", num_shards=3
    )
    split = Split(name="train", shard_lengths=tuple(lengths), files=(files,), num_bytes=int(size))
    found = check_files(Dataset(name="toy", splits=(split,)))
    assert (found.present, found.problems) == (True, ())
    assert sum(found_size or 0 for found_size in found.shard_bytes["train"]) == size + 16 * 200


def tfds_features() -> Any:
    import tensorflow_datasets as tfds

    return tfds.features.FeaturesDict({"text": tfds.features.Text()})
