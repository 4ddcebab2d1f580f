"""Tickets: one int64 that says which reader an example comes from, in which reading, and where.

Nodes of a pipeline pass them on as they are. So an example is known by how it was read, and what
it is called is looked up at the end, for all of a reading at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.arrays import Int64s
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

_BITS = 63
_ENDLESS = 42  # bits for the positions of a reading without end


@dataclass(frozen=True, kw_only=True)
class Tickets:
    """How the bits of the tickets of one reader are shared out.

    reader, reader_bits: its number among all, in the topmost bits, and how many those are.
    position_bits: for the position in a reading, in the lowest; the number of the reading is
        between the two.

    >>> tickets = Tickets.of(size=1000, reader=1, num_readers=2)
    >>> made = tickets.first(3) + 41
    >>> tickets.position(made), tickets.reading(made), tickets.readers(made)
    (41, 3, 1)
    """

    reader: int
    reader_bits: int
    position_bits: int

    @classmethod
    def of(cls, *, size: int | None, reader: int, num_readers: int) -> Tickets:
        """Return those of a reader of `size` examples, None where they have no end."""
        return cls(
            reader=reader,
            reader_bits=(num_readers - 1).bit_length(),
            position_bits=_ENDLESS if size is None else max(size - 1, 0).bit_length(),
        )

    @property
    def _reading_bits(self) -> int:
        return max(_BITS - self.reader_bits - self.position_bits, 0)

    def first(self, reading: int) -> int:
        """Return the ticket at position 0 of a reading.

        Raises:
            UsageError: there are more readings than tickets can tell apart.
        """
        if reading >> self._reading_bits:
            raise UsageError(
                phrase(
                    "a pipeline that reads a dataset {:,} times and more is not followed; repeat "
                    "it less often",
                    reading,
                )
            )
        return (self.reader << (_BITS - self.reader_bits)) + (reading << self.position_bits)

    def position(self, tickets: Int64s) -> Int64s:
        """Return the positions in their readings, int64[q]."""
        return tickets & ((1 << self.position_bits) - 1)

    def reading(self, tickets: Int64s) -> Int64s:
        """Return the numbers of the readings, int64[q]."""
        return (tickets >> self.position_bits) & ((1 << self._reading_bits) - 1)

    def readers(self, tickets: Int64s) -> Int64s:
        """Return the number of the reader of each, int64[q]; also of tickets of the others."""
        return tickets >> (_BITS - self.reader_bits)
