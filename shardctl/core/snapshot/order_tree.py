"""The hash tree over an order, and the digests of a part of it, in any version of the digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import chain, groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.interleave.runs import Runs
from shardctl.core.order.order import Order
from shardctl.core.snapshot.hash_tree import CELL_SIZE, DIGEST_BYTES, NEWEST, HashTree

if TYPE_CHECKING:
    from hashlib import _Hash


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
    cells = cells_of(order, 0, order.num_examples, splits, version=version, advance=advance)
    return HashTree.of_cells(cells, num_examples=order.num_examples, version=version)


def cells_of(
    order: Order,
    start: int,
    stop: int,
    splits: SplitIds,
    *,
    version: int = NEWEST,
    advance: Callable[[int], None] = _ignore,
) -> Iterator[bytes]:
    """Yield the digests of the cells of an order at [start, stop); a cell begins at `start`."""
    if version == 1 or not order.has_long_runs:
        return digests_of(_told(order.chunks(start, stop), advance), splits, version=version)
    return digests_of_runs(_told_runs(order.visits(start, stop), advance), splits)


def digests_of(chunks: Iterable[Int64s], splits: SplitIds, *, version: int) -> Iterator[bytes]:
    """Yield the digests of the cells of an order, from its codes in pieces of any size."""
    return (cell_digests if version == 1 else digests_of_codes)(chunks, splits)


def _told(chunks: Iterable[Int64s], advance: Callable[[int], None]) -> Iterator[Int64s]:
    for chunk in chunks:
        yield chunk
        advance(len(chunk))


def _told_runs(runs: Iterable[Runs], advance: Callable[[int], None]) -> Iterator[Runs]:
    for piece in runs:
        yield piece
        advance(int(piece[1].sum()))


# Digests of the cells of an order by its runs: where ids count on, only their firsts are hashed.
#
# A cell of one split is cut into runs of ids that count on one by one, as long as can be. Where it
# has at most a third as many runs as positions, and no run begins with an id from 2**51 on, its
# digest is over its first id and then the place and the first id of every other run, in 8 bytes
# each, little endian; any other cell is as `cells` has it. Both depend on nothing but the split's
# name and the id at each position, so that equal orders have equal digests however they were made.

_PLACE_BITS = (CELL_SIZE - 1).bit_length()
_MAX_ID = 1 << 63 - _PLACE_BITS  # of a run, so that its place and its first id fit an int64
_FEWER = 3  # times as many positions as runs, so that runs are the shorter text
_AT_ONCE = 1 << 24  # positions of long runs that are cut into cells at once


def digests_of_codes(chunks: Iterable[Int64s], splits: SplitIds) -> Iterator[bytes]:
    """Yield the digest of each cell of an order, from its codes in pieces of any size.

    >>> splits = SplitIds(names=("train",), starts=np.array([0]), stop=9)
    >>> found = list(digests_of_codes([np.array([3, 4, 5, 6, 0])], splits))
    >>> found == list(digests_of_runs([(np.array([3, 0]), np.array([4, 1]))], splits))
    True
    """
    for codes in whole_cells(chunks):
        begins = [_begins(codes[c : c + CELL_SIZE]) for c in range(0, len(codes), CELL_SIZE)]
        for is_few, first, last in _alike([found is not None for found in begins]):
            here = codes[first * CELL_SIZE : last * CELL_SIZE]
            if is_few:
                of_cells = [found for found in begins[first:last] if found is not None]
                starts = np.concatenate([begin + c * CELL_SIZE for c, begin in enumerate(of_cells)])
                yield from _digests(starts, here[starts] - starts, 0, len(here), splits)
            else:
                yield from digests_of_ids(here, splits)


def _begins(cell: Int64s) -> Int64s | None:
    """Return where runs begin in a cell, None where they are too many."""
    most = len(cell) // _FEWER
    part = cell[: most + 64]  # of a shuffle it tells
    if np.count_nonzero(part[1:] - part[:-1] != 1) >= most:
        return None
    changes = np.ones(len(cell), np.bool_)
    np.not_equal(cell[1:] - cell[:-1], 1, out=changes[1:])
    begins = np.flatnonzero(changes)
    return begins if len(begins) <= most else None


def digests_of_runs(runs: Iterable[Runs], splits: SplitIds) -> Iterator[bytes]:
    """Yield the digest of each cell of an order, from its runs, cut in any places."""
    return chain.from_iterable(_in_pieces(runs, splits))


def _in_pieces(runs: Iterable[Runs], splits: SplitIds) -> Iterator[list[bytes]]:
    rest: Runs | None = None  # what begins the next cell
    for piece in runs:
        firsts, lengths = (
            piece if rest is None else map(np.concatenate, zip(rest, piece, strict=True))
        )
        starts = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        size = int(starts[-1])
        starts = starts[:-1]
        offsets = firsts - starts
        goes_on = offsets[1:] == offsets[:-1]  # with the run before it
        if goes_on.any():
            begins = np.append(True, ~goes_on)
            starts, offsets = starts[begins], offsets[begins]
        whole = size - size % CELL_SIZE
        for begin in range(0, whole, _AT_ONCE):  # a run may be as long as the order
            yield _digests(starts, offsets, begin, min(begin + _AT_ONCE, whole), splits)
        rest = None
        if whole < size:
            left = int(starts.searchsorted(whole, "right")) - 1
            cut = np.append(starts[left:], size)
            cut[0] = whole
            rest = cut[:-1] + offsets[left:], np.diff(cut)
    if rest is not None:
        ends = np.cumsum(rest[1])
        starts = ends - rest[1]
        yield _digests(starts, rest[0] - starts, 0, int(ends[-1]), splits)


def _digests(
    starts: Int64s, offsets: Int64s, begin: int, end: int, splits: SplitIds
) -> list[bytes]:
    """Return the digests of the cells at positions [begin, end), from where runs start on.

    The code at each position of a run is the position and its offset. `begin` is where a cell
    begins; runs are as long as can be and go as far as `end` at least.
    """
    borders = np.arange(begin, end, CELL_SIZE)
    # The runs that begin within each cell, behind its first position.
    low = starts.searchsorted(borders, "right")
    high = np.append(low[1:], starts.searchsorted(end, "left"))
    high[:-1] -= starts[high[:-1] - 1] == borders[1:]
    heads = borders + offsets[low - 1]
    by_runs = _FEWER * (high - low + 1) <= np.minimum(end - borders, CELL_SIZE)
    first, last = int(low[0]), int(high[-1])
    bounds = low - first, high - first
    codes = starts[first:last] + offsets[first:last]
    split, head_ids = splits.split_ids(heads)
    ids = codes
    if len(splits.names) > 1:
        _, ids = splits.split_ids(codes)
        tails = np.append(borders[1:], end) - 1 + offsets[high - 1]
        ends = starts[first:last] - 1 + offsets[first - 1 : last - 1]  # of the runs before those
        for ufunc, values, other in (
            (np.minimum, codes, heads),
            (np.maximum, ends, tails),
        ):
            by_runs &= splits.split_ids(_reduced(ufunc, values, *bounds, other))[0] == split
    if splits.stop > _MAX_ID:
        by_runs &= _reduced(np.maximum, ids, *bounds, head_ids) < _MAX_ID
    runs = ids << _PLACE_BITS
    runs += starts[first:last] & (CELL_SIZE - 1)
    found: list[bytes] = []
    for kind, start, stop in _alike(np.where(by_runs, split, -1).tolist()):
        cells = slice(start, stop)
        if kind < 0:
            until = int(min(begin + stop * CELL_SIZE, end))
            found += digests_of_ids(_codes(starts, offsets, int(borders[start]), until), splits)
        else:
            last_size = int(min(end - borders[stop - 1], CELL_SIZE))
            of_cells = bounds[0][cells], bounds[1][cells]
            found += _hashed(head_ids[cells], runs, of_cells, last_size, splits.names[kind])
    return found


def _reduced(ufunc: np.ufunc, values: Int64s, low: Int64s, high: Int64s, other: Int64s) -> Int64s:
    """Return the least, or the most, of `other` and of values [low, high), for each cell."""
    bounds = np.stack([low, high], axis=1).ravel()
    found = ufunc.reduceat(np.append(values, 0), bounds)[::2]  # of no values it is one
    reduced: Int64s = np.where(low < high, ufunc(found, other), other)
    return reduced


def _codes(starts: Int64s, offsets: Int64s, begin: int, end: int) -> Int64s:
    """Return the codes at positions [begin, end) of runs."""
    first = int(starts.searchsorted(begin, "right")) - 1
    runs = slice(first, int(starts.searchsorted(end, "left")))
    lengths = np.diff(starts[runs], append=end)
    lengths[0] -= begin - starts[first]
    codes: Int64s = np.repeat(offsets[runs], lengths)
    codes += np.arange(begin, end)
    return codes


def _hashed(
    heads: Int64s, runs: Int64s, bounds: tuple[Int64s, Int64s], last_size: int, name: str
) -> list[bytes]:
    """Return the digests of cells of one split, a first id and runs each; the last may be cut."""
    head_data = heads.astype("<i8", copy=False).data.cast("B")
    data = runs.astype("<i8", copy=False).data.cast("B")
    begun, last_begun = (
        sha256(f"runs {size} {name}\n".encode("utf-8", "surrogatepass"))
        for size in (CELL_SIZE, last_size)
    )
    found = []
    last = 8 * (len(heads) - 1)
    for cell, low, high in zip(
        range(0, last + 8, 8), (8 * bounds[0]).tolist(), (8 * bounds[1]).tolist(), strict=True
    ):
        state = begun.copy() if cell < last else last_begun
        state.update(head_data[cell : cell + 8])
        state.update(data[low:high])
        found.append(state.digest()[:DIGEST_BYTES])
    return found


def _alike(kinds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (kind, first, stop) of the cells in a row that are of one kind.

    >>> list(_alike([7, 7, -1]))
    [(7, 0, 2), (-1, 2, 3)]
    """
    first = 0
    for kind, group in groupby(kinds):
        stop = first + sum(1 for _ in group)
        yield kind, first, stop
        first = stop


# Digests of the cells of an order, id by id: which examples are at 4,096 positions.
#
# Version 1 has every cell so; version 2 those whose ids hardly count on, see `run_cells`.

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
