"""Sequences whose items are made when they are asked for, so that a long one takes no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")
Other = TypeVar("Other")


class OnDemand(Sequence[Item]):
    """A sequence of `size` items; each is made anew whenever it is asked for, and not kept.

    `make_all` makes them one after the other, where that is quicker than one by one.

    >>> squares = OnDemand(1_000_000, lambda index: index**2)
    >>> len(squares), squares[-1], list(squares[2:4]), OnDemand(2, str) == ["0", "1"]
    (1000000, 999998000001, [4, 9], True)
    """

    __slots__ = ("_make", "_make_all", "_size")

    def __init__(
        self,
        size: int,
        make: Callable[[int], Item],
        make_all: Callable[[], Iterator[Item]] | None = None,
    ) -> None:
        self._size = size
        self._make = make
        self._make_all = make_all

    def map(self, function: Callable[[Item], Other]) -> OnDemand[Other]:
        """Return the sequence of what a function makes of each item.

        >>> list(OnDemand(3, str).map(len))
        [1, 1, 1]
        """
        return OnDemand(self._size, lambda i: function(self._make(i)), lambda: map(function, self))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._size)) if self._make_all is None else self._make_all()

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

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[list[Item]]]:
        return tuple, (list(self),)  # another process gets the items, not what makes them

    def __deepcopy__(self, memo: object) -> OnDemand[Item]:
        return self  # nothing in it can be changed

    def __copy__(self) -> OnDemand[Item]:
        return self

    def __repr__(self) -> str:
        return f"<{self._size} items, made on demand>"
