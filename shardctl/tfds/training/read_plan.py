"""In which batches a source is read, and which of its elements come out after each of them.

A source is read in its own order, as tf.data reads files quickest; its elements are wanted in that
of the pipeline. What is read before its turn is kept in a table until then, as a shuffle keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.order.order import NONE


class Opening(NamedTuple):
    """A source is opened at the element `key`, and read up to `stop`; nothing where they are equal.

    After its last batch comes an empty one.
    """

    key: int
    stop: int


class Step(NamedTuple):
    """What becomes of one batch.

    Elements are numbered as they are read, those of the batch from `first` on.

    keys: the elements of the batch. num_kept: how many go into the table, all or none. yielded: the
    numbers of what comes out of the table then, in order. gone: of what leaves it before.
    num_direct: 1 if the batch comes out as it is, past the table.
    """

    keys: Int64s
    first: int
    num_kept: int
    yielded: Int64s
    gone: Int64s
    num_direct: int


@dataclass(kw_only=True, eq=False)
class ReadPlan:
    """How one source is read, planned for a stretch of the order at a time.

    size: elements in a batch. end: up to where an opening at a key reads. What is read in a stretch
    and wanted in neither that nor the next one is dropped; if it is wanted later, the source is
    opened again.
    """

    size: int
    end: Callable[[int], int]
    _at: int = field(init=False, default=0)  # what is open is read from here ..
    _stop: int = field(init=False, default=0)  # .. to here
    _is_open: bool = field(init=False, default=False)  # its last, empty batch is still to come
    _num_read: int = field(init=False, default=0)
    # The table: keys, ascending, and their numbers.
    _held: Int64s = field(init=False, default_factory=lambda: NONE)
    _numbers: Int64s = field(init=False, default_factory=lambda: NONE)
    _gone: Int64s = field(init=False, default_factory=lambda: NONE)

    def events(self, stretches: Iterable[Int64s]) -> Iterator[Opening | Step]:
        """Yield what is done for the keys that are wanted, in order, stretch by stretch."""
        wanted: Int64s | None = None
        for later in chain(stretches, [NONE]):
            if wanted is not None and len(wanted):
                yield from self._stretch(wanted, later)
            wanted = later

    def _stretch(self, wanted: Int64s, later: Int64s) -> Iterator[Opening | Step]:
        # Each key once, with how often it is wanted.
        every, counts = np.unique(np.concatenate([wanted, later]), return_counts=True)
        openings, batches = self._batches(np.setdiff1d(wanted, self._held))
        yield from openings
        first, sizes = self._num_read, np.array([stop - at for at, stop in batches])
        read = np.concatenate([np.arange(*batch) for batch in batches])
        self._num_read += len(read)
        # The batch that each element is read in, and how often it is wanted.
        batch_of = np.repeat(np.arange(len(batches)), sizes)
        place = np.minimum(np.searchsorted(every, read), len(every) - 1)
        uses = np.where(every[place] == read, counts[place], 0)
        # A stretch that opens a source twice may read an element twice: the first one counts.
        fresh = np.zeros(len(read), bool)
        fresh[np.unique(read, return_index=True)[1]] = True
        fresh &= (uses > 0) & ~np.isin(read, self._held)
        table = np.concatenate([self._held, read[fresh]])
        numbers = np.concatenate([self._numbers, first + np.flatnonzero(fresh)])
        since = np.concatenate([np.zeros(len(self._held), np.int64), batch_of[fresh]])
        by_key = np.argsort(table)
        table, numbers, since = table[by_key], numbers[by_key], since[by_key]
        where = np.searchsorted(table, wanted)
        yielded = numbers[where]
        # What is wanted waits for all that comes before it.
        after = np.maximum.accumulate(since[where])
        bounds = np.searchsorted(after, np.arange(len(batches) + 1))
        # The last use of each in this stretch; of equal indices the last assignment counts.
        last = np.zeros(len(table), np.int64)
        last[where] = after
        still = np.isin(table, later)
        done = np.flatnonzero(~still)
        done = done[np.argsort(last[done], kind="stable")]
        gone_bounds = np.searchsorted(last[done], np.arange(len(batches) + 1))
        start = 0
        for index, size in enumerate(sizes.tolist()):
            here, number = slice(start, start + size), first + start
            out = yielded[bounds[index] : bounds[index + 1]]
            is_direct = bool(
                size
                and len(out) == size
                and (uses[here] == 1).all()
                and (out == np.arange(number, number + size)).all()
            )
            is_kept = not is_direct and bool(fresh[here].any())
            yield Step(
                keys=read[here],
                first=number,
                num_kept=size * is_kept,
                yielded=NONE if is_direct else out,
                gone=self._gone,
                num_direct=int(is_direct),
            )
            self._gone = numbers[done[gone_bounds[index] : gone_bounds[index + 1]]]
            if is_kept:
                # What nobody wants was in the batch, too.
                unwanted = number + np.flatnonzero(~fresh[here])
                self._gone = np.concatenate([self._gone, unwanted])
            start += size
        self._held, self._numbers = table[still], numbers[still]

    def _batches(self, needed: Int64s) -> tuple[list[Opening], list[tuple[int, int]]]:
        """Return what is opened so that these keys (ascending) are read, and [start, stop) of each
        batch, at least one."""
        openings: list[Opening] = []
        batches: list[tuple[int, int]] = []

        def opened(key: int, stop: int) -> None:
            openings.append(Opening(key=key, stop=stop))
            self._at, self._stop, self._is_open = key, stop, True

        def read_to(until: int) -> None:
            while self._at < until:
                stop = min(self._at + self.size, self._stop)
                batches.append((self._at, stop))
                self._at = stop
            if self._is_open and self._at == self._stop:
                batches.append((self._at, self._at))
                self._is_open = False

        while len(needed):
            is_ahead = (needed >= self._at) & (needed < self._stop)
            if is_ahead.any():
                read_to(int(needed[is_ahead][-1]) + 1)
                needed = needed[~is_ahead]
            else:
                # What is open ends first; whatever it still has is not wanted.
                read_to(self._stop)
                key = int(needed[0])
                opened(key, self.end(key))
        if not batches:
            # All is in the table. A batch gives the occasion for it to come out.
            if not self._is_open:
                opened(self._at, self._at)
            read_to(min(self._at + 1, self._stop))
        return openings, batches
