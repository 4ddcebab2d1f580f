"""Which files of an archive make a sample, by their names.

Source: webdataset 1.0.2, tariterators.py, tar_file_iterator and group_by_keys.
"""

from __future__ import annotations

import re

from shardctl.core.text import quoted

_META = re.compile(r"__[^/]*__($|/)")
_KEY_AND_SUFFIX = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
_OWN = ("__key__", "__url__")  # what a sample holds besides its files


class Samples:
    """How many samples the files make that were added in the order of the archive.

    A sample is a run of files with one key, that is the name up to the first dot behind the last
    slash; the suffix behind it names a field. Names without a suffix, hidden files among them, and
    those between double underscores belong to none, and end none.

    >>> samples = Samples()
    >>> for name in ("a/0.jpg", "a/0.cls", "a/1.jpg", "README", "a/1.cls", "a/0.txt"):
    ...     samples.add(name, 1)
    >>> samples.num_samples
    3

    is_part: whether the file that was added last belongs to a sample.
    """

    def __init__(self) -> None:
        self.num_samples = 0
        self.key: str | None = None
        self.is_part = False
        self._suffixes: set[str] = set()
        self._is_bad = False

    def add(self, name: str, size: int) -> str | None:
        """Add a file; return why WebDataset refuses it, None where it does not."""
        self.is_part = False
        if name.startswith("__") and _META.match(name):
            return None
        found = _KEY_AND_SUFFIX.match(name)
        if found is None:
            return None
        self.is_part = True
        key, suffix = found.groups()
        suffix = suffix.lower()
        if key != self.key:
            self.num_samples += 1
            self.key, self._suffixes, self._is_bad = key, set(), False
        if suffix in self._suffixes or suffix in _OWN:
            return f"{quoted(name, 100)}: sample {quoted(key, 100)} has {quoted(suffix, 40)} twice"
        self._suffixes.add(suffix)
        if suffix == "__bad__" and size:  # a sample that says so is handed to nobody
            self._is_bad = True
            self.num_samples -= 1
        return None

    def without_last(self) -> int:
        """Return how many there are without that of the last file, which is not whole."""
        return self.num_samples - (self.is_part and not self._is_bad)
