"""Text of stages: read, written, refused with the place of what is wrong."""

from __future__ import annotations

import time

import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.metadata.names import catalog_datasets, catalog_names
from shardctl.stages.calls import CALLS
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
    Shuffle,
    Take,
    Unbatch,
    Values,
    WithOptions,
    Zip,
)
from shardctl.stages.text import parse_stages, text_of
from tests.cases import check_cases, counted, in_this_run
from tests.stages.any_pipelines import pipelines
from tests.strategies import error_line


def _stages(text: str) -> tuple[Stage, ...]:
    pipeline = parse_stages(text)
    assert pipeline.source == Read()
    return pipeline.stages


def _one(text: str) -> Stage:
    (stage,) = _stages(text)
    return stage


def _source(text: str) -> Source:
    pipeline = parse_stages(text)
    assert pipeline.stages == ()
    return pipeline.source


def test_the_pipelines_of_the_design() -> None:
    assert parse_stages("cache | shuffle(1000, seed=7) | repeat(3) | batch(64)") == Pipeline(
        stages=(Cache(), Shuffle(buffer=1000, seed=7), Repeat(count=3), Batch(size=64))
    )
    mixture = parse_stages(
        """sample_from_datasets([train[:50%] | shuffle(100, seed=1) | repeat,
               read(test, data='mnist', shuffle_seed=3) | repeat], weights=[0.7, 0.3], seed=42,
               stop_on_empty_dataset=False) | shuffle(1000, seed=3) | batch(64)"""
    )
    test = Read(spec="test", data="mnist", settings=(("shuffle_seed", 3),))
    assert mixture == Pipeline(
        source=SampleFromDatasets(
            inputs=(
                Pipeline(
                    source=Read(spec="train[:50%]"),
                    stages=(Shuffle(buffer=100, seed=1), Repeat()),
                ),
                Pipeline(source=test, stages=(Repeat(),)),
            ),
            weights=(0.7, 0.3),
            seed=42,
        ),
        stages=(Shuffle(buffer=1000, seed=3), Batch(size=64)),
    )
    a, b = Pipeline(source=Read(spec="a")), Pipeline(source=Read(spec="b"))
    assert _source("choose_from_datasets([a, b], choices=range(2) | repeat)") == ChooseFromDatasets(
        inputs=(a, b), choices=Pipeline(source=Range(stop=2), stages=(Repeat(),))
    )
    assert _source("zip(a, b)") == _source("zip([a, b])") == Zip(inputs=(a, b))
    behind = Pipeline(source=Read(spec="test"), stages=(Shuffle(buffer=10, seed=1),))
    assert _one("concatenate(test | shuffle(10, seed=1))") == Concatenate(other=behind)


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (
            "shuffle(buffer_size=9, reshuffle_each_iteration=False)",
            Shuffle(buffer=9, reshuffle=False),
        ),
        ("shuffle(9, 7, True)", Shuffle(buffer=9, seed=7, reshuffle=True)),
        ("shuffle(1_000, -7)", Shuffle(buffer=1000, seed=-7)),
        ("shuffle(tf.data.UNKNOWN_CARDINALITY)", Shuffle(buffer=-2)),
        ("shuffle(9, seed=(5, -6))", Shuffle(buffer=9, seed=(5, -6))),
        ("shuffle(9, seed=None, name='x')", Shuffle(buffer=9)),
        ("repeat", Repeat()),
        ("repeat()", Repeat()),
        ("repeat(-1)", Repeat()),
        ("repeat(count=None)", Repeat()),
        ("repeat(count=3)", Repeat(count=3)),
        ("batch(batch_size=4, drop_remainder=true)", Batch(size=4, drop_remainder=True)),
        ("padded_batch(4, ([None], []), drop_remainder=True)", Batch(size=4, drop_remainder=True)),
        ("ragged_batch(4)", Batch(size=4)),
        ("shard(4, 1)", Shard(num_shards=4, index=1)),
        ("shard(num_shards=4, index=1)", Shard(num_shards=4, index=1)),
        ("take(-1)", Take(count=-1)),
        ("cache('')", Cache()),
        ("map(decode)", Map()),
        ("map(self.decode, tf.data.AUTOTUNE)", Map(calls="auto")),
        (
            "map(f, num_parallel_calls=AUTOTUNE, deterministic=False)",
            Map(calls="auto", deterministic=False),
        ),
        ("map(map_func=f, num_parallel_calls=4)", Map(calls=4)),
        ("map(calls=-1)", Map(calls="auto")),
        ("enumerate", Map()),
        ("enumerate(start=5)", Map()),
        ("assert_cardinality(1000)", AssertCardinality(count=1000)),
        ("prefetch", Prefetch()),
        ("prefetch(tf.data.AUTOTUNE)", Prefetch()),
        ("prefetch(None)", Prefetch()),
        ("prefetch(buffer_size=2)", Prefetch(size=2)),
        (
            "with_options(shuffle_and_repeat_fusion=False, apply_default_optimizations=True)",
            WithOptions(fusion=False, optimizations=True),
        ),
        ("filter", Filter()),
        ("filter(lambda x, y: g(x, '),') | y)", Filter()),
        ("filter(kept='seen.txt')", Filter(kept="seen.txt")),
    ],
)
def test_a_stage_as_tf_data_writes_it(text: str, stage: Stage) -> None:
    assert _one(text) == stage


def test_a_batch_with_threads_of_its_own_reads_ahead_like_a_map() -> None:
    assert _stages("batch(4, num_parallel_calls=2)") == (Batch(size=4), Map(calls=2))
    assert _stages("batch(4, num_parallel_calls=AUTOTUNE, deterministic=False)") == (
        Batch(size=4),
        Map(calls="auto", deterministic=False),
    )
    assert _stages("batch(4, deterministic=False)") == (Batch(size=4),)  # TensorFlow ignores it


def test_a_rebatch_is_a_batch_of_what_is_taken_apart() -> None:
    import tensorflow as tf

    assert _stages("rebatch(4, drop_remainder=True)") == (
        Unbatch(),
        Batch(size=4, drop_remainder=True),
    )
    for count, first, then, drop in counted(
        (count, first, then, drop)
        for count in (0, 7, 12)
        for first in (1, 4)
        for then in (2, 5)
        for drop in (False, True)
    ):
        ds = tf.data.Dataset.range(count).shuffle(5, seed=3).batch(first)
        rebatched = [list(batch) for batch in ds.rebatch(then, drop).as_numpy_iterator()]
        again = tf.data.Dataset.range(count).shuffle(5, seed=3).batch(first).unbatch()
        assert rebatched == [list(b) for b in again.batch(then, drop).as_numpy_iterator()]


@pytest.mark.parametrize("name", [call for call in WHY_OPEN if "(" not in call])
def test_what_leaves_the_order_open_is_named_and_no_fault_of_the_text(name: str) -> None:
    pipeline = parse_stages(f"{name}(lambda x: f(x, [1, 2]), cycle_length=4)")
    (part,) = pipeline.stages or (pipeline.source,)
    assert part == Opaque(call=name, reason=WHY_OPEN[name])
    assert part.reason


def test_a_cache_in_a_file_is_open() -> None:
    for text in ("cache('/tmp/x')", "cache(filename='x')", "cache(filename)"):
        assert _one(text) == Opaque(call="cache(filename)", reason=WHY_OPEN["cache(filename)"])


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("train[:50%]+test", Read(spec="train[:50%]+test")),
        ("train[:1_000] + test[3shard]", Read(spec="train[:1_000] + test[3shard]")),
        ("'cache'", Read(spec="cache")),
        ("cache[:5]", Read(spec="cache[:5]")),  # a split may be called like a stage
        ("zip + map", Read(spec="zip + map")),
        ("read(cache)", Read(spec="cache")),
        ("read", Read()),
        ("read()", Read()),
        ("read(data=mnist:3.0.1)", Read(data="mnist:3.0.1")),
        ("read(split=test, data='a b')", Read(spec="test", data="a b")),
        (
            "read(train, interleave-cycle-length=4, host='1/4')",
            Read(spec="train", settings=(("interleave_cycle_length", 4), ("host", "1/4"))),
        ),
        ("read(train, host=1/4)", Read(spec="train", settings=(("host", "1/4"),))),
        ("read(file_order=[a, 'b'])", Read(settings=(("file_order", ("a", "b")),))),
        ("values(0, 1, 1)", Values(values=(0, 1, 1))),
        ("from_tensor_slices([0, 1, 1])", Values(values=(0, 1, 1))),
        ("from_generator(f)", Opaque(call="from_generator", reason=WHY_OPEN["from_generator"])),
    ],
)
def test_a_source_as_it_is_typed(text: str, source: Source) -> None:
    assert _source(text) == source


def test_choices_may_be_a_list_of_numbers() -> None:
    source = _source("choose_from_datasets(datasets=[a, b], choice_dataset=[0, 1, 0])")
    assert isinstance(source, ChooseFromDatasets)
    assert source.choices == Pipeline(source=Values(values=(0, 1, 0)))


def test_every_split_of_the_catalog_is_a_source_as_it_is() -> None:
    datasets = [dataset for name in catalog_names() for dataset in catalog_datasets(name)]
    names = {split.name for dataset in datasets for split in dataset.splits}
    names |= {"val", "dev", "eval", "all", "valid", "unlabelled", "train_extra", "heldout"}
    for name in counted(sorted(names)):
        assert parse_stages(f"{name} | batch(2)").source == Read(spec=name)


def test_what_is_written_is_read_back() -> None:
    def check(pipeline: Pipeline) -> None:
        text = text_of(pipeline)
        assert parse_stages(text) == pipeline, text
        assert text_of(parse_stages(text)) == text

    assert check_cases(pipelines, check, 80) >= in_this_run(40)


@pytest.mark.fuzz
def test_what_is_written_is_read_back_of_many() -> None:
    from tests.cases import FUZZ

    check_cases(pipelines, _is_read_back, FUZZ, fuzz=True)


def _is_read_back(pipeline: Pipeline) -> None:
    assert parse_stages(text_of(pipeline)) == pipeline


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "cache | shufle(1000)",
            "at 'shufle(1000)': no stage 'shufle'; did you mean shuffle? stages: ",
        ),
        (
            "cahe | repeat",
            "no stage 'cahe'; did you mean cache? A split of that name is written read(cahe)",
        ),
        ("cache | train", "at 'train': no stage 'train';"),
        ("cache | range(3)", "at 'range(3)': range is a source, so it comes first"),
        ("cache |", "at the end: a stage is needed"),
        ("", "at the end: a stage is needed"),
        ("|", "at '|': a stage is needed"),
        ("cache repeat", "at 'repeat': stages are parted by |"),
        ("shuffle(3).repeat(4)", "at '.repeat(4)': stages are parted by |"),
        ("shuffle(3", "at the end: a comma or a closing bracket is needed"),
        ("shuffle", "at 'shuffle': shuffle: buffer is needed"),
        ("shuffle(0)", "at 'shuffle(0)': shuffle: buffer=0: a number of elements from 1 to "),
        (
            "shuffle(buffr=3)",
            "at 'buffr=3)': shuffle: no argument 'buffr'; did you mean buffer? there ",
        ),
        ("shuffle(3, seed=1, seed=2)", "shuffle: seed is there twice"),
        (
            "shuffle(3, 4, True, 5)",
            "at '5)': shuffle: too many arguments by their place: 3 at most",
        ),
        (
            "shuffle(seed=1, 3)",
            "at '3)': shuffle: an argument by its place comes before those by name",
        ),
        ("shuffle('3')", 'shuffle: buffer="3": a whole number is needed'),
        ("shuffle(1e3)", "shuffle: buffer=1000.0: a whole number is needed"),
        ("repeat(0)", "repeat: count=0: nothing would be left"),
        ("batch(0)", "batch: size=0: a number from 1"),
        ("shard(4, 4)", "shard: index=4 of num_shards=4: shards count from 0"),
        ("take(-2)", "take: count=-2: a number from 0"),
        ("map(lambda x: x)", "the name of a function, or nothing, is needed"),
        ("map(4)", "at '4)': the name of a function, or nothing, is needed; threads are calls=4"),
        ("cache(3)", "cache: a text is needed"),
        ("unbatch(3)", "at '3)': unbatch: too many arguments by their place: none"),
        ("zip()", "zip: inputs is needed"),
        ("sample_from_datasets([a, b], weights=[1])", "1 weight of 2 inputs: one each is needed"),
        ("sample_from_datasets([a], weights=[-1])", "weights of 0 or more are needed"),
        (
            "repeat | shuffle(-2)",
            "shuffle: buffer=-2 (the whole dataset) of what repeats without end",
        ),
        ("range(1, 5)", "range counts from 0 by 1: range(stop)"),
        ("'train", "at ''train': the quote is not closed"),
        ("rebatch([3, 4])", "rebatch: batch: size=(3, 4): a whole number is needed"),
        ("shuffle(" + "9" * 200 + ")", "a number of at most 100 digits is needed"),
        ("a\x1b[31m | cache", r"at '\x1b[31m | cache'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_stages(text)
    message = str(caught.value)
    assert said in message
    assert message.isprintable()


def test_hostile_texts_are_refused_in_time() -> None:
    many = 20_000
    texts = [
        "zip(" * many,
        "concatenate(" * many + "a" + ")" * many,
        "values(" + "[" * many,
        "map(" * many,
        "a+" * many,
        "'" * many,
        "a" + " " * many + "!",
        "filter(" + "(" * many,
        "filter(" + '"\\' * many,
        "|" * many,
        "shuffle(3, seed=" + "1" * many + ")",
        "x" * 1_000_001,
        "a[" * many,
    ]
    begun = time.process_time()
    for text in texts:
        with pytest.raises(UsageError) as caught:
            parse_stages(text)
        assert len(str(caught.value)) < 600
    long = " | ".join(["map"] * many)
    assert len(parse_stages(long).stages) == many
    assert time.process_time() - begun < 20


def test_a_damaged_text_is_read_or_refused_in_a_line() -> None:
    damages = st.tuples(
        pipelines.map(text_of),
        st.integers(0, 400),
        st.sampled_from([*"()[]|,'\"=\\\0é0-", ""]),
        st.integers(0, 3),
    )

    def check(case: tuple[str, int, str, int]) -> None:
        text, at, put, removed = case
        at = min(at, len(text))
        damaged = text[:at] + put + text[at + removed :]
        if error_line(lambda: parse_stages(damaged)) is None:
            again = parse_stages(damaged)
            assert parse_stages(text_of(again)) == again

    check_cases(damages, check, 50)


def test_every_call_is_read_by_its_own_name() -> None:
    for name, call in CALLS.items():
        assert call.name == name
