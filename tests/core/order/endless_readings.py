"""Random readings of files that repeat, and each as that of a long list."""

from __future__ import annotations

import numpy as np

from shardctl.core.interleave.interleave import Interleave
from shardctl.core.order.epoch_reading import EndlessReading, EpochReading, repetitions_listed
from tests.core.interleave.endless_cases import EndlessCase


def both_readings(seed: int) -> tuple[EndlessReading, EpochReading, np.random.Generator]:
    """Return the reading of a random endless list, and one of a list that is long enough."""
    case, draw = EndlessCase.of(seed), np.random.default_rng([seed, 1])
    stride = int(draw.integers(1, 4))
    phase = int(draw.integers(0, stride))
    total = int(draw.integers(1, 12)) * int(case.lengths.sum())
    limit = max(0, -(-(total - phase) // stride)) + int(draw.integers(0, 5))
    count = repetitions_listed(case.lengths, (limit + 1) * stride, cycle_length=case.cycle)
    rows = case.openings(range(count))
    listed = EpochReading(
        rows=rows,
        interleave=Interleave(case.lengths[rows], cycle_length=case.cycle, block_length=case.block),
        row_codes=1000 * np.arange(len(case.lengths)),
        limit=limit,
        stride=stride,
        phase=phase,
    )
    endless = EndlessReading(
        interleave=case.endless(),
        row_codes=listed.row_codes,
        limit=limit,
        stride=stride,
        phase=phase,
    )
    return endless, listed, draw
