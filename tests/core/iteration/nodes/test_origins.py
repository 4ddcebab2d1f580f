"""How much of each input of a mixture is handed out by a place, whatever is behind the mixture."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from shardctl.core.iteration.build import build
from shardctl.core.iteration.iteration import EVERYTHING
from shardctl.core.iteration.nodes.filtered import counts_of_inputs, mixtures_below
from shardctl.core.iteration.nodes.source import NOTHING
from shardctl.core.stages.part import Stage
from shardctl.core.stages.stages import (
    Batch,
    Concatenate,
    Filter,
    Map,
    Pipeline,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shuffle,
    Skip,
    Values,
)

_STARTS = [0, 100, 250]  # of the numbers of each input; the last is where they end
OTHER = Pipeline(source=Values(values=(900, 901, 902)))


@pytest.mark.parametrize(
    "stages",
    [
        (),
        (Batch(size=7),),
        (Map(), Batch(size=7), Map()),
        (Shuffle(buffer=30, seed=1), Batch(size=7)),
        (Skip(count=5), Repeat(count=2)),
        (Shard(num_shards=2, index=1),),
        (Concatenate(other=OTHER), Shuffle(buffer=300, seed=1)),
        (Filter(kept="odd"), Shuffle(buffer=9, seed=2)),
    ],
)
@pytest.mark.parametrize("inner_batch", [None, 4])
def test_counts_are_those_of_the_numbers_handed_out(
    stages: tuple[Stage, ...], inner_batch: int | None
) -> None:
    behind = () if inner_batch is None else (Batch(size=inner_batch),)
    if behind and any(isinstance(stage, Filter | Concatenate | Batch) for stage in stages):
        return
    inputs = tuple(
        Pipeline(source=Values(values=tuple(range(start, stop))), stages=behind)
        for start, stop in pairwise(_STARTS)
    )
    source = SampleFromDatasets(inputs=inputs, weights=(0.3, 0.7), seed=1)
    pipeline = Pipeline(source=source, stages=stages)
    node = build(pipeline, lambda read: NOTHING, kept=lambda stage: lambda codes: codes % 2 == 1)
    (mixture,) = mixtures_below(node)
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    codes = iteration.examples(np.arange(iteration.pulled))
    places = np.append(np.random.default_rng(0).integers(0, len(codes) + 1, 50), [0, len(codes)])
    counts = counts_of_inputs(node, iteration, mixture, places)
    for place, row in zip(places.tolist(), counts.tolist(), strict=True):
        expected = np.histogram(codes[:place], [*_STARTS[:2], 249.5])[0]
        assert row == expected.tolist()
    assert iteration.examples(np.arange(iteration.pulled)).tolist() == codes.tolist()


def test_mixtures_in_mixtures_are_found_the_outermost_first() -> None:
    inner = SampleFromDatasets(inputs=(OTHER, OTHER, OTHER), seed=1)
    outer = SampleFromDatasets(inputs=(Pipeline(source=inner), OTHER), seed=1)
    node = build(Pipeline(source=outer), lambda read: NOTHING)
    assert [len(mixture.data) for mixture in mixtures_below(node)] == [2, 3]
