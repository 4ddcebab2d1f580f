"""Any pipelines: every stage and source with every argument, whether or not it makes sense."""

from __future__ import annotations

from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.stages.part import Source, Stage
from shardctl.stages.stages import (
    WHY_OPEN,
    AssertCardinality,
    Batch,
    Cache,
    ChooseFromDatasets,
    Concatenate,
    Filter,
    Map,
    Opaque,
    Pipeline,
    Prefetch,
    Range,
    Read,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shared,
    Shuffle,
    Skip,
    Take,
    Unbatch,
    Values,
    WithOptions,
    Zip,
)

_COUNTS = st.integers(1, 2**63 - 1) | st.integers(1, 9)
_FLAGS = st.sampled_from([None, True, False])
_CALLS = st.none() | st.just("auto") | st.integers(1, 64)
_INT64 = st.integers(-(2**63) + 1, 2**63 - 1)
_SEEDS = st.none() | st.integers(-(2**70), 2**70) | st.tuples(_INT64, _INT64)
_WORDS = st.text(max_size=9) | st.sampled_from(
    ["a'b", '"', "\\", "\\'", "a\\", "auto", "None", "3"]
)
_TEXTS = _WORDS.filter(bool)
_SPECS = (
    st.sampled_from(["train", "train[:50%]+test[3shard]", "a + b", "cache", "cahe", "3", "zip[:5]"])
    | _TEXTS
)
_SETTINGS = st.dictionaries(
    st.sampled_from(["cycle", "block", "shuffle_seed", "host", "file_order", "reverse"]),
    st.integers() | st.booleans() | _WORDS | st.lists(_WORDS).map(tuple),
    max_size=3,
).map(lambda settings: tuple(settings.items()))
_OPAQUES = st.builds(Opaque, call=_TEXTS, reason=_WORDS) | st.sampled_from(
    [Opaque(call=call, reason=reason) for call, reason in WHY_OPEN.items()]
)


def _sources(inputs: st.SearchStrategy[Pipeline]) -> st.SearchStrategy[Source]:
    several = st.lists(inputs, min_size=1, max_size=3).map(tuple)
    weights = st.floats(0.001, 9) | st.sampled_from([1.0, 0.1, 1e-300, 1e300])
    sampled = several.flatmap(
        lambda parts: st.builds(
            SampleFromDatasets,
            inputs=st.just(parts),
            weights=st.none() | st.tuples(*[weights] * len(parts)),
            seed=_SEEDS,
            stop_on_empty=st.booleans(),
            rerandomize=_FLAGS,
            weights_dtype=st.sampled_from(["float32", "float64"]),
        )
    )
    return st.one_of(
        st.builds(Zip, inputs=several),
        sampled,
        st.builds(Shared, label=_TEXTS, pipeline=inputs),
        st.builds(ChooseFromDatasets, inputs=several, choices=inputs, stop_on_empty=st.booleans()),
    )


_SINGLE_SOURCES: st.SearchStrategy[Source] = st.one_of(
    st.just(Read()),
    st.builds(
        Read,
        spec=st.none() | _SPECS,
        data=st.none() | _TEXTS,
        settings=_SETTINGS,
        assert_cardinality=st.booleans(),
    ),
    st.builds(Range, stop=_COUNTS),
    st.builds(Values, values=st.lists(_INT64, max_size=4).map(tuple)),
    _OPAQUES,
)
_SIMPLE: st.SearchStrategy[Stage] = st.one_of(
    st.builds(Shuffle, buffer=_COUNTS | st.just(-2), seed=_SEEDS, reshuffle=_FLAGS),
    st.builds(Repeat, count=st.none() | _COUNTS),
    st.builds(Batch, size=_COUNTS, drop_remainder=st.booleans()),
    st.integers(1, 9).flatmap(
        lambda n: st.builds(Shard, num_shards=st.just(n), index=st.integers(0, n - 1))
    ),
    st.builds(Take, count=_COUNTS | st.sampled_from([0, -1])),
    st.builds(Skip, count=_COUNTS | st.sampled_from([0, -1])),
    st.builds(Map, calls=_CALLS, deterministic=_FLAGS),
    st.builds(AssertCardinality, count=_COUNTS | st.sampled_from([0, -1])),
    st.builds(Prefetch, size=st.just("auto") | st.integers(0, 9)),
    st.builds(
        WithOptions, deterministic=_FLAGS, fusion=_FLAGS, optimizations=_FLAGS, warm_start=_FLAGS
    ),
    st.builds(Filter, kept=st.none() | _TEXTS),
    st.sampled_from([Unbatch(), Cache()]),
    _OPAQUES,
)


def _pipeline(source: Source, stages: list[Stage]) -> Pipeline:
    """Return the pipeline as far as it can be: some stages cannot follow others."""
    while True:
        try:
            return Pipeline(source=source, stages=tuple(stages))
        except UsageError:
            stages = stages[:-1]


def _deeper(inputs: st.SearchStrategy[Pipeline]) -> st.SearchStrategy[Pipeline]:
    stages = _SIMPLE | st.builds(Concatenate, other=inputs)
    return st.builds(_pipeline, _SINGLE_SOURCES | _sources(inputs), st.lists(stages, max_size=8))


pipelines: st.SearchStrategy[Pipeline] = st.recursive(
    st.builds(_pipeline, _SINGLE_SOURCES, st.lists(_SIMPLE, max_size=8)), _deeper, max_leaves=6
)
