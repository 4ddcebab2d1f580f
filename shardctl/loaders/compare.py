"""What a real loader hands out beside what is predicted: each example, and each batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, TypeAlias

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.progress import Progress
from shardctl.core.text import counted, printable
from shardctl.errors import ShardctlError
from shardctl.planning.verify import FirstDifference, Source

_UNKNOWN = "another record"

# Makes of indices what tells examples apart, where some have the same contents.
Canonical = Callable[[Int64s], Int64s]


def first_difference(
    order: LoaderOrder,
    pieces: Pieces,
    take: int,
    *,
    read: Source = "index ranges",
    progress: Progress | None = None,
    canonical: Canonical = np.asarray,
) -> FirstDifference | None:
    """Return where a loader first differs from an order in its first `take` positions, else None.

    Batches are compared with their sizes. Of an order that is compared to its end, the loader has
    to end there, too. In the end the pieces are closed, and with them what hands them out. Where a
    loader gives up, that is the difference, with what it says.
    """
    found = _Comparison(order, take, read, canonical)
    try:
        with closing(pieces):
            for sizes, indices in pieces:
                at_most = min(len(indices), take - found.position)
                found.compare(sizes, indices)
                if progress is not None:
                    progress.advance(at_most)
                if found.difference is not None or found.is_over:
                    return found.difference
    except GaveUpError as error:
        return found.given_up(str(error))
    return found.ended()


class _Comparison:
    """How far a loader was compared, and the first difference."""

    def __init__(self, order: LoaderOrder, take: int, read: Source, canonical: Canonical) -> None:
        self._order, self._take, self._read = order, take, read
        self._canonical = canonical
        self._whole = take >= order.num_examples
        self._step = 0
        self.position = 0
        self.difference: FirstDifference | None = None

    @property
    def is_over(self) -> bool:
        """Whether all that is to be compared was; the end of a whole order is waited for."""
        return not self._whole and self.position >= self._take

    def compare(self, sizes: list[int], indices: Int64s) -> None:
        """Compare what the loader hands out next."""
        start, total = self.position, self._order.num_examples
        stop = min(start + len(indices), total if self._whole else self._take)
        expected = self._order.handed_out.indices_at(np.arange(start, stop))
        found = indices[: stop - start]
        differing = np.flatnonzero(self._canonical(expected) != self._canonical(found))
        at = start + int(differing[0]) if len(differing) else None
        wrong_size = self._wrong_size(sizes)
        if at is not None and (wrong_size is None or at < wrong_size[0]):
            self._differs(at, int(expected[at - start]), int(found[at - start]))
        elif wrong_size is not None:
            place, reason = wrong_size
            there = place - start
            self._differs(
                place,
                int(self._order.handed_out.indices_at(np.array([place]))[0])
                if place < total
                else None,
                int(indices[there]) if there < len(indices) else None,
                reason,
            )
        elif self._whole and start + len(indices) > total:
            self._differs(total, None, int(indices[total - start]))
        self.position = start + len(indices)

    def ended(self) -> FirstDifference | None:
        """Return the difference where the loader ended too early, None where it is the end."""
        wanted = min(self._take, self._order.num_examples)
        return None if self.position >= wanted else self.given_up(None)

    def given_up(self, reason: str | None) -> FirstDifference:
        """Return the difference where the loader hands out nothing more."""
        index = None
        if self.position < self._order.num_examples:
            index = int(self._order.handed_out.indices_at(np.array([self.position]))[0])
        self._differs(self.position, index, None, reason)
        assert self.difference is not None
        return self.difference

    def _wrong_size(self, sizes: list[int]) -> tuple[int, str] | None:
        """Return where the first batch of another size than predicted ends, and what is said."""
        batches = self._order.handed_out.batches
        if batches is None:
            return None
        for size in sizes:
            if self._step >= batches.num_batches:
                return None  # beyond the end, as `compare` says
            start, stop = batches.bounds(self._step)
            if not self._whole and start >= self._take:
                return None
            if stop - start != size:
                return start + min(size, stop - start), (
                    f"batch {self._step:,} has {counted(size, 'example')}, and {stop - start:,} "
                    "were predicted"
                )
            self._step += 1
        return None

    def _differs(
        self, position: int, expected: int | None, found: int | None, reason: str | None = None
    ) -> None:
        expected_id, expected_name = self._names(expected)
        found_id, found_name = self._names(found)
        self.difference = FirstDifference(
            position=position,
            expected=expected_id,
            found=found_id,
            expected_tfds_id=expected_name,
            found_tfds_id=found_name,
            read=self._read,
            reason=reason,
        )

    def _names(self, index: int | None) -> tuple[Any, str | None]:
        if index is None:
            return None, None
        order = self._order
        if not 0 <= index < order.asked.num_examples:
            return _UNKNOWN, _UNKNOWN
        codes = order.codes_of(np.array([index]))
        has_files = any(split.files for split in order.dataset.splits)
        name = order.codes.tfds_ids(codes.tolist())[0] if has_files else None
        return order.codes.ids(codes)[0], name


# Batches of a loader, some thousand examples at once: what is compared, and sent.

_AT_ONCE = 4096  # examples

# The sizes of some batches, and the indices of all of them in a row.
Pieces: TypeAlias = Generator[tuple[list[int], Int64s]]


class GaveUpError(Exception):
    """A library raised something in the midst of an order; the text is what it said."""


def in_pieces(batches: Iterator[Int64s]) -> Pieces:
    """Yield batches, many small ones at once; they are closed where this is.

    >>> [sizes for sizes, _ in in_pieces(iter([np.arange(2), np.arange(1)]))]
    [[2, 1]]

    Raises:
        GaveUpError: the library raised an error, after what came before that.
        ShardctlError: what a loader of ours refuses.
    """
    stopped: Exception | None = None
    ended = False
    try:
        while not ended:
            kept: list[Int64s] = []
            num_examples = 0
            try:
                while num_examples < _AT_ONCE and not ended:
                    batch = next(batches, None)
                    if batch is None:
                        ended = True
                    else:
                        kept.append(np.asarray(batch, np.int64).reshape(-1))
                        num_examples += len(kept[-1])
            except Exception as error:  # what came before it is handed out first
                stopped, ended = error, True
            if kept:
                yield [len(batch) for batch in kept], np.concatenate(kept)
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()
    if isinstance(stopped, ShardctlError):
        raise stopped
    if stopped is not None:
        raise GaveUpError(_first_line(stopped)) from stopped


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return printable(lines[0] if lines else type(error).__name__, 300)
