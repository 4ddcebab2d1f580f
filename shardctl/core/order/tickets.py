"""Tickets: one int64 that says which reader an example comes from, in which reading, and where.

Nodes of a pipeline pass them on as they are. So an example is known by how it was read, and what
it is called is looked up at the end, for all of a reading at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.core.arrays import Int64s
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

_BITS = 63
_ENDLESS = 40  # bits for the positions of a reading without end


@dataclass(frozen=True, kw_only=True)
class Tickets:
    """How the bits of the tickets of one reader are shared out; the reader is in the topmost.

    reader, reader_bits: its number among all, and the bits that those take.
    position_bits: for the position in a reading.
    reading_bits: for the number of the reading.
    again_bits: for how often a cache handed it out again.

    >>> tickets = Tickets.of(size=1000, reader=1, num_readers=2)
    >>> made = tickets.first(3) + 41
    >>> tickets.position(made), tickets.reading(made), tickets.again(tickets.handed_again(made, 2))
    (41, 3, 2)
    """

    reader: int
    reader_bits: int
    position_bits: int
    reading_bits: int
    again_bits: int

    @classmethod
    def of(cls, *, size: int | None, reader: int, num_readers: int) -> Tickets:
        """Return those of a reader of `size` examples, None where they have no end."""
        reader_bits = (num_readers - 1).bit_length()
        position_bits = _ENDLESS if size is None else max(size - 1, 0).bit_length()
        left = _BITS - reader_bits - position_bits
        return cls(
            reader=reader,
            reader_bits=reader_bits,
            position_bits=position_bits,
            reading_bits=max(left - left // 2, 0),
            again_bits=max(left // 2, 0),
        )

    def first(self, reading: int) -> int:
        """Return the ticket at position 0 of a reading.

        Raises:
            UsageError: there are more readings than tickets can tell apart.
        """
        if reading >> self.reading_bits:
            raise _too_many("readings", reading)
        return (self.reader << (_BITS - self.reader_bits)) + (reading << self.position_bits)

    def handed_again(self, tickets: Int64s, times: int) -> Int64s:
        """Return the tickets of what a cache hands out `times` times more; below 0 undoes it.

        Raises:
            UsageError: it does so more often than tickets can tell apart.
        """
        if abs(times) >> self.again_bits:
            raise _too_many("passes of a cache", times)
        return tickets + (times << (self.position_bits + self.reading_bits))

    def position(self, tickets: Int64s) -> Int64s:
        """Return the positions in their readings, int64[q]."""
        return tickets & ((1 << self.position_bits) - 1)

    def reading(self, tickets: Int64s) -> Int64s:
        """Return the numbers of the readings, int64[q]."""
        return (tickets >> self.position_bits) & ((1 << self.reading_bits) - 1)

    def again(self, tickets: Int64s) -> Int64s:
        """Return how often each was handed out again, int64[q]."""
        return (tickets >> (self.position_bits + self.reading_bits)) & ((1 << self.again_bits) - 1)

    def readers(self, tickets: Int64s) -> Int64s:
        """Return the number of the reader of each, int64[q]; also of tickets of the others."""
        return tickets >> (_BITS - self.reader_bits)


def tickets_of(sizes: Sequence[int | None]) -> list[Tickets]:
    """Return the tickets of readers of so many examples each, None for one without end."""
    return [
        Tickets.of(size=size, reader=reader, num_readers=len(sizes))
        for reader, size in enumerate(sizes)
    ]


def _too_many(what: str, number: int) -> UsageError:
    return UsageError(
        phrase("{:,} {} of one dataset are more than are told apart; take a shorter part", number,
               what)
    )
