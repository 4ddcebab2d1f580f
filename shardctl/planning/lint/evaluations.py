"""Which specs are read for an evaluation, by the names of splits and files."""

from __future__ import annotations

import re
from pathlib import PurePath

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.subsplit import Resolved

# Splits that nobody trains on, by how their names begin; files, by a word of their names.
_EVALUATION = ("test", "val", "dev", "eval")
_WORDS = re.compile(r"(?<![a-z])(tests?|val|valid|validation|dev|eval|evaluation)(?![a-z])")


def is_evaluation(resolved: Resolved) -> bool:
    """Whether a spec reads only what is called as what nobody trains on."""
    return all(_names_evaluation(resolved.dataset, piece.split) for piece in resolved.ranges)


def _names_evaluation(dataset: Dataset, split: Split) -> bool:
    """Whether a split is called as what nobody trains on; of files that a script names, those."""
    if split.name.lower().startswith(_EVALUATION):
        return True
    if not dataset.is_counted or "train" in split.name.lower():
        return False
    folder = PurePath(dataset.data_dir or "").name
    names = [name.lower() for name in split.filenames]
    if any(map(_WORDS.search, names)):
        return all(map(_WORDS.search, names))
    return _WORDS.search(folder.lower()) is not None and not any("train" in name for name in names)
