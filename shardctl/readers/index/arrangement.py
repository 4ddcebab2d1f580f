"""Which split do record files belong to, and in which order, by their names alone?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.files.stores.store import StoredFile


@dataclass(frozen=True, kw_only=True, slots=True)
class ArrangedSplit:
    """The files of a split in shard order, kept as columns where they are many.

    template: how they are named, as TFDS writes templates (`{DATASET}-{SPLIT}.{FILEFORMAT}-
        {SHARD_X_OF_Y}`), None where they follow none.
    """

    name: str
    files: Sequence[StoredFile]
    template: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NameProblem:
    """Shards that are missing between others, or there twice; `text` is one line."""

    kind: str  # "gap", "duplicate", "wrong-count", "mixed"
    split: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrangement:
    """Files as splits, in shard order.

    root: the folder that all paths are below; it is the layout's data_dir.
    file_format: as `FORMATS` names it, None where the names do not tell.
    sidecars: files that are no record files and say something of them (`index.json`, `x.index`).
    ignored: other files of the folders. notes: what a reader of the answer should know.
    """

    root: str
    splits: tuple[ArrangedSplit, ...]
    name: str | None = None
    version: str | None = None
    file_format: str | None = None
    problems: tuple[NameProblem, ...] = ()
    sidecars: Sequence[StoredFile] = ()
    ignored: Sequence[StoredFile] = ()
    notes: tuple[str, ...] = ()
