"""Hosts or shards in so few groups that each can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """Values first..last, both included: the least and the largest, their mean, where the largest.

    `argmax` is the index of the first of the largest, counted as `first` is.
    """

    first: int
    last: int
    min: float
    max: float
    mean: float
    argmax: int

    @property
    def count(self) -> int:
        """Number of values."""
        return self.last - self.first + 1


def buckets(
    values: Sequence[float] | NDArray[np.integer] | NDArray[np.floating], most: int
) -> tuple[Bucket, ...]:
    """Return values in order in `most` groups, whose sizes differ by one at most.

    Where there are no more than `most`, each is its own; of none there is no group.

    >>> [(b.first, b.last, b.max, b.argmax) for b in buckets([3, 1, 4, 1, 5], 2)]
    [(0, 1, 3, 0), (2, 4, 5, 4)]
    """
    array = np.asarray(values)
    if not isinstance(values, np.ndarray) and array.dtype != np.int64:
        array = np.array(values, object)  # of Python's numbers none is too large, or made a float
    count = min(most, len(array))
    found = []
    for number in range(count):
        first, stop = len(array) * number // count, len(array) * (number + 1) // count
        part = array[first:stop]
        smallest, largest = part.min(), part.max()
        found.append(
            Bucket(
                first=first,
                last=stop - 1,
                min=smallest.item() if isinstance(smallest, np.generic) else smallest,
                max=largest.item() if isinstance(largest, np.generic) else largest,
                mean=float(part.mean(dtype=np.float64)),
                argmax=first + int(part.argmax()),
            )
        )
    return tuple(found)
