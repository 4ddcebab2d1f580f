"""What TFDS cannot read back is said by every promise, and refused where nothing could keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.order.file_formats import format_warnings, resolved_spec
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.eval.answer import evaluate
from shardctl.verbs.hosts.answer import hosts
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.simulate.answer import simulate
from shardctl.verbs.snapshot.answer import snapshot

REFUSED = "as_dataset does not read array_record files: it raises NotImplementedError"
SHORT = "train: as TFDS writes it, a file of 214 examples holds 114 rows"


def written_as(file_format: str, length: int = 214) -> Dataset:
    files = ShardFiles.from_template(
        "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        dataset="d",
        split="train",
        file_format=file_format,
        num_shards=2,
        data_dir=None,
    )
    split = Split(name="train", shard_lengths=(length, length), files=(files,))
    return Dataset(name="d", splits=(split,), file_format=file_format)


PROMISES: list[Callable[[Dataset], Any]] = [
    plan_order,
    simulate,
    snapshot,
    lambda dataset: quality(dataset, what_if=False),
    lambda dataset: hosts(dataset, "train", hosts=2),
    lambda dataset: evaluate(dataset, "train", batch=8),
]


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_says_what_the_files_may_not_keep(promise: Callable[[Dataset], Any]) -> None:
    said = promise(written_as("array_record")).warnings
    assert sum(REFUSED in line and "as_data_source" in line for line in said) == 1
    said = promise(written_as("parquet")).warnings
    assert sum(SHORT in line and "shardctl verify --files" in line for line in said) == 1
    for sound in (written_as("parquet", 100), written_as("tfrecord"), written_as("riegeli")):
        assert not any("as_dataset" in line for line in promise(sound).warnings)


@pytest.mark.parametrize(
    "plan",
    [
        lambda dataset: resume(dataset, "train", consumed=3),
        lambda dataset: resume_on_hosts(dataset, "train", hosts=2, to_hosts=1, consumed=3),
        lambda dataset: resume_unseen(dataset, "train", seen=[1]),
    ],
)
def test_resume_refuses_what_no_reader_of_tf_data_can_do(plan: Callable[[Dataset], Any]) -> None:
    with pytest.raises(DatasetError, match=f"d: {REFUSED}.*as_data_source.*as tfrecord"):
        plan(written_as("array_record"))
    assert any(SHORT in line for line in plan(written_as("parquet")).warnings)
    assert plan(written_as("tfrecord")).warnings == ()


@pytest.mark.parametrize("file_format", ["mds", "webdataset", "arrow"])
def test_formats_of_other_libraries_are_named_and_not_resumed(file_format: str) -> None:
    said = plan_order(written_as(file_format)).warnings
    assert len(said) == 1
    assert said[0].startswith(f"TFDS does not read {file_format} files, so this is the order of ")
    with pytest.raises(DatasetError, match=f"d: TFDS does not read {file_format} files.*tfrecord"):
        resume(written_as(file_format), "train", consumed=3)


def test_only_the_splits_that_are_read_are_warned_of() -> None:
    both = Dataset(
        name="d",
        file_format="parquet",
        splits=(
            Split(name="train", shard_lengths=(214,)),
            Split(name="test", shard_lengths=(40,)),
        ),
    )
    assert list(format_warnings(both, resolved_spec(both, "test").ranges)) == []
    assert len(list(format_warnings(both, resolved_spec(both, "train+test").ranges))) == 1


def test_settings_do_not_add_warnings() -> None:
    planned = plan_order(written_as("parquet"), "train")
    again = planned.with_settings(ReadSettings(cycle=2))
    assert planned.warnings == again.warnings
    assert len(again.warnings) == 1
