"""Shares of the rest of an epoch: their order, and what is left of it anywhere in it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.order.example_codes import ExampleCodes
from shardctl.saved.shared_rest import SharedRest
from shardctl.spec.reads import Reads
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from tests.cases import check_cases
from tests.spec.tfds_splits import toy_dataset

TOY = toy_dataset({"train": (9, 4, 9, 12, 7)})
SEEDS = KernelSeeds(seed=12, seed2=34)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Rows (shard, skip, take) in the order of a share, and how they are read."""

    rows: tuple[tuple[int, int, int], ...]
    cycle: int
    block: int
    buffer: int | None

    def rest(self) -> SharedRest:
        seeds = None if self.buffer is None else SEEDS
        sizes = {"cycle": self.cycle, "block": self.block, "buffer": self.buffer}
        return rest_of(TOY, [(0, *row) for row in self.rows], buffer_seeds=seeds, **sizes)


def rest_of(dataset: Dataset, rows: list[tuple[int, int, int, int]], **settings: Any) -> SharedRest:
    """Return the rest of an epoch of rows of (split, shard, skip, take)."""
    split, shard, skip, take = np.array(rows, np.int64).reshape(-1, 4).T
    columns = {"split": split, "shard": shard, "skip": skip, "take": take}
    reads = Reads(files=dataset, part=np.zeros_like(split), **columns)
    return SharedRest(epoch=0, reads=reads, **{"buffer": None, "buffer_seeds": None, **settings})


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows = []
    for _ in range(draw(st.integers(0, 9))):
        shard = draw(st.integers(0, 4))
        length = TOY.splits[0].shard_lengths[shard]
        skip = draw(st.integers(0, length - 1))
        rows.append((shard, skip, draw(st.integers(1, length - skip))))
    return Case(
        rows=tuple(sorted(rows) if draw(st.booleans()) else rows),
        cycle=draw(st.integers(1, 4)),
        block=draw(st.sampled_from([1, 2, 3, 16])),
        buffer=draw(st.sampled_from([None, None, 1, 3, 8, 99, -2])),
    )


def files_of(case: Case) -> list[list[int]]:
    """Return the ids in each opened file: rows are read together as far as a file goes forwards."""
    offsets, files = TOY.splits[0].offsets, list[list[int]]()
    last = (-1, 0)
    for shard, skip, take in case.rows:
        if last[0] != shard or skip < last[1]:
            files.append([])
        files[-1] += range(offsets[shard] + skip, offsets[shard] + skip + take)
        last = (shard, skip + take)
    return files


def interleaved(files: list[list[int]], cycle: int, block: int) -> list[int]:
    """Interleave as tf.data does: a file that is found at its end ends the turn of its slot."""
    waiting, found = list(map(list, files)), list[int]()
    slots: list[list[int] | None] = [None] * cycle
    while waiting or any(slot is not None for slot in slots):
        for index in range(cycle):
            if slots[index] is None and waiting:
                slots[index] = waiting.pop(0)
            slot = slots[index]
            if slot is not None:
                found += slot[:block]
                # A file of whole blocks is found to be at its end only on its next turn.
                slots[index] = None if len(slot) < block else slot[block:]
    return found


def codes(rest: SharedRest, start: int, stop: int) -> list[int]:
    named = ExampleCodes(TOY, ["train"], rest.reads)
    return [int(code) for piece in rest.chunks(start, stop, named) for code in piece]


def shuffled(ids: list[int], buffer: int) -> list[int]:
    from shardctl.tfdata.shuffle_buffer import shuffle_permutation

    order = shuffle_permutation(len(ids), max(len(ids), 1) if buffer == -2 else buffer, SEEDS)
    return [ids[place] for place in order.tolist()]


def check(case: Case) -> None:
    rest = case.rest()
    ids = interleaved(files_of(case), case.cycle, case.block)
    expected = ids if case.buffer is None or not ids else shuffled(ids, case.buffer)
    assert codes(rest, 0, rest.size) == expected
    for emitted in range(rest.size + 1):
        assert codes(rest, emitted, rest.size) == expected[emitted:]
        reads, num_rows = rest.files_left(emitted)
        assert int(num_rows.sum()) == len(reads)
        pending = ExampleCodes(TOY, ["train"], reads).first_codes(rest.pending(emitted)).tolist()
        bounds = np.append(0, np.cumsum(num_rows)).tolist()
        files = [ids_of(reads.select(slice(*at))) for at in pairwise(bounds)]
        still = interleaved(files, case.cycle, case.block)
        assert still == ids[emitted + len(pending) :]
        assert sorted(pending + still) == sorted(expected[emitted:])
        assert ids_of(rest.left(emitted)) == sorted(expected[emitted:])


def ids_of(reads: Reads) -> list[int]:
    offsets = TOY.splits[0].offsets
    return sorted(
        offsets[shard] + skip + k
        for shard, skip, take in zip(*map(list, (reads.shard, reads.skip, reads.take)), strict=True)
        for k in range(take)
    )


@pytest.mark.long
def test_a_share_goes_on_anywhere_in_it() -> None:
    check_cases(cases(), check, 25)


def test_a_share_of_nothing_has_no_buffer() -> None:
    rest = Case(rows=((0, 2, 7), (1, 0, 3)), cycle=2, block=1, buffer=-2).rest()
    assert rest.replay is not None
    assert (rest.replay.buffer_size, rest.replay.num_elements) == (10, 10)
    assert Case(rows=(), cycle=2, block=1, buffer=4).rest().replay is None


def test_stretches_of_a_file_are_one_file_whichever_split_it_is_of() -> None:
    dataset = toy_dataset({"test": (4,), "train": (9,)})
    rest = rest_of(dataset, [(0, 0, 0, 2), (1, 0, 2, 4), (1, 0, 7, 2)], cycle=2, block=1)
    codes = ExampleCodes(dataset, ["test", "train"], rest.reads)
    # Two files are open: ids 0 and 1 of the one, and of the other 2 to 5, then 7 and 8.
    assert codes.ids(np.concatenate([*rest.chunks(0, 8, codes)])) == [
        *("test:0", "train:2", "test:1", "train:3", "train:4", "train:5", "train:7", "train:8")
    ]
