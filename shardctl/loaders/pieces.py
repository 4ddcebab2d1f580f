"""Batches of a loader, some thousand examples at once: what is compared, and sent."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.text import printable
from shardctl.errors import ShardctlError

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
