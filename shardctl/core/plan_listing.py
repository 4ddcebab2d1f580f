"""What a plan file lists: which stretch of which file is read, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class ListedRead(NamedTuple):
    """Skip `skip` examples of a file of a split, then take `take`."""

    split: str
    filename: str
    skip: int
    take: int


@dataclass(frozen=True, kw_only=True)
class ListedPlan:
    """One plan of a file: `title` is its spec, with its host where it has one."""

    title: str
    reads: tuple[ListedRead, ...]


@dataclass(frozen=True, kw_only=True)
class PlanListing:
    """The plans in a file of kind `plan` or `resume`; `dataset` is its head as it stands there."""

    kind: str
    dataset: dict[str, object]
    plans: tuple[ListedPlan, ...]
