"""Any pipelines: every stage and source with every argument, whether or not it makes sense."""

from __future__ import annotations

from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.stages import stages as ast
from shardctl.stages.part import Source, Stage

_COUNTS = st.integers(1, 2**63 - 1) | st.integers(1, 9)
_FLAGS = st.sampled_from([None, True, False])
_CALLS = st.none() | st.just("auto") | st.integers(1, 64)
_INT64 = st.integers(-(2**63) + 1, 2**63 - 1)
_SEEDS = st.none() | st.integers(-(2**70), 2**70) | st.tuples(_INT64, _INT64)
_WORDS = st.text(max_size=9)
_WORDS |= st.sampled_from(["a'b", '"', "\\", "\\'", "a\\", "auto", "None", "3"])
_TEXTS = _WORDS.filter(bool)
_SPECS = _TEXTS | st.sampled_from(
    ["train", "train[:50%]+test[3shard]", "a + b", "cache", "cahe", "3", "zip[:5]"]
)
_SETTINGS = st.dictionaries(
    st.sampled_from(["cycle", "block", "shuffle_seed", "host", "file_order", "reverse"]),
    st.integers() | st.booleans() | _WORDS | st.lists(_WORDS).map(tuple),
    max_size=3,
).map(lambda settings: tuple(settings.items()))
_OPAQUES = st.builds(ast.Opaque, call=_TEXTS, reason=_WORDS) | st.sampled_from(
    [ast.Opaque(call=call, reason=reason) for call, reason in ast.WHY_OPEN.items()]
)
_WEIGHTS = st.floats(0.001, 9) | st.sampled_from([1.0, 0.1, 1e-300, 1e300])


def _sampled(parts: tuple[ast.Pipeline, ...]) -> st.SearchStrategy[Source]:
    return st.builds(
        ast.SampleFromDatasets,
        inputs=st.just(parts),
        weights=st.none() | st.tuples(*[_WEIGHTS] * len(parts)),
        seed=_SEEDS,
        stop_on_empty=st.booleans(),
        rerandomize=_FLAGS,
        weights_dtype=st.sampled_from(["float32", "float64"]),
    )


_ALONE: st.SearchStrategy[Source] = st.one_of(
    st.just(ast.Read()),
    st.builds(
        ast.Read,
        spec=st.none() | _SPECS,
        data=st.none() | _TEXTS,
        settings=_SETTINGS,
        assert_cardinality=st.booleans(),
    ),
    st.builds(ast.Range, stop=_COUNTS),
    st.builds(ast.Values, values=st.lists(_INT64, max_size=4).map(tuple)),
    _OPAQUES,
)
_SIMPLE: st.SearchStrategy[Stage] = st.one_of(
    st.builds(ast.Shuffle, buffer=_COUNTS | st.just(-2), seed=_SEEDS, reshuffle=_FLAGS),
    st.builds(ast.Repeat, count=st.none() | _COUNTS),
    st.builds(ast.Batch, size=_COUNTS, drop_remainder=st.booleans()),
    st.builds(ast.Shard, num_shards=st.integers(9, 12), index=st.integers(0, 8)),
    st.builds(ast.Take, count=_COUNTS | st.sampled_from([0, -1])),
    st.builds(ast.Skip, count=_COUNTS | st.sampled_from([0, -1])),
    st.builds(ast.Map, calls=_CALLS, deterministic=_FLAGS),
    st.builds(ast.AssertCardinality, count=_COUNTS | st.sampled_from([0, -1])),
    st.builds(ast.Prefetch, size=st.just("auto") | st.integers(0, 9)),
    st.builds(ast.WithOptions, **dict.fromkeys(ast.WithOptions.attributes, _FLAGS)),
    st.builds(ast.Filter, kept=st.none() | _TEXTS),
    st.sampled_from([ast.Unbatch(), ast.Cache()]),
    _OPAQUES,
)


def _pipeline(source: Source, stages: list[Stage]) -> ast.Pipeline:
    """Return the pipeline as far as it can be: some stages cannot follow others."""
    while True:
        try:
            return ast.Pipeline(source=source, stages=tuple(stages))
        except UsageError:
            stages = stages[:-1]


def _deeper(inputs: st.SearchStrategy[ast.Pipeline]) -> st.SearchStrategy[ast.Pipeline]:
    several = st.lists(inputs, min_size=1, max_size=3).map(tuple)
    sources = st.one_of(
        _ALONE,
        st.builds(ast.Zip, inputs=several),
        several.flatmap(_sampled),
        st.builds(ast.Shared, label=_TEXTS, pipeline=inputs),
        st.builds(
            ast.ChooseFromDatasets, inputs=several, choices=inputs, stop_on_empty=st.booleans()
        ),
    )
    stages = _SIMPLE | st.builds(ast.Concatenate, other=inputs)
    return st.builds(_pipeline, sources, st.lists(stages, max_size=8))


pipelines: st.SearchStrategy[ast.Pipeline] = st.recursive(
    st.builds(_pipeline, _ALONE, st.lists(_SIMPLE, max_size=8)), _deeper, max_leaves=6
)
