"""Datasets of a mixture as one: names of splits, and one dataset as it is."""

from __future__ import annotations

from dataclasses import replace

from shardctl.dataset.dataset import Dataset, Split, combined, distinct_datasets, labels_of


def _dataset(name: str, *lengths: int, **more: str) -> Dataset:
    return Dataset(name=name, splits=(Split(name="train", shard_lengths=lengths),), **more)  # type: ignore[arg-type]


def test_splits_are_called_by_their_dataset() -> None:
    one, two = _dataset("a", 3, 4), _dataset("b", 5)
    whole = combined([one, two])
    assert [(split.name, split.num_examples) for split in whole.splits] == [
        ("a/train", 7),
        ("b/train", 5),
    ]
    assert whole.fingerprint != combined([two, one]).fingerprint
    assert combined([one]) is one


def test_what_two_datasets_share_is_left_to_what_tells_them_apart() -> None:
    old, new = _dataset("a", 3, version="1.0.0"), _dataset("a", 4, version="2.0.0")
    assert labels_of([old, new]) == ["a-1.0.0", "a-2.0.0"]
    assert labels_of([replace(old, config="x"), replace(old, config="y")]) == ["a-x", "a-y"]
    assert labels_of([old, replace(old)]) == ["a-1", "a-2"]


def test_equal_datasets_are_one() -> None:
    one = _dataset("a", 3)
    assert distinct_datasets([one, _dataset("b", 3), replace(one)]) == [one, _dataset("b", 3)]
