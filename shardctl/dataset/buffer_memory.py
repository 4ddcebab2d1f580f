"""How many bytes an example takes in a shuffle buffer, which holds decoded examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from shardctl.dataset.dataset import Dataset, Split

# What a tensor takes in a buffer beside its values: the object, its shape, its allocation. Measured
# as the resident memory of `ds.shuffle` with TensorFlow 2.21 on Linux, 100,000 to 200,000 elements
# of 1 to 4 tensors of 8 to 784 bytes, numbers and texts: 130 to 235 bytes a tensor.
TENSOR_OVERHEAD = 200

Basis = Literal["given", "features", "stored"]


@dataclass(frozen=True, kw_only=True)
class ElementSize:
    """The bytes of an example in a shuffle buffer.

    basis: "given" by the user; from the shapes and dtypes of its "features"; or as the examples are
        "stored" on average, which is not what decoded ones take: images take several times as much.
    unknown: features whose bytes differ from example to example, none where all are fixed.
    overhead: what of the bytes is TensorFlow's and not the example's.
    """

    num_bytes: Fraction
    basis: Basis
    unknown: tuple[str, ...] = ()
    overhead: int = 0

    @property
    def certain(self) -> bool:
        """Whether this is what examples take, and not only what is known of it."""
        return self.basis == "given" or (self.basis == "features" and not self.unknown)

    def of(self, num_examples: int) -> int:
        """Return the bytes of a buffer of so many examples."""
        return math.ceil(self.num_bytes * num_examples)

    def fits(self, num_bytes: int) -> int:
        """Return how many examples fit into so many bytes."""
        return int(num_bytes / self.num_bytes)


def element_size(
    dataset: Dataset, splits: Sequence[Split], example_bytes: int | None = None
) -> ElementSize | None:
    """Return what an example of some splits takes in a buffer, None where nothing is known of it.

    What the user says comes first; then the features of the dataset, where all are of fixed size;
    then the mean size as stored. `example_bytes` is without TensorFlow's overhead.

    >>> split = Split(name="train", shard_lengths=(4,), num_bytes=10)
    >>> element_size(Dataset(name="d", splits=(split,)), [split]).of(2)
    5
    """
    known = dataset.example_size
    overhead = TENSOR_OVERHEAD * (1 if known is None else max(1, known.num_tensors))
    if example_bytes is not None:
        size = Fraction(example_bytes + overhead)
        return ElementSize(num_bytes=size, basis="given", overhead=overhead)
    unknown = () if known is None else known.unknown
    stored = None if known is not None and not unknown else _stored(splits)
    # Features of unknown size, such as images, are counted with their least size only: the mean
    # size as stored is the better bound where it is larger.
    if known is None or (stored is not None and stored > known.num_bytes + overhead):
        if stored is None:
            return None
        return ElementSize(num_bytes=stored, basis="stored", unknown=unknown)
    size = Fraction(known.num_bytes + overhead)
    return ElementSize(num_bytes=size, basis="features", unknown=unknown, overhead=overhead)


def _stored(splits: Sequence[Split]) -> Fraction | None:
    num_bytes = [split.num_bytes for split in splits]
    num_examples = sum(split.num_examples for split in splits)
    if not num_examples or None in num_bytes:
        return None
    total = sum(size or 0 for size in num_bytes)
    return Fraction(total, num_examples) if total else None
