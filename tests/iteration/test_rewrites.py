"""What runs in place of the stages of a script: as TensorFlow 2.21 logs its graphs."""

from __future__ import annotations

import pytest

from shardctl.iteration.build import fuses, optimized
from shardctl.stages.part import Stage
from shardctl.stages.pipelines import options_of
from shardctl.stages.stages import (
    Batch,
    ChooseFromDatasets,
    Concatenate,
    Map,
    Pipeline,
    Prefetch,
    Range,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shuffle,
    Skip,
    Take,
    WithOptions,
    Zip,
)
from tests.iteration.elements import chain

SHUFFLE = Shuffle(buffer=3, seed=1)


def ops_of(*stages: Stage) -> list[str]:
    """Return what runs, a shuffle and the repeat that it is fused with as one."""
    pipeline = optimized(chain(5, *stages))
    options = options_of(pipeline)
    ops: list[str] = []
    for index, stage in enumerate(pipeline.stages):
        if index and fuses(pipeline.stages[index - 1], stage, options):
            ops[-1] += "_and_repeat"
        else:
            ops.append(stage.name)
    return ops


# Each as TF_CPP_VMODULE=rewrite_utils=5 shows it "After graph rewrites".
@pytest.mark.parametrize(
    ("stages", "ops"),
    [
        ((SHUFFLE, Repeat(count=1), Repeat(count=3)), ["shuffle_and_repeat", "prefetch"]),
        ((SHUFFLE, Take(count=-1), Repeat(count=2)), ["shuffle_and_repeat", "prefetch"]),
        (
            (SHUFFLE, Repeat(count=2), Repeat(count=2)),
            ["shuffle_and_repeat", "repeat", "prefetch"],
        ),
        ((SHUFFLE, Repeat(count=1)), ["shuffle", "prefetch"]),
        (
            (SHUFFLE, WithOptions(deterministic=True), Repeat(count=2)),
            ["shuffle", "with_options", "repeat", "prefetch"],
        ),
        (
            (SHUFFLE, Repeat(count=2), WithOptions(fusion=False)),
            ["shuffle", "repeat", "with_options", "prefetch"],
        ),
        (
            (SHUFFLE, Repeat(count=1), Repeat(count=2), WithOptions(optimizations=False)),
            ["shuffle", "repeat", "repeat", "with_options"],
        ),
        (
            (
                SHUFFLE,
                Repeat(count=1),
                Repeat(count=2),
                WithOptions(optimizations=False, fusion=True),
            ),
            ["shuffle_and_repeat", "repeat", "with_options"],
        ),
        (
            (
                SHUFFLE,
                Shard(num_shards=1, index=0),
                Skip(count=0),
                Prefetch(size=0),
                Repeat(count=2),
            ),
            ["shuffle", "prefetch", "repeat", "prefetch"],
        ),
        ((SHUFFLE, SHUFFLE, Repeat(count=2)), ["shuffle", "shuffle_and_repeat", "prefetch"]),
        ((Batch(size=2), Prefetch(size=2), WithOptions()), ["batch", "prefetch", "with_options"]),
    ],
)
def test_what_runs_is_what_tensorflow_logs(stages: tuple[Stage, ...], ops: list[str]) -> None:
    assert ops_of(*stages) == ops


def test_maps_run_in_parallel_and_keep_their_order() -> None:
    given = (Map(), Map(calls=2, deterministic=False))
    kept = (Map(calls="auto", deterministic=True), given[1], Prefetch())
    assert optimized(chain(5, *given)).stages == kept
    off = (*given, WithOptions(optimizations=False))
    assert optimized(chain(5, *off)).stages == off


def test_inputs_are_rewritten_too_but_nothing_is_read_ahead_there() -> None:
    one = chain(5, Repeat(count=1), Map())
    done = chain(5, Map(calls="auto", deterministic=True))
    assert optimized(chain(3, Concatenate(other=one))).stages[0] == Concatenate(other=done)
    assert optimized(Pipeline(source=Zip(inputs=(one, one)))).source == Zip(inputs=(done, done))
    sampled = Pipeline(source=SampleFromDatasets(inputs=(one,)))
    assert optimized(sampled).source == SampleFromDatasets(inputs=(done,))
    chosen = Pipeline(source=ChooseFromDatasets(inputs=(one,), choices=one))
    assert optimized(chosen).source == ChooseFromDatasets(inputs=(done,), choices=done)


def test_options_of_inputs_count_and_later_ones_first() -> None:
    first = chain(5, WithOptions(fusion=False, warm_start=True))
    second = Pipeline(source=Range(stop=5), stages=(WithOptions(fusion=True),))
    options = options_of(chain(5, *first.stages, Concatenate(other=second)))
    assert options == WithOptions(fusion=True, warm_start=True)
    assert options_of(Pipeline(source=Zip(inputs=(second, first)))).fusion is False


@pytest.mark.parametrize(
    ("stage", "drops"),
    [
        (Take(count=-1), True),
        (Take(count=0), False),
        (Skip(count=0), True),
        (Skip(count=-1), False),
        (Repeat(count=1), True),
        (Repeat(), False),
        (Shard(num_shards=1, index=0), True),
        (Shard(num_shards=2, index=0), False),
        (Prefetch(size=0), False),
    ],
)
def test_stages_that_do_nothing(stage: Stage, drops: bool) -> None:
    assert stage.is_noop is drops
