"""How far a long piece of work is, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardctl.core.read_table import Int64s

_LONG = 50_000_000  # ids from which hashing them takes a good part of a second


def watched(chunks: Iterable[Int64s], num_ids: int) -> Iterator[Int64s]:
    """Yield the chunks of an order, with a bar on stderr where there are many."""
    if num_ids < _LONG or not sys.stderr.isatty():
        yield from chunks
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("ids", total=num_ids)
        for chunk in chunks:
            yield chunk
            progress.advance(task, len(chunk))
