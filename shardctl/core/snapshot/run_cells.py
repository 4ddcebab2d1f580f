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
from itertools import chain, groupby

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
