"""A buffer over a reading: the codes are those at the inputs that come out, from any start."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.order.epoch_reading import EpochReading
from shardctl.tfdata import shuffle_permutations as module
from shardctl.tfdata.interleave import Interleave
from shardctl.tfdata.shuffle_buffer import ShuffleReplay, shuffle_permutation
from shardctl.tfdata.shuffle_permutations import shuffled_codes
from shardctl.tfdata.shuffle_seeds import KernelSeeds

SEEDS = KernelSeeds(seed=3, seed2=4)


def reading(num_files: int, length: int) -> EpochReading:
    """Return a reading of files whose codes begin at 1,000 times their number."""
    lengths = np.full(num_files, length)
    return EpochReading(
        interleave=Interleave(lengths, cycle_length=3, block_length=2),
        row_codes=1000 * np.arange(num_files),
    )


# Codes of old inputs are looked up one by one; with a reach of 0 nearly all are old. Over so many
# examples the window slides several times.
@pytest.mark.parametrize("reach", [0, 4])
@pytest.mark.parametrize("buffer", [1, 3, 5_000, 400_000])
def test_what_comes_out_is_the_codes_at_the_shuffled_inputs(
    buffer: int, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REACH", reach)
    reads = reading(num_files=6, length=50_000)
    size = reads.num_examples
    expected = reads.codes(0, size)[shuffle_permutation(size, buffer, SEEDS)]
    replay = ShuffleReplay(num_elements=size, buffer_size=buffer, seeds=SEEDS)
    for start, stop in ((0, size), (size - 100_000, size), (70_000, 70_003)):
        found = np.concatenate(list(shuffled_codes(reads, replay, start, stop)))
        np.testing.assert_array_equal(found, expected[start:stop])


def test_nothing_is_read_for_an_empty_stretch() -> None:
    replay = ShuffleReplay(num_elements=210, buffer_size=9, seeds=SEEDS)
    assert list(shuffled_codes(reading(7, 30), replay, 5, 5)) == []
