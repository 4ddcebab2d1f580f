"""Quantities as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy is loaded by what has arrays to show
    from shardctl.base.arrays import Int64s

_RANGES = 3  # of numbers that are named
BYTE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_bytes(num_bytes: int) -> str:
    """Return a number of bytes in the largest unit of which there is one or more.

    >>> human_bytes(523), human_bytes(146999114192), human_bytes(2**20 - 1)
    ('523 B', '136.9 GiB', '1.0 MiB')
    """
    if num_bytes < 1024:
        return f"{num_bytes} B"
    amount = num_bytes / 1024
    for unit in BYTE_UNITS[:-1]:
        if amount < 1023.95:  # what rounds to 1024.0 belongs to the next unit
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {BYTE_UNITS[-1]}"


def counts_between(least: int, most: int) -> str:
    """Return a range of counts, or the one that all have.

    >>> counts_between(3, 4000), counts_between(3, 3)
    ('3–4,000', '3')
    """
    return f"{least:,}" if least == most else f"{least:,}–{most:,}"


def number(value: float | None, digits: int = 0) -> str:
    """Return a figure with so many decimals, `-` where there is none.

    >>> number(1234), number(None), number(0.5, 2)
    ('1,234', '-', '0.50')
    """
    return "-" if value is None else f"{value:,.{digits}f}"


def bytes_between(least: int, most: int) -> str:
    """Return a range of sizes, its unit once where both have it; one size where they read alike.

    >>> bytes_between(2_400_000_000, 2_500_000_000), bytes_between(1000, 2000), bytes_between(1, 1)
    ('2.2–2.3 GiB', '1000 B–2.0 KiB', '1 B')
    """
    first, last = human_bytes(least), human_bytes(most)
    if first == last:
        return last
    number, _, unit = first.partition(" ")
    return f"{number}–{last}" if last.endswith(f" {unit}") else f"{first}–{last}"


def numbered(first: int, last: int) -> str:
    """Return a range of hosts, shards or the like, ungrouped.

    >>> numbered(3, 3), numbered(1000, 1999)
    ('3', '1000–1999')
    """
    return f"{first}" if first == last else f"{first}–{last}"


def in_ranges(numbers: Int64s) -> str:
    """Return ascending numbers as ranges, of many the first ones.

    >>> import numpy as np
    >>> in_ranges(np.array([1, 2, 3, 7])), in_ranges(np.array([1, 3, 5, 7, 9]))
    ('1–3, 7', '1, 3, 5, …')
    """
    import numpy as np

    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.append(0, breaks + 1)][: _RANGES + 1].tolist()
    lasts = numbers[np.append(breaks, len(numbers) - 1)][: _RANGES + 1].tolist()
    named = list(starmap(numbered, zip(firsts[:_RANGES], lasts[:_RANGES], strict=True)))
    return ", ".join([*named, "…"] if len(firsts) > _RANGES else named)


def subject(noun: str, numbers: Int64s, verb: str, of_several: str) -> str:
    """Return hosts or shards as the subject of a sentence, many of them by their first ranges.

    >>> import numpy as np
    >>> subject("host", np.array([1, 2, 4]), "is", "are")
    '3 hosts (1–2, 4) are'
    >>> subject("shard", np.array([3]), "is", "are")
    'shard 3 is'
    """
    if len(numbers) == 1:
        return f"{noun} {numbers[0]} {verb}"
    return f"{len(numbers):,} {noun}s ({in_ranges(numbers)}) {of_several}"


def percent_over(part: float) -> str:
    """Return how far something is over what it might be, given as a part of that.

    >>> percent_over(0.0547), percent_over(12.5)
    ('+5.5%', '+1,250.0%')
    """
    return f"+{part * 100:,.1f}%"


def first_few(lines: Sequence[str], keep: int = 5) -> list[str]:
    """Return the first lines, then one that counts the rest.

    >>> first_few(["a", "b", "c", "d"], 2)
    ['a', 'b', 'and 2 more']
    """
    if len(lines) <= keep + 1:
        return list(lines)
    return [*lines[:keep], f"and {len(lines) - keep} more"]
