"""The sets of files that make up a split, before they are put in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shardctl.core.phrase import Argument, Phrase, phrase
from shardctl.core.text import choices, counted
from shardctl.files.stores.stored_files import StoredFiles
from shardctl.readers.index.naming.shapes import NUMBER, RANDOM
from shardctl.readers.index.naming.shard_sets import ShardSet
from shardctl.readers.index.naming.split_words import NamedSplit
from shardctl.readers.records.read_file import format_of_name

_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class SplitSets:
    """A split, and the sets of shards that it is made of; more than one where the user says so.

    named: what the names say, None where the user named the split, or nothing does.
    """

    name: str
    sets: tuple[ShardSet, ...]
    named: NamedSplit | None = None

    @property
    def dataset(self) -> str | None:
        """The dataset's name as TFDS's template says it, None elsewhere."""
        return None if self.named is None else self.named.dataset


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The files whose names are read, and the folder that all of them are below."""

    files: StoredFiles
    root: str

    def below(self, found: ShardSet) -> str:
        """Return the folder of a set below the root, the slash at its end; "" for the root."""
        return self.files.folder(found.folder).removeprefix(self.root.rstrip("/") + "/")

    def glob(self, found: ShardSet) -> str:
        """Return a glob of the files of a set, below the root."""
        return self.below(found) + _glob(min(found.texts, key=len))

    def file_formats(self, found: ShardSet) -> dict[str | None, str]:
        """Return the formats that the names of a set tell, with a glob; None for no format."""
        globs: dict[str | None, str] = {}
        for text in sorted(found.texts):
            name = re.sub(f"[{NUMBER}{RANDOM}]", "0", text)
            globs.setdefault(format_of_name(name), self.below(found) + _glob(text))
        return globs

    def said(self, sets: Iterable[ShardSet]) -> str:
        """Return sets as messages list them."""
        listed = (f"{self.glob(found)} ({counted(len(found), 'file')})" for found in sets)
        return choices(listed, _SHOWN)

    def way_out(self, sets: Iterable[ShardSet]) -> Phrase:
        """Return how to say by hand which files are which split."""
        globs = [self.glob(found) for found in sets][:2]
        names = ("NAME", "OTHER")
        argument = Argument("split", dict(zip(names, globs, strict=False)))
        return phrase("say which files are which split: {}", argument)


def _glob(text: str) -> str:
    """Return the glob of names: what a glob would take for something else is in brackets."""
    return re.sub(f"[{NUMBER}{RANDOM}]", "*", re.sub(r"[*?\[]", r"[\g<0>]", text))
