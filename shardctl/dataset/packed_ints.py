"""Whole numbers held in eight bytes each, for splits of ten million shards."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from shardctl.base.arrays import Int64s

_FEW = 1 << 14  # up to so many cost less than importing NumPy


class PackedInts(Sequence[int]):
    """A tuple of int64 in all but memory: equal to a tuple of the same numbers, and never changed.

    A tuple takes 40 bytes for a number; iterating makes one int at a time. NumPy sees the numbers
    without a copy, and is only imported where it does.

    >>> PackedInts([3, 4, 3])[1:], PackedInts([3, 4]) == (3, 4), PackedInts([]).int64s().tolist()
    ((4, 3), True, [])

    Raises:
        OverflowError: a number is not an int64.
    """

    __slots__ = ("_packed",)

    def __init__(self, values: Iterable[int]) -> None:
        # Of an array its values are copied as they lie in memory.
        self._packed = array("q", values)

    @classmethod
    def of(cls, values: Sequence[int]) -> PackedInts:
        """Return a sequence packed, itself where it is."""
        return values if isinstance(values, cls) else cls(values)

    @classmethod
    def of_int64s(cls, values: Int64s) -> PackedInts:
        """Return the numbers of int64[n], copied."""
        packed = cls(())
        packed._packed.frombytes(values.astype("=i8", order="C", copy=False).view("u1").data)
        return packed

    def int64s(self) -> Int64s:
        """Return the numbers as int64[n] that cannot be written to, without a copy."""
        import numpy as np

        if not self._packed:  # an empty buffer has no address
            return np.empty(0, np.int64)
        values: Int64s = np.frombuffer(self._packed, np.int64)
        values.setflags(write=False)
        return values

    def sums(self) -> PackedInts:
        """Return 0 and the sum up to each number; no sum may be beyond int64.

        >>> PackedInts([3, 4]).sums()
        (0, 3, 7)
        """
        if len(self) < _FEW:
            return PackedInts(accumulate(self._packed, initial=0))
        sums = array("q", bytes(8 * (len(self) + 1)))
        import numpy as np

        np.cumsum(self.int64s(), out=np.frombuffer(sums, np.int64)[1:])
        packed = PackedInts(())
        packed._packed = sums
        return packed

    def total(self) -> int:
        """Return the sum, however large it is.

        >>> PackedInts([2**62, 2**62]).total() == 2**63, PackedInts([]).total()
        (True, 0)
        """
        if len(self) >= _FEW:
            values = self.int64s()
            if max(-int(values.min()), int(values.max())) < (1 << 62) // len(self):
                return int(values.sum())
        return sum(self._packed)

    def least(self) -> int:
        """Return the least number; there must be one."""
        return int(self.int64s().min()) if len(self) >= _FEW else min(self._packed)

    def little_endian(self) -> memoryview:
        """Return the numbers as 8 bytes each, the least significant first on every machine."""
        packed = self._packed
        if sys.byteorder == "big":
            packed = packed[:]
            packed.byteswap()
        return memoryview(packed)

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> PackedInts: ...
    def __getitem__(self, index: int | slice) -> int | PackedInts:
        found = self._packed[index]
        return found if isinstance(found, int) else PackedInts(found)

    def __add__(self, other: Sequence[int]) -> PackedInts:
        return PackedInts(chain(self, other))

    def __radd__(self, other: Sequence[int]) -> PackedInts:
        return PackedInts(chain(other, self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedInts):
            return self._packed == other._packed
        if isinstance(other, tuple):
            return len(self) == len(other) and all(map(int.__eq__, self._packed, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._packed))  # that of the tuple it is equal to

    def __repr__(self) -> str:
        return repr(tuple(self._packed))

    def count(self, value: object) -> int:
        """Return how often a number is there."""
        return self._packed.count(value)  # type: ignore[arg-type]  # any object is compared
