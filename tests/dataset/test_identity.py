"""What tells one dataset from another, and every field in which two of them differ."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split, dataset_title
from shardctl.dataset.identity import (
    DatasetHead,
    DatasetIdentity,
    FolderIdentity,
    SplitSize,
    differences,
)

TOY = DatasetIdentity(
    name="toy",
    config="small",
    version="1.0.0",
    file_format="tfrecord",
    data_dir="/data",
    fingerprint="sha256:1",
    ordered=False,
    splits=(
        SplitSize(name="train", num_examples=11, num_shards=3),
        SplitSize(name="test", num_examples=4, num_shards=1),
    ),
)


@pytest.mark.parametrize(
    ("config", "version", "title"),
    [
        (None, None, "d"),
        ("c", None, "d/c"),
        (None, "1.0.0", "d:1.0.0"),
        ("c", "1.0.0", "d/c:1.0.0"),
    ],
)
def test_a_title_is_written_as_tfds_writes_it(
    config: str | None, version: str | None, title: str
) -> None:
    assert dataset_title("d", config, version) == title
    split = Split(name="train", shard_lengths=(3,))
    dataset = Dataset(name="d", config=config, version=version, splits=(split,))
    assert dataset.title == dataset.identity.title == title


def test_a_dataset_is_known_by_its_layout_and_where_it_lies() -> None:
    splits = (Split(name="b", shard_lengths=(3, 4)), Split(name="a", shard_lengths=(0,)))
    dataset = Dataset(name="d", splits=splits, file_format="riegeli", data_dir="/x", ordered=True)
    assert dataset.identity == DatasetIdentity(
        name="d",
        config=None,
        version=None,
        file_format="riegeli",
        data_dir="/x",
        fingerprint=dataset.fingerprint,
        ordered=True,
        splits=(
            SplitSize(name="b", num_examples=7, num_shards=2),
            SplitSize(name="a", num_examples=0, num_shards=1),
        ),
    )


def test_a_head_without_its_folder_is_the_head_alone() -> None:
    found = TOY.without_folder()
    assert type(found) is DatasetHead
    assert (found.title, found.data_dir, found.fingerprint) == (TOY.title, None, "sha256:1")
    assert found == replace(TOY, data_dir="/else").without_folder()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "other"),
        ("config", None),
        ("version", "2.0.0"),
        ("file_format", "riegeli"),
        ("data_dir", None),
        ("fingerprint", "sha256:2"),
        ("ordered", True),
    ],
)
def test_every_field_that_differs_is_named(field: str, value: object) -> None:
    other = replace(TOY, **{field: value})  # type: ignore[arg-type]
    [found] = differences(TOY, other)
    assert (found.field, found.then, found.now) == (field, getattr(TOY, field), value)
    assert not list(differences(TOY, TOY))


def test_splits_are_compared_one_by_one() -> None:
    train, test = TOY.splits
    grown, extra = (
        replace(train, num_examples=12),
        SplitSize(name="extra", num_examples=1, num_shards=1),
    )
    found = differences(TOY, replace(TOY, splits=(extra, grown)))
    assert [(d.field, d.split, d.then, d.now) for d in found] == [
        ("splits", "train", train, grown),
        ("splits", "test", test, None),
        ("splits", "extra", None, extra),
    ]
    [found_order] = differences(TOY, replace(TOY, splits=(test, train)))
    assert (found_order.split, found_order.then) == (None, ("train", "test"))


def test_a_head_is_compared_by_what_it_knows() -> None:
    found = differences(TOY.without_folder(), replace(TOY, ordered=True, splits=()))
    assert [difference.field for difference in found] == ["data_dir"]


def test_a_template_that_both_know_is_compared() -> None:
    named = [replace(TOY.splits[0], template=template) for template in ("a-\0", "b-\0")]
    old, new = (replace(TOY, splits=(split,)) for split in named)
    [found] = differences(old, new)
    assert (found.field, found.split, found.then, found.now) == (
        "template",
        "train",
        "a-\0",
        "b-\0",
    )
    assert not list(differences(old, replace(TOY, splits=TOY.splits[:1])))


def test_folders_are_compared_split_by_split() -> None:
    a, b = (
        FolderIdentity(
            path=path, title="d:1.0.0", fingerprint="f", num_bytes=None, splits=("train", "test")
        )
        for path in "ab"
    )
    both = replace(TOY, folders=(a, b))
    assert not list(differences(both, both))
    found = list(differences(both, replace(TOY, folders=(b, a))))
    assert [(d.field, d.split, d.then, d.now) for d in found] == [
        ("folders", "train", (a, b), (b, a)),
        ("folders", "test", (a, b), (b, a)),
    ]
    [titles] = differences(both, replace(TOY, folders=(a, replace(b, title="d:2.0.0"))))
    assert (titles.field, titles.now) == ("folder_titles", ("d:1.0.0", "d:2.0.0"))


def test_many_folders_and_splits_are_compared_in_a_moment() -> None:
    """Quadratic work would take minutes: files that others wrote hold any number of them."""
    folders = tuple(
        FolderIdentity(
            path=f"{i:06}", title=str(i), fingerprint="f", num_bytes=i, splits=(f"s{i // 2}",)
        )
        for i in range(5_000)
    )
    then = replace(TOY, folders=folders)
    started = time.monotonic()
    found = list(differences(then, replace(TOY, folders=folders[::-1])))
    assert len(found) == 2_500
    one = tuple(replace(folder, splits=("train",)) for folder in folders)
    assert not list(differences(replace(TOY, folders=one), replace(TOY, folders=one)))
    assert time.monotonic() - started < 10
