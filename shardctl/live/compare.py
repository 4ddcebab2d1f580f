"""What a real loader hands out beside what is predicted: each example, and each batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, TypeAlias

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.progress import Progress
from shardctl.base.text import counted, printable
from shardctl.errors import ShardctlError
from shardctl.loaders.loader_sequence import Batches
from shardctl.order.loader_order import LoaderOrder
from shardctl.verbs.verify.answer import FirstDifference, Source

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
    handed_out, total = order.handed_out, order.num_examples
    whole, wanted = take >= total, min(take, total)
    position = step = 0

    def differs(at: int, found: int | None = None, reason: str | None = None) -> FirstDifference:
        expected = int(handed_out.indices_at(np.array([at]))[0]) if at < total else None
        (expected_id, expected_name), (found_id, found_name) = (
            _names(order, index) for index in (expected, found)
        )
        return FirstDifference(
            position=at,
            expected=expected_id,
            found=found_id,
            expected_tfds_id=expected_name,
            found_tfds_id=found_name,
            read=read,
            reason=reason,
        )

    try:
        with closing(pieces):
            for sizes, indices in pieces:
                start, stop = position, position + len(indices)
                expected = handed_out.indices_at(np.arange(start, min(stop, wanted)))
                same = canonical(expected) == canonical(indices[: len(expected)])
                # What comes behind the end of the whole differs, too.
                places = [start + int(at) for at in np.flatnonzero(~same)[:1]]
                places += [total] * (whole and stop > total)
                at, reason = min(places, default=None), None
                wrong = _wrong_size(handed_out.batches, step, sizes, total if whole else take)
                if wrong is not None and (at is None or wrong[0] <= at):
                    at, reason = wrong
                if progress is not None:
                    progress.advance(min(stop, take) - start)
                if at is not None:
                    there = at - start
                    found = int(indices[there]) if there < len(indices) else None
                    return differs(at, found, reason)
                position, step = stop, step + len(sizes)
                if not whole and position >= take:
                    return None
    except GaveUpError as error:
        return differs(position, reason=str(error))
    return None if position >= wanted else differs(position)


def _wrong_size(
    batches: Batches | None, step: int, sizes: list[int], stop: int
) -> tuple[int, str] | None:
    """Return where the first batch of another size than predicted ends, and what is said.

    The first of `sizes` is that of batch `step`; those that begin at `stop` or behind do not count.
    """
    for number, size in enumerate(sizes, step) if batches is not None else ():
        if batches is None or number >= batches.num_batches or batches.bounds(number)[0] >= stop:
            return None
        start, end = batches.bounds(number)
        if end - start != size:
            said = f"batch {number:,} has {counted(size, 'example')}, and {end - start:,}"
            return start + min(size, end - start), f"{said} were predicted"
    return None


def _names(order: LoaderOrder, index: int | None) -> tuple[Any, str | None]:
    if index is None:
        return None, None
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
    kept: list[Int64s] = []
    held = 0  # examples

    def piece() -> tuple[list[int], Int64s]:
        made = [len(batch) for batch in kept], np.concatenate(kept)
        kept.clear()
        return made

    try:
        try:
            for batch in batches:
                kept.append(np.asarray(batch, np.int64).reshape(-1))
                held += len(kept[-1])
                if held >= _AT_ONCE:
                    held = 0
                    yield piece()
        except GeneratorExit:
            raise
        except Exception as error:
            if kept:  # what came before it is handed out first
                yield piece()
            if isinstance(error, ShardctlError):
                raise
            raise GaveUpError(_first_line(error)) from error
        if kept:
            yield piece()
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return printable(lines[0] if lines else type(error).__name__, 300)
