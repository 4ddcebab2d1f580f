"""The folders of a dataset, from what it was merged of and from its files."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import folders_of, layout_tells_order, with_folders
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.reference import merge_datasets


def files(folder: str | None, split: str, num_shards: int) -> ShardFiles:
    pattern = f"d-{split}-\0-of-{num_shards:05d}"
    return ShardFiles(data_dir=folder, pattern=pattern, num_shards=num_shards)


def folder(path: str, **splits: tuple[int, ...]) -> Dataset:
    return Dataset(
        name="d",
        version="1.0.0",
        data_dir=path,
        splits=tuple(
            Split(
                name=name,
                shard_lengths=lengths,
                files=(files(path, name, len(lengths)),),
                num_bytes=sum(lengths),
            )
            for name, lengths in splits.items()
        ),
    )


A = folder("/data/a", train=(1, 2), test=(3,))
B = folder("/data/b", extra=(4,), train=(1, 2))
C = folder("/data/c", test=(3,), train=(5,))


def test_a_dataset_in_one_folder_has_no_order_of_folders() -> None:
    assert folders_of(A) == (A,)
    assert with_folders(A) is A
    assert A.identity.folders == ()
    assert "folders" not in A.identity.record()


def test_folders_are_those_that_were_merged_in_their_order() -> None:
    both = merge_datasets([A, B])
    assert folders_of(both) == (A, B)
    assert folders_of(merge_datasets([both, C])) == (A, B, C)
    a, b = both.identity.folders
    assert (a.path, a.title, a.num_bytes, a.splits) == ("a", "d:1.0.0", 6, ("test", "train"))
    assert (b.path, b.num_bytes, b.splits) == ("b", 7, ("extra", "train"))
    # The fingerprint of a folder does not depend on the order in which TFDS lists its splits.
    turned = merge_datasets([replace(A, splits=A.splits[::-1]), B])
    assert turned.identity.folders == (a, b)
    assert both.identity.folders_by_split() == {"train": (a, b)}


def test_without_them_the_files_say_which_folders_there_are() -> None:
    """In any order of the splits: a builder over several folders has none."""
    for datasets in itertools.permutations([A, B, C]):
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
            lengths = {
                (f.data_dir, split.name): split.shard_lengths for f in found for split in f.splits
            }
            assert lengths["/data/a", "train"] == (1, 2)
            assert lengths["/data/c", "train"] == (5,)


def test_splits_that_contradict_each_other_are_refused() -> None:
    parts = [[files(path, name, 1) for path in order] for name, order in (("x", "ab"), ("y", "ba"))]
    splits = tuple(
        Split(name=name, shard_lengths=(1, 1), files=tuple(of))
        for name, of in zip("xy", parts, strict=True)
    )
    with pytest.raises(DatasetError, match="the splits of d read their folders in different order"):
        folders_of(Dataset(name="d", splits=splits))


@pytest.mark.parametrize(
    ("parts", "tells"),
    [
        ([(1, 2), (1, 2)], False),
        ([(1, 2), (2, 1)], True),
        ([(1, 2), (1, 3)], True),
        ([(1,), (1, 1)], True),  # the number of shards is in their names
        ([(), (1,)], False),
    ],
)
def test_a_layout_tells_the_order_if_nothing_begins_like_the_next(
    parts: list[tuple[int, ...]], tells: bool
) -> None:
    split = Split(
        name="train",
        shard_lengths=tuple(itertools.chain(*parts)),
        files=tuple(files(f"/{i}", "train", len(part)) for i, part in enumerate(parts)),
    )
    assert layout_tells_order(split) is tells
    plain = tuple(ShardFiles(pattern="x-\0", num_shards=len(part)) for part in parts)
    if parts == [(1,), (1, 1)]:
        assert not layout_tells_order(replace(split, files=plain))
