"""How far a long piece of work is, on a terminal: the one display there is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

_PATIENCE = 0.5  # seconds after which work gets a bar


class ProgressBars:
    """Bars on stderr for work that reports how far it is; gone when the work is done.

    None are shown where stderr is not a terminal, or for work of less than half a second.
    """

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._on_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._start = time.monotonic()

    def __enter__(self) -> ProgressBars:
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
        """Show that `done` of `total` of something are done; one bar for each thing counted."""
        if not self._on_terminal or time.monotonic() - self._start < _PATIENCE:
            return
        if self._progress is None:
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._progress.start()
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)
