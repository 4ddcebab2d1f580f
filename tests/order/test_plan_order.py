"""The one way from a spec to an order: what it keeps, what it says, and how often it resolves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UnpredictableOrderError
from shardctl.order import file_formats
from shardctl.order.file_formats import resolved_spec
from shardctl.order.plan_order import order_of, plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.verbs.resume.answer import codes_of, resume_unseen_of
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.snapshot.answer import snapshot
from tests.tfds_datasets import build_dataset

TOY = Dataset(name="d", splits=(Split.even(name="train", num_examples=10, num_shards=3),))
TWO = Dataset(
    name="d",
    splits=(
        Split.even(name="train", num_examples=10, num_shards=3),
        Split.even(name="test", num_examples=5, num_shards=2),
        Split.even(name="extra", num_examples=2, num_shards=1),
    ),
)


def test_an_order_keeps_the_ranges_that_it_was_made_of() -> None:
    settings = ReadSettings(cycle=2, block=1)
    planned = plan_order(TWO, "test+train[3:]", settings)
    assert [(r.split.name, r.start, r.stop) for r in planned.ranges] == [
        ("test", 0, 5),
        ("train", 3, 10),
    ]
    assert planned.splits.names == ("train", "test")  # as the dataset has them
    by_hand = ReaderOrder(TWO, planned.ranges, settings)
    np.testing.assert_array_equal(planned.order.read(0, 12), by_hand.read(0, 12))
    assert resolved_spec(TWO, "test+train[3:]").dataset is TWO


def test_other_settings_are_those_of_an_order_planned_anew() -> None:
    first = plan_order(TWO, "test+train[:4]", ReadSettings())
    settings = ReadSettings(cycle=2, block=1, host=Host(index=1, count=2), host_by="examples")
    other, anew = first.with_settings(settings), plan_order(TWO, "test+train[:4]", settings)
    assert other.resolved is first.resolved
    assert other.warnings == anew.warnings
    assert (
        other.order.num_examples == anew.order.num_examples == 4
    )  # of 9 the second has 1, 3, 5, 7
    np.testing.assert_array_equal(other.order.read(0, 4), anew.order.read(0, 4))


def folders(**splits: tuple[int, ...]) -> Dataset:
    """Return a dataset with each split in a folder of its own."""
    return Dataset(
        name="d",
        splits=tuple(
            Split(
                name=name,
                shard_lengths=lengths,
                files=(
                    ShardFiles(
                        pattern=f"d-{name}-\\0", num_shards=len(lengths), data_dir=f"/{name}"
                    ),
                ),
            )
            for name, lengths in splits.items()
        ),
    )


@pytest.mark.parametrize(
    ("spec", "way_out"),
    [
        ("all", "test+train"),
        ("train[:2]+all", "train[:2]+test+train"),
        ("all+train[1shard]", "test+train+train[1shard]"),
    ],
)
def test_an_open_order_of_splits_is_refused_with_the_splits_spelled_out(
    spec: str, way_out: str
) -> None:
    dataset = folders(test=(3,), train=(4, 2))
    with pytest.raises(UnpredictableOrderError, match=re.escape(f"as in '{way_out}'")):
        plan_order(dataset, spec, ReadSettings())
    # What depends on no order is answered, and warned of.
    (warned, *_) = resolved_spec(dataset, spec).warnings
    assert f"they are listed here as '{way_out}', which is how to fix their order" in warned
    spelled = plan_order(dataset, way_out, ReadSettings(cycle=1))
    assert spelled.order.num_examples == resolved_spec(dataset, spec).num_examples
    assert spelled.warnings == tuple(w for w in spelled.warnings if "several folders" not in w)


@pytest.mark.parametrize(
    ("dataset", "spec"),
    [
        pytest.param(folders(train=(3, 4)), "all", id="one split"),
        pytest.param(folders(train=(3, 4), test=(0,)), "all", id="one split with examples"),
        pytest.param(folders(train=(3,), test=(4,)), "train+test", id="spelled out"),
        pytest.param(TWO, "all", id="one folder"),
    ],
)
def test_all_is_no_open_order_where_one_order_is_possible(dataset: Dataset, spec: str) -> None:
    planned = plan_order(dataset, spec, ReadSettings())
    assert planned.warnings == ()
    assert planned.order.num_examples == planned.resolved.num_examples


@pytest.mark.slow  # two processes with TFDS, which finds the files of a split without TensorFlow
@pytest.mark.tensorflow
def test_tfds_reads_all_of_several_folders_in_another_order_in_each_run(tmp_path: Path) -> None:
    first = build_dataset(tmp_path / "a", splits={"train": [3], "test": [2]}, with_files=False)
    second = build_dataset(tmp_path / "b", splits={"extra": [4]}, with_files=False)
    code = (
        "import json, sys, tensorflow_datasets as tfds\n"
        "files = tfds.builder_from_directories(sys.argv[1:]).info.splits['all'].file_instructions\n"
        "print(json.dumps([file.filename for file in files]))"
    )
    found = []
    for seed in ("0", "1"):  # of the hashes of text, which a run without one draws
        done = subprocess.run(
            [sys.executable, "-c", code, str(first), str(second)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(done.stdout.strip())
    one, other = map(json.loads, found)
    assert len(one) == 3
    assert sorted(one) == sorted(other)
    assert one != other


@pytest.fixture
def resolutions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The specs that are resolved while a test runs."""
    found: list[str] = []

    def counted(spec: str, dataset: Dataset) -> Any:
        found.append(spec)
        return resolve_subsplit(spec, dataset)

    monkeypatch.setattr(file_formats, "resolve_subsplit", counted)
    return found


def test_a_spec_is_resolved_once(resolutions: list[str]) -> None:
    settings = ReadSettings(cycle=2)
    snapshot(TWO, "train+test", settings)
    resume_on_hosts(TWO, "train[1:]", settings, hosts=4, to_hosts=3, consumed=[1])
    resolved = resolved_spec(TWO, "test")
    codes = [codes_of(resolved).parse("3")]
    assert resume_unseen_of(resolved, settings, seen=codes).remaining == 4
    assert order_of(resolved, settings).order.num_examples == 5
    assert resolutions == ["train+test", "train[1:]", "test"]


def test_a_spec_is_train_or_the_only_split_where_none_is_given() -> None:
    assert plan_order(TOY, None, ReadSettings()).spec == "train"
    alone = Dataset(name="d", splits=(Split(name="test", shard_lengths=(1,)),))
    assert plan_order(alone, None, ReadSettings()).spec == "test"


@pytest.mark.parametrize(
    ("spec", "settings", "warning"),
    [
        ("train[:0shard]", {}, "reads a stop of 0 shards as the end"),
        ("train+train", {}, "more than once"),
        ("train[3:3]", {}, "selects no examples"),
        ("train", {"host": Host(index=10, count=11)}, "host 10/11 by even reads no examples"),
        ("train[:2]", {"batch": 3, "drop_remainder": True}, "2 examples fill no batch"),
        ("train", {"buffer": 3, "global_seed": 1}, "buffer takes its seed from --global-seed"),
        (
            "train",
            {"buffer": 3, "global_seed": 1, "shuffle_files": True, "deterministic": True},
            "--shuffle-files and --buffer take their seeds from --global-seed",
        ),
    ],
)
def test_what_surprises_is_said(spec: str, settings: dict[str, object], warning: str) -> None:
    [said] = plan_order(TOY, spec, ReadSettings(**settings)).warnings  # type: ignore[arg-type]
    assert warning in said


def test_nothing_is_said_of_a_plain_order() -> None:
    settings = ReadSettings(shuffle_seed=1, buffer=3, buffer_seed=4, global_seed=5)
    assert plan_order(TOY, "train", settings).warnings == ()
