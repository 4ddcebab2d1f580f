"""Files on disk are compared with the metadata: what is missing, extra, miscounted or empty."""

from __future__ import annotations

import ast
import itertools
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.dataset.dataset import COUNTED_LAYOUT, Dataset, FileFinding, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata import files_on_disk
from shardctl.metadata.dataset_names import catalog_dataset
from shardctl.metadata.files_on_disk import check_files, none_here, with_disk_bytes
from shardctl.metadata.reference import read_dataset
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.stores.stores import RemotePath
from tests.cases import check_cases, few_or_many
from tests.golden import assert_answers
from tests.strategies import Recipe, recipes
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset

Problem = tuple[str, str | None, str]
LENGTHS = {"train": [3, 0, 5], "test": [2]}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return build_dataset(tmp_path, splits=LENGTHS)


def problems(folder: Path) -> list[Problem]:
    found = check_files(read_tfds_folder(folder))
    assert all((problem.reason or "").isprintable() for problem in found.problems)
    return [(problem.kind, problem.split, problem.filename) for problem in found.problems]


@few_or_many(20, 60)
def test_a_dataset_tfds_wrote_has_no_problems_and_its_sizes(tmp_path: Path, num_cases: int) -> None:
    roots = itertools.count()

    def check(recipe: Recipe) -> None:
        dataset = read_tfds_folder(build_dataset(tmp_path / str(next(roots)), **recipe.arguments()))
        found = check_files(dataset)
        assert found.problems == ()
        assert found.present == any(split.num_shards for split in dataset.splits)
        for split in with_disk_bytes(dataset, check_files(dataset)).splits:
            paths = [Path(*map(str, split.location(i))) for i in range(split.num_shards)]
            sizes = tuple(os.path.getsize(path) for path in paths)
            assert (split.shard_bytes or ()) == sizes

    check_cases(recipes(WRITABLE_FORMATS), check, num_cases)


def test_files_that_are_not_as_the_metadata_say_are_named(tmp_path: Path) -> None:
    def answer(question: str) -> str:
        folder = build_dataset(Path(tempfile.mkdtemp(dir=tmp_path)), splits=LENGTHS)
        (folder / "toy-train.tfrecord-00009-of-00003").mkdir()
        removed, added = ast.literal_eval(question)
        for name in removed:
            (folder / f"toy-{name}").unlink()
        for name in added:
            (folder / f"toy-{name}").touch()
        found = problems(folder)
        return "\n".join(" ".join(map(str, one)) for one in found) or "no problems"

    assert_answers(Path(__file__).parent / "golden" / "files_on_disk.txt", answer)


def test_a_file_of_another_count_says_both_counts(toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00004").touch()
    (toy / "toy-train.tfrecord-00002-of-00003").unlink()
    assert [problem.reason for problem in check_files(read_tfds_folder(toy)).problems] == [
        "'toy-train.tfrecord-00002-of-00003' is missing: 5 examples",
        "'toy-train.tfrecord-00000-of-00004' is one of 4; the metadata has 3 shards of split "
        "'train'",
    ]
    there = read_tfds_folder(toy)
    sizes = with_disk_bytes(there, check_files(there)).split("train").shard_bytes
    assert [size is None for size in sizes or ()] == [False, False, True]


def test_links_count_as_the_files_they_lead_to(toy: Path) -> None:
    first = toy / "toy-train.tfrecord-00000-of-00003"
    first.rename(toy / "elsewhere")
    first.symlink_to(toy / "elsewhere")
    assert problems(toy) == []
    (toy / "elsewhere").unlink()
    assert problems(toy) == [("missing", "train", first.name)]


def test_shards_in_subfolders_are_found(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, template="{SPLIT}/{SHARD_X_OF_Y}.{FILEFORMAT}")
    assert problems(folder) == []
    (folder / "train" / "00000-of-00004.tfrecord").touch()
    (folder / "train" / "00000-of-00003.tfrecord").unlink()
    assert problems(folder) == [
        ("missing", "train", "00000-of-00003.tfrecord"),
        ("wrong-count", "train", "00000-of-00004.tfrecord"),
    ]


def test_files_of_another_size_than_the_metadata_says(toy: Path) -> None:
    dataset = read_tfds_folder(toy)
    sizes = sum(os.path.getsize(path) for path in toy.glob("toy-train*"))
    for stated, wrong in ((None, 0), (0, 0), (sizes, 0), (sizes - 1, 1)):
        splits = (replace(dataset.splits[0], num_bytes=stated), *dataset.splits[1:])
        found = check_files(replace(dataset, splits=splits)).problems
        assert [problem.kind for problem in found] == ["size"] * wrong
    first = toy / "toy-train.tfrecord-00000-of-00003"
    first.write_bytes(first.read_bytes() + b"x")
    (problem,) = check_files(dataset).problems
    assert (problem.kind, problem.split, problem.filename) == ("size", "train", first.name)
    assert problem.reason == (
        f"the files of split 'train' have {sizes + 1:,} bytes, and the metadata says {sizes:,}: "
        f"{sizes - 16 * 8:,} of examples and 16 for each"
    )


def test_files_that_were_counted_are_those_that_were_chosen(toy: Path) -> None:
    pattern = read_dataset([toy / "toy-train.tfrecord-*"], cwd=toy)
    layout = replace(pattern, origin=COUNTED_LAYOUT)
    (toy / "toy-test.tfrecord-00000-of-00001").touch()
    assert check_files(pattern).problems == ()
    grown = toy / pattern.splits[0].filename(0)
    grown.write_bytes(grown.read_bytes() * 2)
    (problem,) = check_files(layout).problems
    size = sum(size or 0 for size in pattern.splits[0].shard_bytes or ())
    assert problem.reason == (
        f"the files of split 'train' have {size + grown.stat().st_size // 2:,} bytes, and had "
        f"{size:,} when they were counted"
    )
    grown.unlink()
    (problem,) = check_files(layout).problems
    assert problem.kind == "missing"


@pytest.mark.parametrize("remote", [True, False])
def test_a_remote_folder_that_cannot_be_listed_is_said(
    remote: bool, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: object) -> object:
        raise DatasetError("no answer")

    monkeypatch.setattr(files_on_disk, "files_in", refused)
    if remote:
        monkeypatch.setattr(files_on_disk, "path_of", lambda text: RemotePath(f"gs://b{text}"))
    found = check_files(read_tfds_folder(toy))
    assert (found.present, found.unlisted) == (False, "no answer" if remote else None)
    assert set(found.shard_bytes["train"]) == {None}


def test_what_the_writer_of_tfds_says_is_the_size_of_all_examples(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import example_serializer, file_adapters, naming, writer
    from tensorflow_datasets.core.utils import shard_utils

    features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
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


# Metadata alone: no file is here, or others lie in their place.


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return build_dataset(tmp_path, splits=LENGTHS, with_files=False)


def test_a_dataset_without_files_here_has_no_problems_until_look_alikes_are(bare: Path) -> None:
    mnist = catalog_dataset("mnist")
    (bare / "other-train.tfrecord-00000-of-00001").touch()
    for dataset in (mnist, read_tfds_folder(bare)):
        assert dataset is not None
        found = check_files(dataset)
        assert (found.present, found.problems) == (False, ())
        assert with_disk_bytes(dataset, check_files(dataset)) is dataset
    (bare / "toy-train.tfrecord-00000-of-00004").touch()
    found = check_files(read_tfds_folder(bare))
    assert not found.present
    assert [(problem.kind, problem.split) for problem in found.problems] == [
        ("missing", "train"),
        ("missing", "test"),
        ("extra", None),
        ("wrong-count", "train"),
    ]


def test_shards_none_of_which_is_here_are_one_finding(bare: Path) -> None:
    dataset = read_tfds_folder(bare)
    train = dataset.split("train")
    reason = "no file of split 'train' is here: 2 files are missing, of which this is the first"
    expected = FileFinding(
        filename="toy-train.tfrecord-00000-of-00003",
        expected=8,
        found=None,
        reason=reason,
        kind="missing",
        split="train",
        num_files=2,
    )
    assert none_here(train, [0, 2]) == expected
    assert none_here(dataset.split("test"), [0]).reason == "missing"
