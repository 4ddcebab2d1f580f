"""Records that fill the last round of the workers, and are dropped."""

from __future__ import annotations

from functools import cache
from typing import Any

from shardctl.grain.libraries import grain


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


def drop_padding() -> Any:
    """Return the operation of Grain that drops padding, the first of a loader."""
    return _kind()()


@cache
def _kind() -> type:
    base = grain().transforms.Filter
    return type(base)("DropPadding", (_IsRecord, base), {"__module__": __name__})  # type: ignore[no-any-return]


def __getattr__(name: str) -> type:
    # Worker processes look for the class by its name.
    if name == "DropPadding":
        return _kind()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _IsRecord:
    def filter(self, element: Any) -> bool:
        """Return whether an element is a record."""
        return not isinstance(element, Padding)
