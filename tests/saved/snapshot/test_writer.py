"""A snapshot as text: small, the same everywhere, and fit for a review."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.order_tree import HashTree, leaf_size
from shardctl.saved.snapshot import MAX_SNAPSHOT_BYTES
from shardctl.saved.snapshot_file import snapshot_document, snapshot_json, snapshot_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import dataset_of


def text_of_a_billion(lengths: tuple[int, ...], **settings: object) -> str:
    """Return the snapshot of an order of these shards, with a tree as large as its own."""
    files = ShardFiles.from_template(
        DEFAULT_TEMPLATE,
        dataset="giga",
        split="train",
        file_format="tfrecord",
        num_shards=len(lengths),
    )
    train = Split(name="train", shard_lengths=lengths, files=(files,))
    tiny = Split(name="train", shard_lengths=(1,))
    taken = snapshot(Dataset(name="giga", splits=(tiny,)), "train").snapshot
    from shardctl.saved.snapshot import pinned_layout

    total = train.num_examples
    leaves = tuple(bytes([i % 256]) * 16 for i in range(-(-total // leaf_size(total))))
    large = replace(
        taken,
        splits=pinned_layout(Dataset(name="giga", splits=(train,)), ["train"]),
        tree=HashTree(num_examples=total, leaves=leaves),
        first_ids=tuple(range(total - 32, total)),
        **settings,  # type: ignore[arg-type]
    )
    return "".join(snapshot_yaml(large))


@pytest.mark.long
@pytest.mark.parametrize(
    "lengths",
    [
        (10**9 // 16384,) * 16384,
        tuple(60_000 + i * i % 7919 for i in range(16384)),
        tuple(range(1000, 1997)) * 702,
        (2**62,),
    ],
    ids=["even", "irregular", "many shards", "huge"],
)
def test_a_billion_examples_take_less_than_100_kb(lengths: tuple[int, ...]) -> None:
    assert sum(lengths) >= 999_000_000
    assert len(text_of_a_billion(lengths).encode()) < 60_000


@pytest.mark.long
def test_the_longest_parts_together_take_less_than_100_kb() -> None:
    names = [f"{i:05d}-{'x' * 60}" for i in range(500)]
    splits = tuple(
        Split(
            name=f"split-{number:03d}",
            shard_lengths=tuple(i * i % 79 for i in range(500)),
            files=(ShardFiles(num_shards=len(names), names=tuple(names)),),
        )
        for number in range(60)
    )
    settings = ReadSettings(file_order=tuple(names), shuffle_seed=10**4000)
    with pytest.raises(UsageError):
        snapshot(Dataset(name="d", splits=splits), "all", settings)  # one name in many splits
    pinned = snapshot(Dataset(name="d", splits=splits), "all", replace(settings, file_order=None))
    text = "".join(snapshot_yaml(pinned.snapshot))
    assert len(text.encode()) < MAX_SNAPSHOT_BYTES
    assert len(yaml.safe_load(text)["layout"]["splits"]) == 60


@pytest.mark.long
def test_what_would_be_larger_is_refused() -> None:
    dataset = dataset_of({"train": (5,)})
    with pytest.raises(UsageError, match="100000 at most"):
        "".join(snapshot_yaml(snapshot(dataset, "+".join(["train"] * 20_000)).snapshot))


def test_the_yaml_and_the_json_say_the_same() -> None:
    pinned = snapshot(dataset_of({"train": (5, 5, 9, 9, 0)}), "train").snapshot
    document = json.loads("".join(snapshot_json(pinned)))
    assert document == snapshot_document(pinned)
    found = yaml.safe_load("".join(snapshot_yaml(pinned)))
    found["tree"]["digests"] = found["tree"]["digests"].split()
    for split in found["layout"]["splits"]:
        split["shard_lengths"] = split["shard_lengths"].split()
    assert found == document
    assert found["layout"]["splits"][0]["shard_lengths"] == ["5x2", "9x2", "0"]


def test_no_folder_is_in_a_snapshot() -> None:
    train = Split(
        name="train",
        shard_lengths=(3,),
        files=(ShardFiles(data_dir="/secret/place", pattern="sub/d-\0", num_shards=1),),
    )
    dataset = Dataset(name="d", splits=(train,), data_dir="/secret/place")
    text = "".join(snapshot_yaml(snapshot(dataset, "train").snapshot))
    assert "secret" not in text
    assert "sub/" not in text


def test_a_setting_that_changes_is_a_line_of_a_review() -> None:
    dataset = dataset_of({"train": (50, 50)})
    one, other = (
        "".join(snapshot_yaml(snapshot(dataset, "train", ReadSettings(batch=batch)).snapshot))
        for batch in (8, 16)
    )
    changed = [
        (old, new)
        for old, new in zip(one.splitlines(), other.splitlines(), strict=True)
        if old != new
    ]
    assert [pair[0].split(":")[0] for pair in changed] == ["  batch", "checksum"]
    assert max(map(len, one.splitlines())) < 200


def test_the_first_ids_are_those_that_are_read_first() -> None:
    pinned = snapshot(dataset_of({"train": (3, 3)}), "train", ReadSettings(block=1)).snapshot
    assert snapshot_document(pinned)["first_ids"] == [0, 3, 1, 4, 2, 5]
