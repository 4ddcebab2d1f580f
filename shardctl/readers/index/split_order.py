"""In which order do splits come that only names of files tell of?"""

from __future__ import annotations

import re

# As most scripts of TFDS list them, and so their metadata; a fingerprint goes by this order.
_USUAL = ("train", "validation", "test")
_ALIASES = {"training": "train", "valid": "validation", "val": "validation", "dev": "validation"}


def usual_place(split: str) -> tuple[int, str, str]:
    """Return what splits are sorted by: train, validation and test first, then by their names.

    `test_matched` stands with `test`. No name of a file tells the order of the metadata.

    >>> sorted(["dev", "test", "extra", "train", "test_2"], key=usual_place)
    ['train', 'dev', 'test', 'test_2', 'extra']
    """
    kind = re.split(r"[^a-z]", split.lower())[0]
    kind = _ALIASES.get(kind, kind)
    place = _USUAL.index(kind) if kind in _USUAL else len(_USUAL)
    return place, kind if place == len(_USUAL) else "", split
