"""Hosts: which one of how many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from shardctl.base.arguments.checked import checked, keep_fields
from shardctl.base.arguments.kinds import made_kind
from shardctl.base.text import quoted
from shardctl.errors import UsageError
from shardctl.spec.split_range import SplitRange

_MOST = 999_999_999  # as many digits as the form has
_FORM = re.compile(r"(\d{1,9})/(\d{1,9})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """Host `index`, from 0, of `count`.

    >>> Host.parse("2/8")
    Host(index=2, count=8)
    >>> str(Host(index=2, count=8))
    '2/8'
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        if type(self.index) is type(self.count) is int and 0 <= self.index < self.count < _MOST:
            return  # soon, as there may be a million of them
        keep_fields(self)
        if self.count > _MOST:
            raise UsageError(f"{self.count} hosts: at most {_MOST} are counted")
        if self.count < 1:
            raise UsageError(f"{self.count} hosts: at least 1 is needed")
        if not 0 <= self.index < self.count:
            raise UsageError(
                f"host {self.index} of {self.count}: hosts count from 0 to {self.count - 1}"
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @classmethod
    @checked
    def parse(cls, text: str) -> Host:
        """Read `I/N`."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise UsageError(f"host {quoted(text)} is not I/N, as in 0/8 (host 0 of 8)")
        return cls(index=int(match[1]), count=int(match[2]))


def _made_of_text(given: object) -> Host | None:
    if isinstance(given, Host):
        return given
    return Host.parse(given) if isinstance(given, str) else None


HOST = made_kind(_made_of_text, needed='a host as "0/8" or Host(index=0, count=8)', several="hosts")
HostLike = Annotated[Host | str, HOST]


def as_host(given: HostLike) -> Host:
    """Return the host that an argument is, or that a text `I/N` names.

    >>> as_host("1/3") == as_host(Host(index=1, count=3))
    True
    """
    host: Host = HOST.take(given)
    return host


# Even splits: the examples split among hosts as `tfds.even_splits` does.


def even_range(start: int, stop: int, index: int, count: int, drop_remainder: bool) -> range:
    """Return the part of [start, stop) that falls to host `index` of `count`.

    The first `remainder` hosts take one example more; with `drop_remainder` nobody does (TFDS
    core/subsplits_utils.py, _EvenSplit).

    >>> [len(even_range(0, 11, i, 3, False)) for i in range(3)]
    [4, 4, 3]
    >>> [len(even_range(0, 11, i, 3, True)) for i in range(3)]
    [3, 3, 3]
    """
    each, remainder = divmod(stop - start, count)
    first, last = start + each * index, start + each * (index + 1)
    if not drop_remainder:
        first, last = first + min(index, remainder), last + min(index + 1, remainder)
    return range(first, last)


def even_split(
    ranges: Sequence[SplitRange], index: int, count: int, *, drop_remainder: bool = False
) -> tuple[SplitRange, ...]:
    """Return what host `index` of `count` reads; each part of a sum is split by itself."""
    Host(index=index, count=count)  # refuses what is no host
    parts = []
    for piece in ranges:
        part = even_range(piece.start, piece.stop, index, count, drop_remainder)
        parts.append(SplitRange(split=piece.split, start=part.start, stop=part.stop))
    return tuple(parts)
