"""The files that a plan file names, before its dataset is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.core.arrays import Int64s, run_of


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

    def names_at(self, places: Int64s) -> list[str]:
        """Return the names at places in any order; those of places one by one are quick."""
        run = run_of(places)
        if run is None:
            return [self.names[place] for place in places.tolist()]
        return list(self.names[run])
