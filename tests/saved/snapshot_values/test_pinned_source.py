"""Datasets that were pinned as one are those that readers name again."""

from __future__ import annotations

from shardctl.dataset.dataset import Dataset, Split, combined
from shardctl.saved.snapshot import PinnedSource, datasets_of


def toy(name: str, *lengths: int, ordered: bool = False) -> Dataset:
    return Dataset(
        name=name, ordered=ordered, splits=(Split(name="train", shard_lengths=tuple(lengths)),)
    )


def test_each_has_its_splits_under_their_own_names() -> None:
    both = combined([toy("a", 3, 4), toy("b", 5, ordered=True)])
    found = datasets_of(
        both,
        [
            PinnedSource(data=None, label="a", title="a:1.0.0", ordered=False),
            PinnedSource(data="./b", label="b", title="b", ordered=True),
            PinnedSource(data="b:1.0.0", label="b", title="b", ordered=True),
        ],
    )
    assert list(found) == [None, "./b", "b:1.0.0"]
    assert [(s.name, s.shard_lengths) for s in found[None].splits] == [("train", (3, 4))]
    assert [(s.name, s.shard_lengths) for s in found["./b"].splits] == [("train", (5,))]
    assert (found[None].ordered, found["./b"].ordered) == (False, True)
    assert found["./b"] is found["b:1.0.0"]
    # Put together again they are what was pinned.
    again = combined([found[None], found["./b"]])
    assert [(s.name, s.shard_lengths) for s in again.splits] == [
        (s.name, s.shard_lengths) for s in both.splits
    ]


def test_one_dataset_is_all_that_readers_name() -> None:
    one = toy("a", 3, 4)
    source = PinnedSource(data=None, label="", title="a", ordered=False)
    assert datasets_of(one, [source]) == {None: one}
