"""How a rule is compared with what a loader handed out: every answer, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from shardctl.loaders.loader_sequence import LoaderSequence


def check_agreement(
    handed_out: LoaderSequence,
    batches: Sequence[Sequence[int]],
    num_examples: int,
    *,
    batched: bool,
) -> None:
    """Check all that a rule answers against batches of indices, of `num_examples` there are.

    batched: whether the batches are steps; else they are pieces, and examples come one by one.
    """
    indices = [int(index) for batch in batches for index in batch]
    assert handed_out.num_examples == len(indices)
    assert handed_out.indices_at(np.arange(len(indices))).tolist() == indices
    backwards = np.arange(len(indices))[::-1]
    assert handed_out.indices_at(backwards).tolist() == indices[::-1]
    # Every index, those that never come too, and one that is asked twice.
    asked = [*range(num_examples), *range(min(num_examples, 1))]
    found = zip(*map(np.ndarray.tolist, handed_out.positions_of(np.array(asked, int))), strict=True)
    places: dict[int, list[int]] = {}
    for position, index in enumerate(indices):
        places.setdefault(index, []).append(position)
    expected = [(q, p) for q, index in enumerate(asked) for p in places.get(index, ())]
    assert sorted(found) == expected
    if not batched:
        assert handed_out.batches is None
        return
    assert handed_out.batches is not None
    assert handed_out.batches.num_batches == len(batches)
    stops = np.cumsum([0, *map(len, batches)]).tolist()
    bounds = [handed_out.batches.bounds(step) for step in range(len(batches))]
    assert bounds == list(pairwise(stops))
    steps, offsets = handed_out.batches.steps_of(np.arange(len(indices)))
    assert list(zip(steps.tolist(), offsets.tolist(), strict=True)) == [
        (step, offset) for step, batch in enumerate(batches) for offset in range(len(batch))
    ]
