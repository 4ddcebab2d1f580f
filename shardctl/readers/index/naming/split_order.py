"""The files of a split in shard order, and how that differs from the order of their names."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import pairwise

from shardctl.core.text import printable, quoted
from shardctl.files.stores.stored_files import StoredFiles, as_bytes
from shardctl.readers.index.arrangement import NameProblem
from shardctl.readers.index.naming.problems import problems_of, several_writes, why_uncounted
from shardctl.readers.index.naming.shard_sets import ShardSet, ordered
from shardctl.readers.index.naming.split_sets import Folders, SplitSets


class SplitOrder:
    """The files of a split in shard order: sets by their names, each by its numbers.

    Files that nothing counts are in the order of their names by bytes, as are those that several
    numbers tell apart.
    """

    def __init__(self, folders: Folders, split: SplitSets) -> None:
        self._folders = folders
        self._split = split
        self.problems: list[NameProblem] = []
        self.notes: list[str] = []
        numbered = [found for found in split.sets if found.numbers is not None]
        places = array("q")
        for found in sorted(split.sets, key=self._place) if numbered else _one(split.sets):
            order = self._rows(found)
            self._look_at(found, order)
            places.extend(map(found.places.__getitem__, order))
        self.files: StoredFiles = folders.files.chosen(places)
        self._compare_with_names(split.sets)
        if len(split.sets) > 1 and numbered:
            said = folders.said(sorted(split.sets, key=self._place))
            self._note(f"{len(split.sets)} kinds of files, one after the other: {said}")

    def _place(self, found: ShardSet) -> list[tuple[int, int, bytes]]:
        """Return what sets are sorted by: their names, in which 10 comes after 9."""
        pieces = re.split("([0-9]+)", self._folders.below(found) + found.text)
        return [
            (1, int(piece), b"") if at % 2 else (0, 0, as_bytes(piece))
            for at, piece in enumerate(pieces)
        ]

    def _rows(self, found: ShardSet) -> list[int]:
        rows = ordered(self._folders.files, found)
        if several_writes(found) and found.numbers is not None:
            if len(set(found.numbers)) == len(found):
                return rows
            self._note("numbers repeat, as each write has a random word: in the order of the names")
            return sorted(rows, key=lambda row: self._bytes(found, row))
        return rows

    def _bytes(self, found: ShardSet, row: int) -> bytes:
        return as_bytes(self._folders.files.path(found.places[row]))

    def _look_at(self, found: ShardSet, order: list[int]) -> None:
        root = self._folders.root.rstrip("/") + "/"

        def name_of(row: int) -> str:
            return printable(self._folders.files.path(found.places[row]).removeprefix(root), 200)

        self.problems += problems_of(self._split.name, found, order, name_of)
        if found.unclear:
            self._note("several numbers vary in the names: in the order of the names")
        elif (why := why_uncounted(found, order)) is not None:
            self._note(f"{why}, so that nothing tells whether a file is missing")
        elif (
            found.numbers is not None and found.totals is None and (first := min(found.numbers)) > 1
        ):
            self._note(f"the first number is {first:,}")

    def _compare_with_names(self, sets: tuple[ShardSet, ...]) -> None:
        """Note where tf.data, which sorts names by their bytes, has another order."""
        if len(sets) == 1 and sets[0].same_widths:
            return
        for before, after in pairwise(self.files.paths()):
            if as_bytes(before) > as_bytes(after):
                names = [quoted(path.rpartition("/")[2], 100) for path in (before, after)]
                self._note(
                    f"{names[0]} comes before {names[1]}, by their numbers; tf.data's list_files "
                    "and tf.io.gfile.glob sort names as text, the other way round"
                )
                return

    def _note(self, text: str) -> None:
        self.notes.append(f"{printable(self._split.name, 60)}: {text}")


def _one(sets: tuple[ShardSet, ...]) -> Iterator[ShardSet]:
    """Yield sets without numbers as one."""
    whole, *others = sets
    for other in others:
        whole.join(other)
    yield whole
