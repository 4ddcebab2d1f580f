"""Many interleaves at once: each example is where its interleave alone has it."""

from __future__ import annotations

import numpy as np

from shardctl.order.epoch_reading import opened_together, positions_together
from shardctl.tfdata.interleave import Interleave

NUM_CASES = 150


def test_an_example_is_where_each_interleave_alone_has_it() -> None:
    num_even = 0
    for seed in range(NUM_CASES):
        draw = np.random.default_rng(seed)
        count, several = int(draw.integers(1, 12)), int(draw.integers(1, 6))
        block = int(draw.integers(1, 6))
        lengths = draw.integers(0, draw.integers(1, 20), (count, several))
        if draw.random() < 0.4:
            lengths = int(draw.integers(0, 4)) * block + draw.integers(0, block, (count, several))
        sizes = {"cycle_length": min(count, int(draw.integers(1, 9))), "block_length": block}
        keys = opened_together(lengths, **sizes)
        num_even += keys.shape[1] < several
        alone = [Interleave(column, **sizes) for column in lengths.T.copy()]
        for column, interleave in enumerate(alone):
            opened = interleave._schedule.opening
            assert np.broadcast_to(keys, lengths.shape)[:, column].tolist() == opened.tolist(), seed
        places, offset = draw.integers(0, count, several), int(draw.integers(0, 20))
        found = positions_together(lengths, keys, places, offset, **sizes)
        for column, place in enumerate(places.tolist()):
            if offset < lengths[place, column]:
                known = alone[column].position([place], [offset])
                assert found[column] == known[0], seed
    assert num_even
