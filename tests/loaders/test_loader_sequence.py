"""Epochs that are built as a whole, and batches, beside lists."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from shardctl.loaders.loader_sequence import (
    EpochByEpoch,
    EqualBatches,
    UnequalBatches,
    matches,
)
from tests.cases import counted
from tests.loaders.agreement import check_agreement


def test_epochs_of_any_lengths_are_looked_up_both_ways() -> None:
    rng = random.Random(6)
    for _ in counted(range(100)):
        n, batch = rng.randrange(1, 20), rng.choice([None, 1, 2, 3, 7])
        drops = batch is not None and rng.random() < 0.5
        sizes = [rng.randrange(25) for _ in range(rng.randrange(1, 5))]
        epochs = [[rng.randrange(n) for _ in range(size)] for size in sizes]
        kept = [size // (batch or 1) * (batch or 1) if drops else size for size in sizes]
        lengths = [min(batch or 1, k - at) for k in kept for at in range(0, k, batch or 1)]
        batches = None if batch is None else UnequalBatches(np.array(lengths, np.int64))
        rows = [np.array(epoch[:size], np.int64) for epoch, size in zip(epochs, kept, strict=True)]
        handed_out = EpochByEpoch(kept, rows.__getitem__, batches=batches)
        expected = [
            epoch[start : start + (batch or 1)]
            for epoch in epochs
            for start in range(0, len(epoch), batch or 1)
            if not drops or start + (batch or 1) <= len(epoch)
        ]
        check_agreement(handed_out, expected, n, batched=batch is not None)
        of_epoch = np.repeat(np.arange(len(kept)), kept)
        assert handed_out.epochs_at(np.arange(sum(kept))).tolist() == of_epoch.tolist()
        assert handed_out.epoch_size == kept[0]


def test_batches_of_equal_epochs_are_counted_without_a_list_of_them() -> None:
    batches = EqualBatches(10, 4, epochs=2)
    listed = UnequalBatches(np.array([4, 4, 2, 4, 4, 2]))
    assert batches.num_batches == listed.num_batches == 6
    assert [batches.bounds(step) for step in range(6)] == [listed.bounds(s) for s in range(6)]
    assert np.array_equal(batches.steps_of(np.arange(20)), listed.steps_of(np.arange(20)))
    assert EqualBatches(0, 4, epochs=3).num_batches == 0


@pytest.mark.parametrize("there", [[], [3], [3, 3, 1], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("wanted", [[], [3], [3, 3], [4, 1, 3]])
def test_matches_are_all_pairs_that_are_equal(wanted: list[int], there: list[int]) -> None:
    found = matches(np.array(wanted, np.int64), np.array(there, np.int64))
    pairs = [
        (q, p) for q, one in enumerate(wanted) for p, other in enumerate(there) if one == other
    ]
    assert sorted(zip(*map(np.ndarray.tolist, found), strict=True)) == pairs


def test_many_look_ups_take_no_time_for_each_of_them() -> None:
    size = 50_000
    handed_out = EpochByEpoch([size], lambda _: np.arange(size)[::-1].copy())
    began = time.process_time()
    which, positions = handed_out.positions_of(np.arange(size))
    assert time.process_time() - began < 2  # one by one it was a minute
    assert np.array_equal(positions, size - 1 - np.arange(size)[which])
