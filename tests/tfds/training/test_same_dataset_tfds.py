"""Plans and positions of another dataset of one layout, with the real TFDS: refused by name."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.reference import merge_datasets
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.saved.plan_file import plan_document, read_plan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.proof import prove
from tests.tfds_datasets import build_dataset, read_ids

pytestmark = pytest.mark.tensorflow

SETTINGS = ReadSettings(cycle=1, shuffle_files=False)


def folder_of(path: Path, first_id: int = 0, **options: Any) -> Path:
    """Write 60 examples, with the ids from `first_id` on, in three shards."""
    import numpy as np
    import tensorflow_datasets as tfds

    return build_dataset(
        path,
        splits={"train": [20, 15, 25]},
        features=tfds.features.FeaturesDict({"id": np.int64}),
        example=lambda i: {"id": first_id + i},
        **options,
    )


def builder_of(*folders: Path) -> Any:
    import tensorflow_datasets as tfds

    if len(folders) == 1:
        return tfds.builder_from_directory(folders[0])
    return tfds.builder_from_directories([str(folder) for folder in folders])


def dataset_of(*folders: Path) -> Dataset:
    return merge_datasets([read_tfds_folder(folder) for folder in folders])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of one shape, with other examples, of as many bytes."""
    root = tmp_path_factory.mktemp("two")
    return folder_of(root / "a", 1000), folder_of(root / "b", 2000)


def everything_that_compares(
    plan: Path, position: Path, folders: tuple[Path, ...]
) -> list[Callable[..., object]]:
    """Return the calls that take a plan or a position to a dataset."""
    builder, dataset = builder_of(*folders), dataset_of(*folders)

    def restored(**allow: bool) -> None:
        shardctl.tfds.Position(builder, "train", SETTINGS).restore(position, **allow)

    return [
        restored,
        lambda **allow: shardctl.tfds.resume(builder, plan, **allow),
        lambda **allow: shardctl.tfds.resume_epochs(builder, plan, **allow),
        lambda **allow: shardctl.tfds.read_config(plan, builder, **allow),
        lambda **allow: prove(dataset, read_plan(plan), **allow),
        lambda **allow: shardctl.tfds.verify_plan(dataset, read_plan(plan), **allow),
    ]


def stopped(path: Path, folders: tuple[Path, ...], consumed: int) -> tuple[Path, Path]:
    """Write a plan and a position, as a job leaves them that stops after so many examples."""
    plan, position = path / "plan.json", path / "position.json"
    made = resume(dataset_of(*folders), "train", SETTINGS, consumed=consumed)
    plan.write_text("".join(to_json(plan_document(made))))
    shardctl.tfds.Position(builder_of(*folders), "train", SETTINGS, consumed=consumed).save(
        position
    )
    return plan, position


@pytest.mark.slow
def test_folders_in_the_other_order_would_repeat_every_example(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    a, b = two
    assert dataset_of(a, b).fingerprint == dataset_of(b, a).fingerprint
    plan, position = stopped(tmp_path, (a, b), 60)
    seen = read_ids(builder_of(a, b).as_dataset(split="train[:60]"))
    rest = read_ids(shardctl.tfds.resume(builder_of(a, b), plan))
    assert (seen[0], rest[0], len(set(seen) | set(rest))) == (1000, 2000, 120)
    # What the other builder has there is what was seen.
    swapped = builder_of(b, a)
    assert read_ids(swapped.as_dataset(split="train[60:]")) == seen
    words = (
        "its folders were a/toy/1.0.0, b/toy/1.0.0, now b/toy/1.0.0, a/toy/1.0.0; they are read in "
        "another order"
    )
    for call in everything_that_compares(plan, position, (b, a)):
        for allow in ({}, {"allow_version": True}):
            with pytest.raises(DatasetError, match=words):
                call(**allow)
    for call in everything_that_compares(plan, position, (a, b)):
        call()
    text = "".join(to_yaml(plan_document(resume(dataset_of(b, a), "train", SETTINGS, consumed=60))))
    (tmp_path / "swapped.yaml").write_text(text)
    with pytest.raises(DatasetError, match="in another order"):
        shardctl.tfds.resume(builder_of(a, b), tmp_path / "swapped.yaml")


@pytest.mark.parametrize(
    ("options", "words", "allowed"),
    [
        ({"version": "1.0.1"}, "its version was 1.0.0, now 1.0.1; --allow-version accepts", True),
        pytest.param(
            {"template": "{SPLIT}/{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"},
            "its file name template of train was toy-train.tfrecord-{SHARD_INDEX}-of-"
            "{NUM_SHARDS}, now train/toy-train.tfrecord",
            False,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_another_dataset_of_the_same_lengths_is_refused_by_name(
    tmp_path: Path, options: dict[str, Any], words: str, allowed: bool
) -> None:
    then, now = folder_of(tmp_path / "then"), folder_of(tmp_path / "now", **options)
    plan, position = stopped(tmp_path, (then,), 20)
    for call in everything_that_compares(plan, position, (now,)):
        with pytest.raises(DatasetError, match=words):
            call()
        with contextlib.nullcontext() if allowed else pytest.raises(DatasetError, match=words):
            call(allow_version=True)
    for call in everything_that_compares(plan, position, (then,)):
        call()
    # Without a builder to compare with the one that reads is compared.
    config = shardctl.tfds.read_config(plan)
    assert read_ids(builder_of(then).as_dataset(split="train", read_config=config))[0] == 20
    with pytest.raises(DatasetError, match=f"{words}|is not one of the 3 files"):
        builder_of(now).as_dataset(split="train", read_config=config)


def test_older_files_are_read_where_the_layout_shows_the_order(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    """They have neither folders nor templates; the digest is that of the file as it was."""
    from shardctl.saved.plan_file import digest_of
    from shardctl.saved.position_file import _digest_of

    longer = build_dataset(tmp_path / "c", splits={"train": [20, 15, 26]})

    def aged(path: Path, folders: tuple[Path, ...] | None = None) -> None:
        document = json.loads(path.read_text())
        document["dataset"].pop("folders", None)
        for split in document["splits"]:
            del split["template"]
        if folders is None:
            del document["digest"]
            digest = _digest_of(document)
        else:
            made = resume(dataset_of(*folders), "train", SETTINGS, consumed=60)
            digest = digest_of({**document, "file_instructions": made.instructions})
        path.write_text(json.dumps({**document, "digest": digest}))

    folders = two[0], longer
    plan, position = stopped(tmp_path, folders, 60)
    aged(position)
    aged(plan, folders)
    for call in everything_that_compares(plan, position, folders):
        call()
    # Which was first is known from the lengths of the shards.
    for call in everything_that_compares(plan, position, folders[::-1]):
        with pytest.raises(DatasetError, match="the lengths or names of its files changed"):
            call()
    moved = tuple(tmp_path / "moved" / name for name in "xy")
    plan, position = stopped(tmp_path, two, 60)
    aged(plan, two)
    for folder, place in zip(two, moved, strict=True):
        shutil.copytree(folder, place)
    with pytest.raises(DatasetError, match="were read is not known, and their layouts do not"):
        shardctl.tfds.resume(builder_of(*moved), plan)
