"""Records that fill the last round of the workers, and are dropped; importing this imports Grain."""

from __future__ import annotations

from typing import Any

import grain


class Padding:
    """What lies under the key that no record has."""


class PaddedSource:
    """A data source with one more record behind the last, which is padding."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source) + 1

    def __getitem__(self, key: int) -> Any:
        return Padding() if key == len(self._source) else self._source[key]

    def __repr__(self) -> str:
        """Return what Grain compares when it restores: the name of the source, not its data."""
        source = self._source
        in_memory = isinstance(source, list | tuple) or type(source).__module__ == "numpy"
        return str(type(source)) if in_memory else repr(source)


class DropPadding(grain.transforms.Filter):
    """The operation that drops padding, the first of a loader."""

    def filter(self, element: Any) -> bool:
        """Return whether an element is a record."""
        return not isinstance(element, Padding)
