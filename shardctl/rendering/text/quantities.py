"""Quantities as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_bytes(num_bytes: int) -> str:
    """Return a number of bytes in the largest unit of which there is one or more.

    >>> human_bytes(523), human_bytes(146999114192), human_bytes(2**20 - 1)
    ('523 B', '136.9 GiB', '1.0 MiB')
    """
    if num_bytes < 1024:
        return f"{num_bytes} B"
    amount = num_bytes / 1024
    for unit in _UNITS[:-1]:
        if amount < 1023.95:  # what rounds to 1024.0 belongs to the next unit
            return f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {_UNITS[-1]}"


def short_count(count: float) -> str:
    """Return a number in few letters, three digits of a large one.

    >>> short_count(1281167), short_count(60000), short_count(512), short_count(0.12345)
    ('1.28 M', '60,000', '512', '0.123')
    >>> short_count(999_999), short_count(10**9), short_count(-2.5e15), short_count(0.00001)
    ('1 M', '1 G', '-2,500 T', '1e-05')
    """
    size = abs(count)
    if size < 99_999.5:
        whole = size >= 1000 or count == round(count)
        return f"{count:,.0f}" if whole else f"{count:.3g}"
    amount = count
    for letter in "kMGT":
        amount /= 1000
        if abs(amount) < 999.5:
            return f"{float(f'{amount:.3g}'):,g} {letter}"
    return f"{amount:,.0f} T"


def first_and_last(numbers: Sequence[int], keep: int | None) -> str:
    """Return numbers in words, ungrouped, since commas divide them; of many, `keep` of the ends.

    >>> first_and_last([1, 2, 4], 6), first_and_last(range(1, 12), 6)
    ('1, 2, 4', '1, 2, 3, 4, … 10, 11')
    >>> first_and_last(range(1, 12), None)
    '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11'
    """
    if keep is None or len(numbers) <= keep + 1:
        return ", ".join(map(str, numbers))
    tail = keep // 3
    first = ", ".join(map(str, numbers[: keep - tail]))
    last = ", ".join(map(str, numbers[len(numbers) - tail :]))
    return f"{first}, … {last}"


def first_few(lines: Sequence[str], keep: int = 5) -> list[str]:
    """Return the first lines, then one that counts the rest.

    >>> first_few(["a", "b", "c", "d"], 2)
    ['a', 'b', 'and 2 more']
    """
    if len(lines) <= keep + 1:
        return list(lines)
    return [*lines[:keep], f"and {len(lines) - keep} more"]
