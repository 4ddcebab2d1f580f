"""The names of many shards' files, beside those of one after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.dataset.dataset import Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.spec.reads import shard_names
from tests.cases import check_cases

# With the index in the name, twice in it, in the folder, in both, nowhere; and what `%` would read.
_PATTERNS = ["d-\0", "a/d-\0", "\0-%d-\0", "\0/d", "\0/d-\0", "one", "ä\n-\0", "d-%s-\0-of-9"]


@st.composite
def _splits(draw: st.DrawFn) -> tuple[Split, ...]:
    splits = []
    for index in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
        # Names of a split with so many shards have an index with a digit more.
        if draw(st.integers(0, 9)) == 0:
            sizes = [100_001]
        files = []
        for size in sizes:
            listed = draw(st.booleans()) and size < 9
            names = tuple(f"x/n{index}-{i}" for i in range(size)) if listed else None
            pattern = "" if listed else draw(st.sampled_from(_PATTERNS))
            files.append(ShardFiles(pattern=pattern, num_shards=size, names=names))
        splits.append(Split(name=f"s{index}", shard_lengths=(1,) * sum(sizes), files=tuple(files)))
    return tuple(splits)


def test_names_of_shards_are_those_of_each() -> None:
    def check(case: tuple[tuple[Split, ...], int]) -> None:
        splits, seed = case
        rng = np.random.default_rng(seed)
        split = rng.integers(0, len(splits), seed % 20)
        shard = rng.integers(0, [splits[index].num_shards for index in split])
        if seed % 3 == 0:  # in the order of storage
            split, shard = np.zeros(splits[0].num_shards, np.int64), splits[0].shards64[:50]
            split = split[: len(shard)]
        expected = [
            splits[s].filename(i) for s, i in zip(split.tolist(), shard.tolist(), strict=True)
        ]
        assert shard_names(splits, split, shard) == expected

    check_cases(st.tuples(_splits(), st.integers(0, 200)), check, 40)
