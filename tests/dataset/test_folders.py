"""Folders of a dataset, their order, and what two datasets differ in."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import folders_of, layout_tells_order, with_folders
from shardctl.dataset.identity import (
    DatasetHead,
    DatasetIdentity,
    FolderIdentity,
    SplitSize,
    differences,
    folder_order,
    order_in_words,
    paths_left,
)
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.reference import merge_datasets
from tests.golden import assert_answers

A = FolderIdentity(path="a", title="toy:1.0.0", fingerprint="f", num_bytes=8, splits=("train",))
B, C = replace(A, path="b"), replace(A, path="c")


def order(then: list[FolderIdentity], now: list[FolderIdentity]) -> str:
    found = folder_order(then, now)
    assert folder_order(now, then) == found
    return found


def test_an_order_of_folders_is_the_same_another_or_cannot_be_told() -> None:
    path = Path(__file__).parent / "golden" / "folders.txt"
    names = {"order_in_words": order_in_words, "paths_left": paths_left, **globals()}
    assert_answers(path, lambda question: eval(question, names))


def test_every_permutation_of_folders_that_differ_in_anything_is_noticed() -> None:
    rng, checked = random.Random(10), 0
    for _ in range(300):
        folders = [
            replace(A, path=rng.choice("pqrs"), title=f"toy:{rng.randrange(2)}.0.0", num_bytes=size)
            for size in rng.choices((0, 1), k=rng.randrange(1, 5))
        ]
        for places in itertools.permutations(range(len(folders))):
            now = [folders[place] for place in places]
            assert folder_order(folders, now) == ("same" if now == folders else "other")
            checked += 1
    assert checked > 2000


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


def test_a_dataset_is_known_by_its_layout_and_where_it_lies() -> None:
    splits = (Split(name="b", shard_lengths=(3, 4)), Split(name="a", shard_lengths=(0,)))
    dataset = Dataset(name="d", splits=splits, file_format="riegeli", data_dir="/x", ordered=True)
    sizes = (
        SplitSize(name="b", num_examples=7, num_shards=2),
        SplitSize(name="a", num_examples=0, num_shards=1),
    )
    found = dataset.identity
    assert (found.name, found.config, found.version, found.data_dir) == ("d", None, None, "/x")
    assert (found.file_format, found.ordered, found.splits) == ("riegeli", True, sizes)
    assert (found.fingerprint, found.folders) == (dataset.fingerprint, ())
    head = TOY.without_folder()
    assert type(head) is DatasetHead
    assert (head.title, head.data_dir, head.fingerprint) == (TOY.title, None, "sha256:1")
    assert head == replace(TOY, data_dir="/else").without_folder()
    [found_dir] = differences(head, replace(TOY, ordered=True, splits=()))
    assert found_dir.field == "data_dir"


def test_every_field_that_differs_is_named() -> None:
    others: dict[str, Any] = {
        "name": "other",
        "config": None,
        "version": "2.0.0",
        "file_format": "riegeli",
    }
    others |= {"data_dir": None, "fingerprint": "sha256:2", "ordered": True}
    for field, value in others.items():
        [found] = differences(TOY, replace(TOY, **{field: value}))
        assert (found.field, found.then, found.now) == (field, getattr(TOY, field), value)
    assert not list(differences(TOY, TOY))


def test_splits_are_compared_one_by_one() -> None:
    train, test = TOY.splits
    grown = replace(train, num_examples=12)
    extra = SplitSize(name="extra", num_examples=1, num_shards=1)
    found = differences(TOY, replace(TOY, splits=(extra, grown)))
    assert [(d.field, d.split, d.then, d.now) for d in found] == [
        ("splits", "train", train, grown),
        ("splits", "test", test, None),
        ("splits", "extra", None, extra),
    ]
    [found_order] = differences(TOY, replace(TOY, splits=(test, train)))
    assert (found_order.split, found_order.then) == (None, ("train", "test"))
    # A template is compared where both know it.
    named = [replace(TOY.splits[0], template=template) for template in ("a-\0", "b-\0")]
    old, new = (replace(TOY, splits=(split,)) for split in named)
    [name] = differences(old, new)
    assert (name.field, name.split, name.then, name.now) == ("template", "train", "a-\0", "b-\0")
    assert not list(differences(old, replace(TOY, splits=TOY.splits[:1])))


def test_folders_are_compared_split_by_split() -> None:
    a, b = (replace(folder, splits=("train", "test")) for folder in (A, B))
    both = replace(TOY, folders=(a, b))
    assert not list(differences(both, both))
    found = list(differences(both, replace(TOY, folders=(b, a))))
    assert [(d.field, d.split, d.then, d.now) for d in found] == [
        ("folders", "train", (a, b), (b, a)),
        ("folders", "test", (a, b), (b, a)),
    ]
    [titles] = differences(both, replace(TOY, folders=(a, replace(b, title="toy:2.0.0"))))
    assert (titles.field, titles.now) == ("folder_titles", ("toy:1.0.0", "toy:2.0.0"))


def test_many_folders_and_splits_are_compared_in_a_moment() -> None:
    """Quadratic work would take minutes: files that others wrote hold any number of them."""
    folders = tuple(
        replace(A, path=f"{i:06}", title=str(i), num_bytes=i, splits=(f"s{i // 2}",))
        for i in range(5_000)
    )
    then = replace(TOY, folders=folders)
    started = time.monotonic()
    found = list(differences(then, replace(TOY, folders=folders[::-1])))
    assert len(found) == 2_500
    one = tuple(replace(folder, splits=("train",)) for folder in folders)
    assert not list(differences(replace(TOY, folders=one), replace(TOY, folders=one)))
    assert time.monotonic() - started < 10


# Folders from what a dataset was merged of, and from its files.


def files(folder: str | None, split: str, num_shards: int) -> ShardFiles:
    pattern = f"d-{split}-\0-of-{num_shards:05d}"
    return ShardFiles(data_dir=folder, pattern=pattern, num_shards=num_shards)


def folder(path: str, **splits: tuple[int, ...]) -> Dataset:
    made = [
        Split(
            name=name,
            shard_lengths=each,
            files=(files(path, name, len(each)),),
            num_bytes=sum(each),
        )
        for name, each in splits.items()
    ]
    return Dataset(name="d", version="1.0.0", data_dir=path, splits=tuple(made))


IN_A = folder("/data/a", train=(1, 2), test=(3,))
IN_B = folder("/data/b", extra=(4,), train=(1, 2))
IN_C = folder("/data/c", test=(3,), train=(5,))


def test_folders_are_those_that_were_merged_in_their_order() -> None:
    both = merge_datasets([IN_A, IN_B])
    assert folders_of(both) == (IN_A, IN_B)
    assert folders_of(merge_datasets([both, IN_C])) == (IN_A, IN_B, IN_C)
    a, b = both.identity.folders
    assert (a.path, a.title, a.num_bytes, a.splits) == ("a", "d:1.0.0", 6, ("test", "train"))
    assert (b.path, b.num_bytes, b.splits) == ("b", 7, ("extra", "train"))
    # The fingerprint of a folder does not depend on the order in which TFDS lists its splits.
    turned = merge_datasets([replace(IN_A, splits=IN_A.splits[::-1]), IN_B])
    assert turned.identity.folders == (a, b)
    assert both.identity.folders_by_split() == {"train": (a, b)}
    # A dataset in one folder has no order of folders.
    assert (folders_of(IN_A), with_folders(IN_A), IN_A.identity.folders) == ((IN_A,), IN_A, ())
    assert "folders" not in IN_A.identity.record()


def test_without_them_the_files_say_which_folders_there_are() -> None:
    # In any order of the splits: a builder over several folders has none.
    for datasets in itertools.permutations([IN_A, IN_B, IN_C]):
        merged = merge_datasets(datasets)
        expected = {split.name: [part.data_dir for part in split.files] for split in merged.splits}
        for splits in itertools.permutations(merged.splits):
            found = folders_of(replace(merged, splits=splits, folders=()))
            for name, paths in expected.items():
                has = [f.data_dir for f in found if name in [s.name for s in f.splits]]
                assert has == paths
            by_hand = with_folders(replace(merged, splits=splits, folders=()))
            assert by_hand.folders == found
            assert [f.title for f in by_hand.identity.folders] == [None, None, None]
            lengths = {(f.data_dir, s.name): s.shard_lengths for f in found for s in f.splits}
            assert (lengths["/data/a", "train"], lengths["/data/c", "train"]) == ((1, 2), (5,))


def test_splits_that_contradict_each_other_are_refused() -> None:
    parts = [[files(path, name, 1) for path in order] for name, order in (("x", "ab"), ("y", "ba"))]
    splits = tuple(
        Split(name=name, shard_lengths=(1, 1), files=tuple(of))
        for name, of in zip("xy", parts, strict=True)
    )
    with pytest.raises(DatasetError, match="the splits of d read their folders in different order"):
        folders_of(Dataset(name="d", splits=splits))


def test_a_layout_tells_the_order_if_nothing_begins_like_the_next() -> None:
    for parts, tells in (
        ([(1, 2), (1, 2)], False),
        ([(1, 2), (2, 1)], True),
        ([(1,), (1, 1)], True),  # the number of shards is in their names
        ([(), (1,)], False),
        ([(1,), (2,), (1,)], False),
    ):
        named = tuple(files(f"/{i}", "train", len(part)) for i, part in enumerate(parts))
        lengths = tuple(itertools.chain(*parts))
        split = Split(name="train", shard_lengths=lengths, files=named)
        assert layout_tells_order(split) is tells
    plain = tuple(ShardFiles(pattern="x-\0", num_shards=n) for n in (1, 2))
    assert not layout_tells_order(Split(name="train", shard_lengths=(1, 1, 1), files=plain))
