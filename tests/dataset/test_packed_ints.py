"""Packed ints are a tuple in all but memory."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from shardctl.dataset.shard_files import PackedInts


def test_they_are_equal_to_a_tuple_of_the_same_numbers_and_hash_as_it() -> None:
    packed = PackedInts([3, 4, -5])
    assert packed == (3, 4, -5) == packed == PackedInts((3, 4, -5))
    assert packed not in ((3, 4), (3, 4, 5), [3, 4, -5])
    assert hash(packed) == hash((3, 4, -5))
    assert repr(packed) == "(3, 4, -5)"
    assert pickle.loads(pickle.dumps(packed)) == copy.deepcopy(packed) == packed


def test_they_are_sliced_joined_and_counted_as_a_tuple_is() -> None:
    packed = PackedInts(range(10))
    assert (packed[3], packed[-1]) == (3, 9)
    assert packed[2:4] == (2, 3)
    assert packed[::-5] == (9, 4)
    assert packed[:2] + (7,) == (0, 1, 7) == (0,) + packed[1:2] + (7,)  # noqa: RUF005
    assert (packed.count(3), packed.count(11), 9 in packed, len(packed)) == (1, 0, True, 10)


def test_numpy_sees_them_without_a_copy_and_cannot_write() -> None:
    packed = PackedInts([1, 2])
    values = packed.int64s()
    assert np.shares_memory(values, packed.int64s())
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 5
    assert PackedInts([]).int64s().tolist() == []


def test_arrays_of_any_stride_are_packed() -> None:
    assert PackedInts.of_int64s(np.arange(6)[::-2]) == (5, 3, 1)


@pytest.mark.parametrize("count", [0, 3, 20_000])
def test_sums_begin_with_0(count: int) -> None:
    sums = PackedInts(range(count)).sums()
    assert sums == tuple(n * (n - 1) // 2 for n in range(count + 1))


def test_bytes_are_little_endian() -> None:
    assert PackedInts([1, -1]).little_endian().tobytes() == b"\1" + b"\0" * 7 + b"\xff" * 8


def test_what_is_no_int64_is_refused() -> None:
    with pytest.raises(OverflowError):
        PackedInts([2**63])
