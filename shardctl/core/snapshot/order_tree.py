"""The hash tree over an order, and the digests of a part of it, in any version of the digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.order.order import Order
from shardctl.core.snapshot.hash_tree import CELL_SIZE, NEWEST, HashTree, digest


def _ignore(count: int) -> None:
    """Take a report that nobody wants."""


def tree_of(
    order: Order,
    splits: SplitIds,
    *,
    version: int = NEWEST,
    advance: Callable[[int], None] = _ignore,
) -> HashTree:
    """Return the hash tree over an order; `advance` is told how many positions are done.

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.core.instructions.split_range import SplitRange
    >>> from shardctl.core.order.reader_order import ReaderOrder
    >>> from shardctl.core.settings.read_settings import ReadSettings
    >>> train = Split.even(name="train", num_examples=5000, num_shards=3)
    >>> dataset = Dataset(name="d", splits=(train,))
    >>> order = ReaderOrder(dataset, [SplitRange(split=train, start=0, stop=5000)], ReadSettings())
    >>> tree = tree_of(order, SplitIds.of(dataset, ["train"]))
    >>> tree.version, len(tree.leaves)
    (2, 2)
    """

    def reported() -> Iterator[Int64s]:
        for codes in order.chunks(0, order.num_examples):
            yield codes
            advance(len(codes))

    cells = digests_of(reported(), splits, version=version)
    return HashTree.of_cells(cells, num_examples=order.num_examples, version=version)


# The digest of a cell: which examples are at 4,096 positions, whatever the layout of the dataset.
#
# It is over the split's name and the ids, little endian, in 4 bytes where all of the cell fit;
# where the splits of a cell differ, over their names, the index of the name at each position, and
# the ids in 8 bytes. That is version 1. In version 2 a cell of one split whose ids count on one by
# one, in at most a third as many runs as positions, none of which begins with an id from 2**51 on,
# is told by its first id and then the place and the first id of every other run, in 8 bytes each.

_NARROW = 1 << 32  # ids below this are hashed as 4 bytes
_PLACE_BITS = (CELL_SIZE - 1).bit_length()
_MAX_ID = 1 << 63 - _PLACE_BITS  # of a run, so that its place and its first id fit an int64
_FEWER = 3  # times as many positions as runs


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitIds:
    """The splits that an order reads: from its codes to splits and ids.

    `names` are in the dataset's order; the codes of each begin where those of the one before it
    end (see `ExampleCodes`), at `starts` (int64[s]).
    """

    names: tuple[str, ...]
    starts: Int64s

    @classmethod
    def of(cls, dataset: Dataset, names: Iterable[str]) -> SplitIds:
        """Return those of a dataset's splits that are named."""
        wanted = set(names)
        read = [split for split in dataset.splits if split.name in wanted]
        ends = np.cumsum([0, *(split.num_examples for split in read)], dtype=np.int64)
        return cls(names=tuple(split.name for split in read), starts=ends[:-1])

    def split_ids(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (index in `names`, id), int64[q] each."""
        if len(self.names) == 1:
            return np.broadcast_to(np.int64(0), codes.shape), codes
        # Of splits that begin at the same code the last is the one that is not empty.
        split = np.searchsorted(self.starts, codes, side="right") - 1
        return split, codes - self.starts[split]


def digests_of(
    chunks: Iterable[Int64s], splits: SplitIds, *, version: int = NEWEST
) -> Iterator[bytes]:
    """Yield the digest of each cell of an order, from its codes in pieces of any size.

    >>> splits = SplitIds(names=("train",), starts=np.array([0]))
    >>> first = list(digests_of([np.arange(9)], splits))
    >>> first == list(digests_of([np.arange(4), np.arange(4, 9)], splits)), len(first[0])
    (True, 16)
    """
    for codes in whole_cells(chunks):
        split, ids = splits.split_ids(codes)
        for start in range(0, len(codes), CELL_SIZE):
            cell = slice(start, start + CELL_SIZE)
            yield _digest(split[cell], ids[cell], splits.names, version)


def whole_cells(chunks: Iterable[Int64s]) -> Iterator[Int64s]:
    """Yield codes that come in pieces of any size as whole cells; the last one may be cut.

    >>> [len(codes) for codes in whole_cells([np.arange(5), np.arange(8000), np.arange(4)])]
    [4096, 3913]
    """
    rest = np.empty(0, np.int64)
    for chunk in chunks:
        codes = np.concatenate([rest, chunk]) if len(rest) else chunk
        whole = len(codes) - len(codes) % CELL_SIZE
        if whole:
            yield codes[:whole]
        rest = codes[whole:]
    if len(rest):
        yield rest


def _digest(split: Int64s, ids: Int64s, names: tuple[str, ...], version: int) -> bytes:
    if len(names) > 1 and (split != split[0]).any():
        # Named in the order of their names: the same cell whatever order the dataset has.
        by_name = sorted(set(split.tolist()), key=names.__getitem__)
        rank = np.zeros(len(names), "<u4")
        rank[by_name] = np.arange(len(by_name))
        said = " ".join(["mixed", *map(names.__getitem__, by_name)])
        return _hashed(said, rank[split].tobytes() + ids.astype("<i8").tobytes())
    name = names[split[0]]
    begins = np.flatnonzero(ids[1:] - ids[:-1] != 1) + 1 if version > 1 else ids
    if _FEWER * (len(begins) + 1) <= len(ids):
        firsts = ids[begins]
        if max(ids[0], firsts.max(initial=0)) < _MAX_ID:
            runs = np.append(ids[:1], (firsts << _PLACE_BITS) + begins)
            return _hashed(f"runs {len(ids)} {name}", runs.astype("<i8").tobytes())
    column = ids.astype("<u4" if ids.max() < _NARROW else "<i8")
    return _hashed(f"cell {column.itemsize} {name}", column.tobytes())


def _hashed(said: str, data: bytes) -> bytes:
    return digest(f"{said}\n".encode("utf-8", "surrogatepass") + data)
