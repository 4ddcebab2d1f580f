"""The files that a plan file names, before its dataset is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.core.arrays import Int64s


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedFiles:
    """The file of each instruction of a plan file, as it is written there.

    `lengths` (int64[n]) are the examples in each file. `shards` (int64[n]) are their indices in
    their splits, None where no two files of a split have the same base name.
    """

    split_names: tuple[str, ...]
    names: Sequence[str]
    lengths: Int64s
    shards: Int64s | None = None
