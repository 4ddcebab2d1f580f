"""Sequences whose items are made when they are asked for, so that a long one takes no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")


class OnDemand(Sequence[Item]):
    """A sequence of `size` items; each is made anew whenever it is asked for, and not kept.

    >>> squares = OnDemand(1_000_000, lambda index: index**2)
    >>> len(squares), squares[-1], list(squares[2:4]), OnDemand(2, str) == ["0", "1"]
    (1000000, 999998000001, [4, 9], True)
    """

    __slots__ = ("_make", "_size")

    def __init__(self, size: int, make: Callable[[int], Item]) -> None:
        self._size = size
        self._make = make

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._size))

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        places = range(self._size)[index]
        return self._make(places) if isinstance(places, int) else [self._make(i) for i in places]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list, and as long to compare

    def __repr__(self) -> str:
        return f"<{self._size} items, made on demand>"
