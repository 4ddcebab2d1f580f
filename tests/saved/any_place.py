"""A document with one value, anywhere in it, changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Place = tuple[Any, ...]
# What no place of a saved document takes, whichever type is right there.
NOWHERE: tuple[Any, ...] = ({"no": 0.5}, [[0.5]])


def places_of(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the keys that lead to each value within a document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*place, key)
        if isinstance(inner, dict | list | tuple):
            yield from places_of(inner, (*place, key))


def with_value(document: Any, place: Place | str, value: object) -> dict[str, Any]:
    """Return a copy with another value at a place, which may be said as keys parted by blanks."""
    if isinstance(place, str):
        place = tuple(int(key) if key.isdigit() else key for key in place.split())
    changed: dict[str, Any] = copy.deepcopy(document)
    holder: Any = changed
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return changed
