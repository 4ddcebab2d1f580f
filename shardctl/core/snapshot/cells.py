"""Digests of the cells of an order, id by id: which examples are at 4,096 positions.

Version 1 has every cell so; version 2 those whose ids hardly count on, see `run_cells`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.snapshot.hash_tree import CELL_SIZE, DIGEST_BYTES

if TYPE_CHECKING:
    from hashlib import _Hash

_NARROW = 1 << 32  # ids below this are hashed as 4 bytes, in half the time


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitIds:
    """The splits that an order reads: from its codes to splits and ids.

    `names` are in the dataset's order; the codes of each begin where those of the one before it
    end (see `ExampleCodes`), at `starts` (int64[s]), and end at `stop`.
    """

    names: tuple[str, ...]
    starts: Int64s
    stop: int

    @classmethod
    def of(cls, dataset: Dataset, names: Iterable[str]) -> SplitIds:
        """Return those of a dataset's splits that are named."""
        wanted = set(names)
        read = [split for split in dataset.splits if split.name in wanted]
        ends = np.cumsum([0, *(split.num_examples for split in read)], dtype=np.int64)
        return cls(names=tuple(split.name for split in read), starts=ends[:-1], stop=int(ends[-1]))

    def split_ids(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (index in `names`, id), int64[q] each."""
        if len(self.names) == 1:
            return np.zeros_like(codes), codes
        # Of splits that begin at the same code the last is the one that is not empty.
        split = np.searchsorted(self.starts, codes, side="right") - 1
        return split, codes - self.starts[split]


def cell_digests(chunks: Iterable[Int64s], splits: SplitIds) -> Iterator[bytes]:
    """Yield the digest of each cell of an order, from its codes in pieces of any size.

    A digest depends on nothing but the split's name and the id at each position. It is over the
    name and the ids, little endian, in 4 bytes where all of the cell fit; where the splits of a
    cell differ, over their names, the index of the name at each position, and the ids in 8 bytes.

    >>> splits = SplitIds(names=("train",), starts=np.array([0]), stop=9)
    >>> first = list(cell_digests([np.arange(9)], splits))
    >>> first == list(cell_digests([np.arange(4), np.arange(4, 9)], splits)), len(first[0])
    (True, 16)
    """
    for codes in whole_cells(chunks):
        yield from digests_of_ids(codes, splits)


def whole_cells(chunks: Iterable[Int64s]) -> Iterator[Int64s]:
    """Yield codes that come in pieces of any size as whole cells; the last one may be cut.

    >>> [len(codes) for codes in whole_cells([np.arange(5000), np.arange(3000), np.arange(9)])]
    [4096, 3913]
    """
    # Pieces smaller than a cell are gathered; the rest of a large one waits for the next.
    waiting: list[Int64s] = []
    num_waiting = 0
    for chunk in chunks:
        waiting.append(chunk)
        num_waiting += len(chunk)
        if num_waiting >= CELL_SIZE:
            codes = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            whole = len(codes) - len(codes) % CELL_SIZE
            yield codes[:whole]
            waiting, num_waiting = [codes[whole:]], len(codes) - whole
    if num_waiting:
        yield np.concatenate(waiting)


def digests_of_ids(codes: Int64s, splits: SplitIds) -> Iterator[bytes]:
    """Yield the digest of each cell of some codes, the last of which may be cut."""
    if len(splits.names) == 1:
        yield from _digests_of_split(codes, splits.names[0], splits.stop)
        return
    split, ids = splits.split_ids(codes)
    for start in range(0, len(codes), CELL_SIZE):
        cell = slice(start, start + CELL_SIZE)
        present = np.flatnonzero(np.bincount(split[cell])).tolist()
        if len(present) == 1:
            yield from _digests_of_split(ids[cell], splits.names[present[0]], splits.stop)
        else:
            yield _mixed_digest(split[cell], ids[cell], splits, present)


def _digests_of_split(ids: Int64s, name: str, stop: int) -> Iterator[bytes]:
    if stop <= _NARROW or (ids.size and int(ids.max()) < _NARROW):
        yield from _plain_digests(ids.astype("<u4"), name)
        return
    for start in range(0, len(ids), CELL_SIZE):
        cell = ids[start : start + CELL_SIZE]
        narrow = int(cell.max()) < _NARROW
        yield from _plain_digests(cell.astype("<u4" if narrow else "<i8"), name)


def _plain_digests(ids: NDArray[np.uint32] | Int64s, name: str) -> Iterator[bytes]:
    begun = _begun(name, ids.itemsize)
    data = ids.data.cast("B")
    size = CELL_SIZE * ids.itemsize
    for start in range(0, len(data), size):
        state = begun.copy()
        state.update(data[start : start + size])
        yield state.digest()[:DIGEST_BYTES]


@lru_cache(maxsize=1024)
def _begun(name: str, width: int) -> _Hash:
    return hashlib.sha256(f"cell {width} {name}\n".encode("utf-8", "surrogatepass"))


def _mixed_digest(split: Int64s, ids: Int64s, splits: SplitIds, present: list[int]) -> bytes:
    # Named in the order of their names: the same cell whatever order the dataset has.
    by_name = sorted(present, key=splits.names.__getitem__)
    rank = np.zeros(len(splits.names), np.int64)
    rank[by_name] = np.arange(len(by_name))
    names = "".join(f" {splits.names[index]}" for index in by_name)
    state = hashlib.sha256(f"mixed{names}\n".encode("utf-8", "surrogatepass"))
    state.update(rank[split].astype("<u4").tobytes())
    state.update(ids.astype("<i8").tobytes())
    return state.digest()[:DIGEST_BYTES]
