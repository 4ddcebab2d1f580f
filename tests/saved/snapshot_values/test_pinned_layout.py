"""The layout of a split in a few kilobytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.saved import snapshot as pinned
from shardctl.saved.snapshot import ShardHashes, pinned_layout, run_lengths
from tests.cases import check_cases
from tests.strategies import shard_lengths


def test_run_lengths_say_each_length_in_turn() -> None:
    def check(lengths: tuple[int, ...]) -> None:
        said: list[int] = []
        words = list(run_lengths(lengths))
        for word in words:
            length, _, count = word.partition("x")
            said += [int(length)] * int(count or 1)
        assert tuple(said) == lengths
        assert all(
            one.partition("x")[0] != other.partition("x")[0] for one, other in pairwise(words)
        )

    check_cases(shard_lengths(12, 2), check, 200)


def dataset_of(*lengths: tuple[int, ...]) -> Dataset:
    return Dataset(
        name="d",
        splits=tuple(
            Split(
                name=f"s{index}",
                shard_lengths=split,
                files=(ShardFiles(data_dir="/data", pattern="x/d-\0", num_shards=len(split)),),
            )
            for index, split in enumerate(lengths)
        ),
    )


def test_a_layout_that_fits_is_kept_without_folders() -> None:
    (split,) = pinned_layout(dataset_of((3, 4)), ["s0"])
    assert split.split == Split(
        name="s0", shard_lengths=(3, 4), files=(ShardFiles(pattern="d-\0", num_shards=2),)
    )


def test_only_splits_that_are_read_are_kept_in_the_order_of_the_dataset() -> None:
    found = pinned_layout(dataset_of((1,), (2,), (3,)), ["s2", "s0"])
    assert [split.name for split in found] == ["s0", "s2"]


def test_lengths_that_fit_no_more_are_kept_as_digests_of_chunks() -> None:
    irregular = tuple(i * i % 977 for i in range(20_000))
    large, small = pinned_layout(dataset_of(irregular, (3, 4)), ["s0", "s1"])
    assert large.split is None
    assert large.hashes is not None
    assert len(large.hashes.digests) == -(-20_000 // large.hashes.size) <= pinned.MAX_CHUNKS
    assert small.split is not None


def test_a_million_even_shards_fit() -> None:
    split = Split.even(name="train", num_examples=10**9, num_shards=1_000_000)
    (kept,) = pinned_layout(Dataset(name="d", splits=(split,)), ["train"])
    assert kept.split is not None


@pytest.mark.parametrize(
    ("num_files", "longer", "fits"),
    [(100, 0, True), (1498, 0, True), (1498, 15, True), (1498, 16, False), (2000, 0, False)],
)
def test_names_of_files_take_room(num_files: int, longer: int, fits: bool) -> None:
    # 16 characters each, and quotation marks, a comma and a space; 25 besides. 30,000 fit.
    names = tuple(f"{n:016}" for n in range(num_files))
    files = ShardFiles(
        pattern="\0", num_shards=num_files, names=("x" * longer + names[0], *names[1:])
    )
    split = Split(name="train", shard_lengths=(5,) * num_files, files=(files,))
    (kept,) = pinned_layout(Dataset(name="d", splits=(split,)), ["train"])
    assert (kept.split is not None) == fits


@pytest.mark.parametrize("at", [0, 99, 100, 250, 511])
def test_a_shard_that_changes_changes_the_digest_of_its_chunk_alone(at: int) -> None:
    lengths = list(range(512))
    before = ShardHashes.of(dataset_of(tuple(lengths)).splits[0], 100)
    lengths[at] += 1
    after = ShardHashes.of(dataset_of(tuple(lengths)).splits[0], 100)
    pairs = zip(before.digests, after.digests, strict=True)
    assert [i for i, (one, other) in enumerate(pairs) if one != other] == [at // 100]


def test_the_digests_of_a_split_kept_as_it_is_can_be_made_for_any_chunk() -> None:
    def check(case: tuple[tuple[int, ...], int]) -> None:
        lengths, size = case
        (kept,) = pinned_layout(dataset_of(lengths), ["s0"])
        assert kept.hashed(size) == ShardHashes.of(dataset_of(lengths).splits[0], size)

    cases = st.tuples(shard_lengths(), st.integers(1, 9))
    check_cases(cases, check, 50)


def test_the_name_of_a_file_is_part_of_its_digest() -> None:
    def digests(pattern: str) -> tuple[str, ...]:
        files = ShardFiles(pattern=pattern, num_shards=4)
        split = Split(name="train", shard_lengths=(3, 4, 5, 6), files=(files,))
        return tuple(ShardHashes.of(split, 2).digests)

    assert len({*digests("a-\0"), *digests("b-\0")}) == 4
