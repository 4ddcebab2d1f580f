"""The interleave over shards that are listed again and again, answered far from its start.

The slots run on over the borders of the lists, so that nothing but the state of all slots says how
a list is read. Shards that take as many visits each come to an end together, C after C: there the
interleave is as it was at the start, and a window of the endless list reads like a list of its
own. Where their visits differ, the state is carried from window to window, which takes a step of a
heap a shard.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.interleave import Interleave
from shardctl.core.interleave.schedule import opening_keys
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.errors import UsageError

# Each shard that is opened takes about a microsecond and 200 bytes.
MAX_OPENED = 1 << 24  # shards of one window
_OPENED = 1 << 15  # shards of a window, where it need not have more
_OPENINGS_PER_SECOND = 2_000_000
_KEPT = 2  # windows
_FREE = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """A list of shards whose fresh interleave reads the positions [start, stop) of an endless one.

    `rows` (int64[k]) says which shard each entry is, `skips` (int64[c], c <= k) how much of the
    first ones was read before; 0 of those that open here. `num_opened` counts the openings before
    the first round of the window.
    """

    start: int
    stop: int
    rows: Int64s
    skips: Int64s
    num_opened: int
    interleave: Interleave


@dataclass(frozen=True, kw_only=True, eq=False)
class _State:
    """What is in the slots at the start of a round, `_FREE` in those that open a shard then.

    rows, skips: int64[C].
    """

    start: int
    num_opened: int
    rows: Int64s
    skips: Int64s


class EndlessInterleave:
    """The interleave of shards that repeat without end, in windows that are made when asked for.

    lengths: int64[n], what each shard yields; not all of them nothing.
    openings: the shards in the order in which these repetitions open them, int64[n a repetition].
    end: no position from there on is asked for.

    >>> endless = EndlessInterleave(
    ...     np.array([3, 2]), lambda repetitions: np.tile([0, 1], len(repetitions)),
    ...     cycle_length=2, block_length=2)
    >>> window = endless.window(10**12)
    >>> shards, offsets = window.interleave.locate(np.arange(5) + 10**12 - window.start)
    >>> list(zip(window.rows[shards].tolist(), offsets.tolist()))
    [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]
    """

    def __init__(
        self,
        lengths: Int64s,
        openings: Callable[[range], Int64s],
        *,
        cycle_length: int,
        block_length: int,
        end: int = 1 << 62,
    ) -> None:
        # So many repetitions yield all that is asked for in the first round: more slots are idle.
        in_first_round = int(np.minimum(lengths, block_length).sum())
        cycle_length = min(cycle_length, -(-end // in_first_round) * len(lengths))
        if cycle_length > MAX_OPENED // 4:
            raise UsageError(
                phrase("{cycle=}: more than {} open files", MAX_OPENED // 4, cycle=cycle_length)
            )
        self._lengths = lengths
        self._openings = openings
        self._cycle_length = cycle_length
        self._block_length = block_length
        self._total = int(lengths.sum())
        visits = lengths // block_length
        self._is_even = bool((visits == visits[0]).all())
        count = len(lengths)
        opened = min(_OPENED, (end // self._total + 1) * count)
        if self._is_even:  # whole turns of the slots
            self._size = -(-max(opened, count) // cycle_length) * cycle_length
        else:  # whole repetitions, and a few turns of the slots
            self._size = -(-max(opened, 4 * cycle_length) // count) * count
        nothing = np.full(cycle_length, _FREE)
        first = _State(start=0, num_opened=0, rows=nothing, skips=np.zeros_like(nothing))
        self._states, self._starts = [first], [0]
        self._windows: dict[int, Window] = {}

    def window(self, position: int) -> Window:
        """Return the window that a position is in."""
        return self._made(self._index_of(position))

    def windows(self, start: int, stop: int) -> Iterator[Window]:
        """Yield the windows that cover [start, stop), one after the other."""
        while start < stop:
            window = self.window(start)
            yield window
            start = window.stop

    def listed(self, start: int, stop: int) -> Window:
        """Return one window of all positions [start, stop], with what is open at the first of them.

        Raises:
            UsageError: more than `MAX_OPENED` shards are opened there.
        """
        first, last = self._index_of(start), self._index_of(stop)
        if not self._is_even:
            # A round later every slot shows what it holds, whatever was open before the window.
            first = max(0, first - 1)
        if last - first > max(1, MAX_OPENED // self._size):
            raise UsageError(
                phrase(
                    "{repeat_files=True}: {} examples take {} files, more than {}; "
                    "ask for fewer {epochs}",
                    stop - start,
                    (last - first) * self._size,
                    MAX_OPENED,
                )
            )
        return self._made_of(first, last + 1)

    def _index_of(self, position: int) -> int:
        """Return which window a position is in."""
        if self._is_even:
            index = position // self._total * len(self._lengths) // self._size
            # A window is no shorter than a repetition, whose lengths may differ.
            return index if position < self._made(index).stop else index + 1
        if position >= self._starts[-1]:
            left = (position - self._starts[-1]) // self._total * len(self._lengths)
            progress = Progress(
                None,
                "openings of files",
                left,
                per_second=_OPENINGS_PER_SECOND,
                instead=phrase("ask for fewer {epochs}"),
            )
            while position >= self._starts[-1]:
                self._carry_on()
                progress.advance(self._size)
        return bisect_right(self._starts, position) - 1

    def _made(self, index: int) -> Window:
        window = self._windows.pop(index, None)
        if window is None:
            while len(self._windows) >= _KEPT:
                del self._windows[next(iter(self._windows))]
            window = self._made_of(index, index + 1)
        self._windows[index] = window
        return window

    def _made_of(self, first: int, stop: int) -> Window:
        """Return the windows [first, stop) as one."""
        rows, before = self._rows(first * self._size, stop * self._size)
        if self._is_even:
            lengths, start, skips = self._lengths[rows], before, rows[:0]
            num_opened = first * self._size
            end = start + int(lengths.sum())
        else:
            while len(self._states) <= stop:
                self._carry_on()
            state = self._states[first]
            rows, skips, lengths = self._behind(state, rows)
            start, num_opened = state.start, state.num_opened
            end = self._starts[stop]
        lengths.setflags(write=False)
        interleave = Interleave(
            lengths, cycle_length=self._cycle_length, block_length=self._block_length
        )
        return Window(
            start=start,
            stop=end,
            rows=rows,
            skips=skips,
            num_opened=num_opened,
            interleave=interleave,
        )

    def _rows(self, start: int, stop: int) -> tuple[Int64s, int]:
        """Return the shards of the openings [start, stop), and what all before them yield."""
        count = len(self._lengths)
        first, skipped = divmod(start, count)
        rows = self._openings(range(first, -(-stop // count)))
        before = first * self._total + int(self._lengths[rows[:skipped]].sum())
        return rows[skipped:][: stop - start], before

    def _behind(self, state: _State, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return the rows that follow what is in the slots behind that, the skips, the lengths."""
        held, free = state.rows.copy(), np.flatnonzero(state.rows == _FREE)
        held[free] = rows[: len(free)]
        rows = np.concatenate([held, rows[len(free) :]])
        lengths = self._lengths[rows]
        lengths[: len(held)] -= state.skips
        return rows, state.skips, lengths

    def _carry_on(self) -> None:
        """Find the state of the slots after one more window."""
        index, state = len(self._states) - 1, self._states[-1]
        rows, _ = self._rows(index * self._size, (index + 1) * self._size)
        rows, skips, lengths = self._behind(state, rows)
        block_length = self._block_length
        keys, _ = opening_keys(lengths, block_length, list(range(self._cycle_length)))
        # The window ends where the round begins in which its last shard is opened. What is in a
        # slot then was opened there last: several writes to one place leave the last of them.
        rounds, slots = np.divmod(keys, self._cycle_length)
        held = np.zeros(self._cycle_length, np.int64)
        held[slots] = np.arange(len(rows))
        blocks = rounds[-1] - rounds[held]
        read = blocks * block_length
        is_free = blocks > lengths[held] // block_length
        left = np.where(is_free, 0, lengths[held] - read)
        old = np.flatnonzero(held < len(skips))
        read[old] += skips[held[old]]
        opens_now = np.count_nonzero(rounds == rounds[-1])
        self._states.append(
            _State(
                start=state.start + int(lengths.sum()) - int(left.sum()),
                num_opened=(index + 1) * self._size - int(opens_now),
                rows=np.where(is_free, _FREE, rows[held]),
                skips=np.where(is_free, 0, read),
            )
        )
        self._starts.append(self._states[-1].start)
