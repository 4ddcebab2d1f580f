"""How far a long piece of work is: what the work reports, and what those who show it take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Watch = Callable[[str, int, int], None]  # what is counted, how much of it is done, and of how much

_Piece = TypeVar("_Piece")


class Progress:
    """How much of a piece of work is done; what is done twice counts once."""

    def __init__(self, watch: Watch | None, what: str, total: int) -> None:
        self._watch = watch
        self._what = what
        self._total = total
        self._done = 0

    def advance(self, count: int) -> None:
        """Note that so much more is done.

        >>> Progress(lambda *report: print(report), "files", 2).advance(3)
        ('files', 2, 2)
        """
        self._done = min(self._done + count, self._total)
        if self._watch is not None:
            self._watch(self._what, self._done, self._total)

    def over(self, pieces: Iterable[_Piece], size: Callable[[_Piece], int]) -> Iterator[_Piece]:
        """Yield the pieces of the work, each of which is done when the next is asked for."""
        for piece in pieces:
            yield piece
            self.advance(size(piece))
