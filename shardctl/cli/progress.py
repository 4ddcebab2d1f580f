"""How far a long piece of work is, on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from shardctl.core.arrays import Int64s

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


_PATIENCE = 0.5  # seconds after which work gets a bar


class Bar:
    """A bar on stderr, on a terminal alone, for work that says how far it is; with an estimate."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._start = time.monotonic()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` of something are done."""
        if self._progress is None:
            if not sys.stderr.isatty() or time.monotonic() - self._start < _PATIENCE:
                return
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._progress.start()
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)
