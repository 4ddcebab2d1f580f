"""What one example takes in a shuffle buffer."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from fractions import Fraction

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.element_size import TENSOR_OVERHEAD, ElementSize, ExampleSize, element_size

_KNOWN = ExampleSize(num_bytes=792, num_tensors=2)
_PARTLY = ExampleSize(num_bytes=8, num_tensors=3, unknown=("image", "name"))


def _size(
    known: ExampleSize | None, num_bytes: int | None, given: int | None = None
) -> ElementSize | None:
    split = Split(name="train", shard_lengths=(6, 4), num_bytes=num_bytes)
    dataset = Dataset(name="d", splits=(split,), features=None if known is None else lambda: known)
    return element_size(dataset, [split], given)


@pytest.mark.parametrize(
    ("known", "num_bytes", "given", "expected", "basis", "certain"),
    [
        (_KNOWN, 10_000_000, None, 792 + 2 * TENSOR_OVERHEAD, "features", True),
        (_KNOWN, 10_000_000, 500, 500 + 2 * TENSOR_OVERHEAD, "given", True),
        (None, 10_000, 500, 500 + TENSOR_OVERHEAD, "given", True),
        (None, 10_005, None, Fraction(10_005, 10), "stored", False),
        (_PARTLY, 10_000_000, None, 1_000_000, "stored", False),
        (_PARTLY, 100, None, 8 + 3 * TENSOR_OVERHEAD, "features", False),
        (_PARTLY, None, None, 8 + 3 * TENSOR_OVERHEAD, "features", False),
    ],
)
def test_the_best_that_is_known_counts(
    known: ExampleSize | None,
    num_bytes: int | None,
    given: int | None,
    expected: Fraction | int,
    basis: str,
    certain: bool,
) -> None:
    size = _size(known, num_bytes, given)
    assert size is not None
    assert size.num_bytes == expected
    assert size.basis == basis
    assert size.certain == certain
    assert size.unknown == (() if known is None or given is not None else known.unknown)


@pytest.mark.parametrize("num_bytes", [None, 0])
def test_nothing_is_known_without_features_and_bytes(num_bytes: int | None) -> None:
    assert _size(None, num_bytes) is None


def test_bytes_and_examples_are_each_others_inverse() -> None:
    size = ElementSize(num_bytes=Fraction(10, 3), basis="stored")
    for number in range(1, 200):
        assert size.of(number) == -(-10 * number // 3)
        assert size.fits(size.of(number)) == number
        assert size.fits(number) == 3 * number // 10


_REAL = """
import tensorflow as tf

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))

def iterate(num_examples):
    examples = tf.data.Dataset.range(10**9).map(
        lambda i: {"image": tf.fill([28, 28, 1], tf.cast(i % 256, tf.uint8)), "label": i}
    )
    iterator = iter(examples.shuffle(num_examples, seed=1))
    next(iterator)
    return iterator

iterate(2000)
before = resident()
held = iterate(30_000)
print((resident() - before) / 30_000)
"""


@pytest.mark.fuzz
@pytest.mark.tensorflow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_real_buffer_takes_about_as_much() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_REAL)], capture_output=True, text=True, check=True
    )
    size = _size(_KNOWN, None)
    assert size is not None
    assert float(ran.stdout) == pytest.approx(float(size.num_bytes), rel=0.2)
