"""Digests of the cells of an order by its runs: where ids count on, only their firsts are hashed.

A cell of one split is cut into runs of ids that count on one by one, as long as can be. Where it
has at most a third as many runs as positions, and no run begins with an id from 2**51 on, its
digest is over its first id and then the place and the first id of every other run, in 8 bytes each,
little endian; any other cell is as `cells` has it. Both depend on nothing but the split's name and
the id at each position, so that equal orders have equal digests however they were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.runs import Runs
from shardctl.core.snapshot.cells import SplitIds, digests_of_ids, whole_cells
from shardctl.core.snapshot.hash_tree import CELL_SIZE, DIGEST_BYTES

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
                yield from _digests(starts, here[starts], 0, len(here), splits)
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
    """Yield the digest of each cell of an order, from its runs, which are as long as can be."""
    rest: Runs | None = None  # what begins the next cell
    for piece in runs:
        firsts, lengths = piece
        if rest is not None:
            firsts, lengths = np.concatenate([rest[0], firsts]), np.concatenate([rest[1], lengths])
        ends = np.cumsum(lengths)
        starts, size = ends - lengths, int(ends[-1])
        whole = size - size % CELL_SIZE
        for begin in range(0, whole, _AT_ONCE):  # a run may be as long as the order
            yield from _digests(starts, firsts, begin, min(begin + _AT_ONCE, whole), splits)
        left = int(ends.searchsorted(whole, "right"))
        rest = firsts[left:].copy(), lengths[left:].copy()
        if whole < size:
            skipped = whole - starts[left]
            rest[0][0] += skipped
            rest[1][0] -= skipped
    if rest is not None and len(rest[0]):
        firsts, lengths = rest
        ends = np.cumsum(lengths)
        yield from _digests(ends - lengths, firsts, 0, int(ends[-1]), splits)


def _digests(
    starts: Int64s, firsts: Int64s, begin: int, end: int, splits: SplitIds
) -> Iterator[bytes]:
    """Yield the digests of the cells at positions [begin, end), from where runs start on.

    `begin` is where a cell begins; runs go as far as `end` at least.
    """
    borders = np.arange(begin, end, CELL_SIZE)
    # The runs that begin within each cell, behind its first position.
    low = starts.searchsorted(borders, "right")
    high = np.append(low[1:], starts.searchsorted(end, "left"))
    high[:-1] -= starts[high[:-1] - 1] == borders[1:]
    heads = firsts[low - 1] + borders - starts[low - 1]
    by_runs = _FEWER * (high - low + 1) <= np.minimum(end - borders, CELL_SIZE)
    inner = slice(low[0], high[-1])
    split, head_ids = splits.split_ids(heads)
    ids = firsts[inner]
    if len(splits.names) > 1:
        _, ids = splits.split_ids(ids)
        ends = np.append(borders[1:], end)
        tails = firsts[high - 1] + ends - 1 - starts[high - 1]
        lasts = firsts[:-1] + np.diff(starts) - 1  # of runs that end within the cell
        for ufunc, codes, of, to, other in (
            (np.minimum, firsts, low, high, heads),
            (np.maximum, lasts, low - 1, high - 1, tails),
        ):
            by_runs &= splits.split_ids(_reduced(ufunc, codes, of, to, other))[0] == split
    if splits.stop > _MAX_ID:
        most = _reduced(np.maximum, ids, low - low[0], high - low[0], head_ids)
        by_runs &= most < _MAX_ID
    runs = ids << _PLACE_BITS
    runs += starts[inner] & (CELL_SIZE - 1)
    for kind, first, stop in _alike(np.where(by_runs, split, -1).tolist()):
        cells = slice(first, stop)
        if kind < 0:
            until = int(min(begin + stop * CELL_SIZE, end))
            yield from digests_of_ids(_codes(starts, firsts, int(borders[first]), until), splits)
        else:
            bounds = low[cells] - low[0], high[cells] - low[0]
            last_size = int(min(end - borders[stop - 1], CELL_SIZE))
            yield from _hashed(head_ids[cells], runs, bounds, last_size, splits.names[kind])


def _reduced(ufunc: np.ufunc, values: Int64s, low: Int64s, high: Int64s, other: Int64s) -> Int64s:
    """Return the least, or the most, of `other` and of values [low, high), for each cell."""
    bounds = np.stack([low, high], axis=1).ravel()
    found = ufunc.reduceat(np.append(values, 0), bounds)[::2]  # of no values it is one
    reduced: Int64s = np.where(low < high, ufunc(found, other), other)
    return reduced


def _codes(starts: Int64s, firsts: Int64s, begin: int, end: int) -> Int64s:
    """Return the codes at positions [begin, end) of runs."""
    first = int(starts.searchsorted(begin, "right")) - 1
    runs = slice(first, int(starts.searchsorted(end, "left")))
    lengths = np.diff(starts[runs], append=end)
    lengths[0] -= begin - starts[first]
    codes: Int64s = np.repeat(firsts[runs] - starts[runs], lengths)
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
