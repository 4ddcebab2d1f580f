"""Real elements, compared component by component, and the examples that they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardctl.tfds.imports import tensorflow

Component = tuple[Any, ...]  # what it is equal by: kind, shape and bytes


@dataclass(frozen=True, kw_only=True)
class Rows:
    """An element, taken apart into its components, and where it is a batch into rows.

    kept: which of the components count, None for all.
    """

    components: tuple[Any, ...]

    @classmethod
    def of(cls, element: Any, kept: frozenset[int] | None = None) -> Rows:
        """Return the components of an element as TensorFlow hands it out, eager."""
        parts = tensorflow().nest.flatten(element, expand_composites=True)
        values = [part.numpy() if hasattr(part, "numpy") else part for part in parts]
        return cls(
            components=tuple(
                np.asarray(value)
                for index, value in enumerate(values)
                if kept is None or index in kept
            )
        )

    @property
    def key(self) -> Component:
        """What two elements are alike by."""
        return tuple(map(_key, self.components))

    def rows(self, width: int) -> list[Component]:
        """Return the keys of the examples of a batch of `width`, or of the element as one."""
        if all(part.ndim and len(part) == width for part in self.components):
            return [tuple(_key(part[row]) for part in self.components) for row in range(width)]
        return [self.key]

    @property
    def num_rows(self) -> int:
        """How many rows all components have, 1 where they differ."""
        lengths = {len(part) if part.ndim else -1 for part in self.components}
        return max(1, lengths.pop()) if len(lengths) == 1 else 1

    def __len__(self) -> int:
        return len(self.components)


def _key(value: Any) -> Any:
    value = np.asarray(value)
    if value.dtype == object:
        return value.shape, tuple(value.ravel().tolist())
    return value.dtype.str, value.shape, value.tobytes()


def steady_components(elements: Any, most: int) -> tuple[frozenset[int], int]:
    """Return which components of the first elements are the same in two runs, and how many are."""
    steady: set[int] | None = None
    count = 0
    for one, two in zip(_first(elements, most), _first(elements, most), strict=True):
        count = len(one)
        same = {
            index
            for index, parts in enumerate(zip(one.components, two.components, strict=True))
            if _key(parts[0]) == _key(parts[1])
        }
        steady = same if steady is None else steady & same
    return frozenset(steady or ()), count


def _first(elements: Any, most: int) -> Iterator[Rows]:
    return (Rows.of(element) for element in elements.take(most))
