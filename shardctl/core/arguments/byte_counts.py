"""Numbers of bytes as people write them: 8GiB, 500 MB, 4096."""

from __future__ import annotations

import re
from fractions import Fraction

from shardctl.core.arguments.values import whole_number
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.IGNORECASE)
_LETTERS = ("k", "m", "g", "t", "p", "e")
_UNITS = {
    "": 1,
    "b": 1,
    **{letter: 1024**power for power, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}i": 1024**power for power, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate(_LETTERS, 1)},
    **{f"{letter}b": 1000**power for power, letter in enumerate(_LETTERS, 1)},
}
_RULE = "a number of bytes is needed, as 8GiB, 500MB or 4096"


def byte_count(value: object) -> int:
    """Return how many bytes a value says: a whole number, or a text with a unit.

    KiB, MiB, GiB and so on are powers of 1024, and so is a letter alone, as in `free -h` and
    Kubernetes' `Gi`; KB, MB, GB are powers of 1000. A part of a byte is dropped.

    >>> byte_count("8GiB"), byte_count("1.5 kB"), byte_count(4096)
    (8589934592, 1500, 4096)

    Raises:
        UsageError: it says none, or fewer than 1 or more than an int64 holds.
    """
    if not isinstance(value, str):
        number = whole_number(value)
    else:
        found = _NUMBER.fullmatch(value.strip())
        if found is None or found[2].lower() not in _UNITS or len(value) > 100:
            raise UsageError(_RULE)
        amount = Fraction(re.sub("[_,]", "", found[1]))
        number = int(amount * _UNITS[found[2].lower()])
    if not 1 <= number <= INT64_MAX:
        raise UsageError(_RULE)
    return number
