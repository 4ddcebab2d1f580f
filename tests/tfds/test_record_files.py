"""Record files without metadata are read by TFDS's own reader, as the same files with metadata."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import COUNTED_FILES, Dataset
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds.builder_layout import RecordFiles, builder_of, dataset_of
from shardctl.tfds.training.pipeline import pipeline
from shardctl.tfds.training.resume import resume
from shardctl.tfds.verifying.verify import verify
from shardctl.verbs.resume.answer import resume as plan_resume
from tests.cases import check_cases
from tests.tfds_datasets import build_dataset


def ids_of(elements: Any) -> list[str]:
    """Return the tfds_ids of a dataset of examples."""
    return [example["tfds_id"].decode() for example in elements.as_numpy_iterator()]


def counted(dataset: Dataset) -> Dataset:
    """Return a dataset as if its files had been counted."""
    return replace(dataset, origin=COUNTED_FILES)


def renamed(dataset: Dataset, folder: Path, split: str, names: list[str]) -> Dataset:
    """Return a dataset of one split whose files are copied under other names."""
    folder.mkdir(parents=True, exist_ok=True)
    for shard, name in enumerate(names):
        data_dir, path = dataset.split(split).location(shard)
        shutil.copy(Path(str(data_dir), path), folder / name)
    files = ShardFiles(data_dir=str(folder), num_shards=len(names), names=tuple(names))
    only = replace(dataset.split(split), files=(files,), num_bytes=None)
    return replace(dataset, splits=(only,), data_dir=str(folder), origin=COUNTED_FILES)


def test_the_reader_of_files_is_that_of_tfds(tmp_path: Path) -> None:
    """Spec, hosts, shuffles, cycle and block: the same tfds_ids in the same order, by random."""

    def check(rng: random.Random) -> None:
        root = tmp_path / str(rng.getrandbits(60))
        lengths = [rng.randrange(6) for _ in range(rng.randint(1, 9))]
        lengths[0] += 1
        folder = build_dataset(root, "toy", {"train": lengths, "test": [3, 2]})
        settings = ReadSettings(
            cycle=rng.randint(1, 5),
            block=rng.randint(1, 4),
            shuffle_seed=rng.choice([None, 3]),
            host=rng.choice([None, Host(index=1, count=2)]),
            batch=rng.choice([None, 2]),
        )
        import tensorflow_datasets as tfds

        spec = rng.choice(["train", "test+train", "train[:50%]+test[1:]"])
        dataset = read_tfds_folder(folder)
        with_metadata = tfds.builder_from_directory(folder)

        def names(builder: Any) -> list[Any]:
            elements = pipeline(builder, spec, settings, transform=_id, add_tfds_id=True)
            return [np.asarray(element).tolist() for element in elements.as_numpy_iterator()]

        found = names(RecordFiles(counted(dataset)))
        assert found
        assert found == names(with_metadata)
        shutil.rmtree(root)

    check_cases(st.randoms(use_true_random=False), check, 3)


def _id(example: Any) -> Any:
    return example["tfds_id"]


def test_files_of_any_names_are_read_in_shard_order_verified_and_resumed(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, "toy", {"train": [2, 3, 1]})
    dataset = renamed(
        read_tfds_folder(folder), tmp_path / "bare", "train", ["p-1.rec", "p-2.rec", "p-10.rec"]
    )
    builder = RecordFiles(dataset)
    examples = pipeline(builder, "train", ReadSettings(cycle=1, block=1), add_tfds_id=True)
    assert ids_of(examples) == [
        *("p-1.rec__0", "p-1.rec__1", "p-2.rec__0", "p-2.rec__1", "p-2.rec__2", "p-10.rec__0")
    ]
    assert dataset_of(builder) == dataset
    settings = ReadSettings(shuffle_seed=5, buffer=3, buffer_seed=1, epochs=2, cycle=2, block=1)
    found = verify(dataset, "train", settings)
    assert (found.equal, found.read, found.num_files) == (True, "files", 3)
    whole = ids_of(pipeline(builder, "train", settings, add_tfds_id=True))
    plan = plan_resume(dataset, "train", settings, consumed=5, mode="exact-order")
    assert ids_of(resume(builder, plan, add_tfds_id=True)) == whole[5:]


def test_metadata_beside_counted_files_is_left_alone(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, "toy", {"train": [2]})
    dataset = read_tfds_folder(folder)
    assert not isinstance(builder_of(dataset), RecordFiles)
    assert isinstance(builder_of(counted(dataset)), RecordFiles)
    (folder / "dataset_info.json").unlink()
    assert isinstance(builder_of(dataset), RecordFiles)


def test_files_that_the_reader_cannot_open_are_refused(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, "toy", {"train": [2]}, with_files=False)
    dataset = counted(read_tfds_folder(folder))
    with pytest.raises(DatasetError, match="TFDS reads TFRecord files as they are"):
        RecordFiles(replace(dataset, compression="GZIP"))
    with pytest.raises(DatasetError, match="split 'train' names no files"):
        RecordFiles(replace(dataset, splits=(replace(dataset.splits[0], files=()),)))


def test_files_are_read_with_what_tfds_takes_without_a_config(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, "toy", {"train": [3, 2], "test": [1]})
    builder = RecordFiles(counted(read_tfds_folder(folder)))
    records = [
        len(one["record"]) > 0 for one in builder.as_dataset(split="train").as_numpy_iterator()
    ]
    assert records == [True] * 5
    assert repr(builder) == repr(builder.dataset).replace("Dataset", "RecordFiles", 1)
    assert repr(builder).startswith("<RecordFiles toy")
