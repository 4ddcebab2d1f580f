"""On which versions of a library the rule of its loader is proven.

A version is proven where the rule agreed with it, version by version. Another is not, however near:
Hugging Face's order changed from 5.0 to 5.1 without a word, and gave one host everything from 4.8.0
to 4.8.2 alone. Builds (`2.13.0+cpu`) of a version are that version; pre-releases are their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_NUMBERS = re.compile(r"\d+(\.\d+)*")


@dataclass(frozen=True, kw_only=True)
class VerifiedVersion:
    """A version that `verify` compared with the rule on this machine, all equal.

    rule: the version of the rule (`Loader.rule_version`) that it was compared with.
    beside: the other packages that the order comes from, with their versions then.
    num_settings: how many settings were compared. date: when, as 2026-11-22.
    """

    loader: str
    version: str
    rule: int
    num_settings: int
    date: str
    beside: Mapping[str, str | None] = field(default_factory=dict)


def public_version(version: str) -> str:
    """Return a version without what says how it was built.

    >>> public_version("2.13.0+cpu")
    '2.13.0'
    """
    return version.partition("+")[0]


def release_of(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a release, without zeros at its end; None of a pre-release.

    >>> release_of("5.1.0"), release_of("5.1"), release_of("5.1.0rc1")
    ((5, 1), (5, 1), None)
    """
    if _NUMBERS.fullmatch(public_version(version)) is None:
        return None
    numbers = [int(number) for number in public_version(version).split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def same_version(one: str, other: str) -> bool:
    """Return whether two versions are the same one, `5.1` and `5.1.0+cpu` as well."""
    ours, theirs = release_of(one), release_of(other)
    if ours is None or theirs is None:
        return public_version(one) == public_version(other)
    return ours == theirs


def proven_as(proven: Sequence[str], version: str) -> str | None:
    """Return which of the proven versions one is, None where it is none of them.

    A release line, `4.8`, stands for the newest of its versions that is proven.

    >>> proven_as(("4.8.0", "4.8.5"), "4.8.0+cpu"), proven_as(("4.8.1", "4.8.5"), "4.8")
    ('4.8.0', '4.8.5')
    """
    line = [each for each in proven if each.startswith(f"{version}.")]
    same = [each for each in proven if same_version(each, version)]
    return next(reversed(line or same), None)
