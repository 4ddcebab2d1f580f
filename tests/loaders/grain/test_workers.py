"""How worker processes deal and batch, beside a deal by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from shardctl.loaders.grain import WorkerBatches
from tests.cases import add_cases


def dealt_by_hand(num_places: int, size: int, workers: int, *, drop: bool) -> list[list[int]]:
    """Each worker reads each so-manieth place and cuts that; then one batch of each, in turn."""
    own = []
    for worker in range(max(workers, 1)):
        read = list(range(num_places))[worker :: max(workers, 1)]
        cut = [read[start : start + size] for start in range(0, len(read), size)]
        own.append([batch for batch in cut if len(batch) == size or not drop])
    return [batch for turn in itertools.zip_longest(*own) for batch in turn if batch is not None]


@pytest.mark.parametrize("drop", [False, True])
def test_batches_of_workers_are_those_dealt_by_hand_both_ways(drop: bool) -> None:
    for num_places in range(31):
        for size, workers in itertools.product((1, 2, 3, 5, 8), (0, 1, 2, 3, 4, 7)):
            dealt = WorkerBatches(num_places, size, workers, drop_remainder=drop)
            wanted = dealt_by_hand(num_places, size, workers, drop=drop)
            places = dealt.places_at(np.arange(dealt.num_examples))
            bounds = [dealt.bounds(step) for step in range(dealt.num_batches)]
            assert [places[slice(*bound)].tolist() for bound in bounds] == wanted
            steps, within = dealt.steps_of(np.arange(dealt.num_examples))
            assert [wanted[a][b] for a, b in zip(steps, within, strict=True)] == places.tolist()
            kept, positions = dealt.positions_of(np.arange(num_places))
            found = sorted(zip(positions.tolist(), kept.tolist(), strict=True))
            assert found == list(enumerate(places.tolist()))
            add_cases()


def test_a_trillion_reads_are_dealt_without_a_list_of_batches() -> None:
    dealt = WorkerBatches(10**12 + 1, 256, 3, drop_remainder=False)
    assert dealt.num_examples == 10**12 + 1
    # Two workers read 1,302,083,333 * 256 + 86, the third one less.
    assert dealt.num_batches == 3 * 1_302_083_334
    assert dealt.bounds(dealt.num_batches - 1) == (10**12 + 1 - 85, 10**12 + 1)
