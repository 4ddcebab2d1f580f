"""Stages as text and as a document: read, written, refused with the place of what is wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.files.parse import parse_yaml
from shardctl.metadata.names import catalog_datasets, catalog_names
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages import stages as ast
from shardctl.stages.part import Part
from shardctl.stages.stages import Batch, Filter, Map, Prefetch, Read, Shuffle, WithOptions
from shardctl.stages.text import document_of, parse_stages, pipeline_of, text_of
from tests.cases import FUZZ, check_cases, counted, in_this_run
from tests.stages.any_pipelines import pipelines
from tests.strategies import error_line


def opaque(call: str) -> ast.Opaque:
    return ast.Opaque(call=call, reason=ast.WHY_OPEN[call])


def from_yaml(text: str) -> ast.Pipeline:
    return pipeline_of(parse_yaml(text.encode(), source="x"))


def test_the_pipelines_of_the_design() -> None:
    text = "cache | shuffle(1000, seed=7) | repeat(3) | batch(64)"
    chain = (ast.Cache(), Shuffle(buffer=1000, seed=7), ast.Repeat(count=3), Batch(size=64))
    assert parse_stages(text) == ast.Pipeline(stages=chain)
    assert from_yaml("[cache, shuffle: {buffer: 1000, seed: 7}, repeat: 3, batch: 64]") == (
        parse_stages(text)
    )
    a, b = (ast.Pipeline(source=Read(spec=name)) for name in "ab")
    numbers = ast.Pipeline(source=ast.Range(stop=2), stages=(ast.Repeat(),))
    assert parse_stages("choose_from_datasets([a, b], choices=range(2) | repeat)").source == (
        ast.ChooseFromDatasets(inputs=(a, b), choices=numbers)
    )
    assert parse_stages("zip(a, b)") == parse_stages("zip([a, b])")
    assert parse_stages("zip(a, b)").source == ast.Zip(inputs=(a, b))
    assert parse_stages("concatenate(a)").stages == (ast.Concatenate(other=a),)


def test_a_mixture_as_text_and_as_yaml() -> None:
    mixture = """
    - sample_from_datasets:
        inputs:
        - {read: 'train[:50%]', stages: [{shuffle: 100}, repeat]}
        - {read: test, data: mnist, shuffle_seed: 3, stages: repeat | take(5)}
        - other | repeat
        - [read: more, repeat]
        weights: [0.5, 0.25, 0.25, 0]
        stop_on_empty_dataset: yes
    - batch: {batch_size: 4, drop_remainder: true}
    """
    text = (
        "sample_from_datasets([train[:50%] | shuffle(100) | repeat, "
        "read(test, data='mnist', shuffle_seed=3) | repeat | take(5), other | repeat, "
        "more | repeat], weights=[0.5, 0.25, 0.25, 0], stop_on_empty=True) "
        "| batch(4, drop_remainder=True)"
    )
    found = from_yaml(mixture)
    assert found == parse_stages(text)
    assert isinstance(found.source, ast.SampleFromDatasets)
    assert (found.source.weights, found.source.seed) == ((0.5, 0.25, 0.25, 0.0), None)
    assert found.source.inputs[1].source == Read(
        spec="test", data="mnist", settings=(("shuffle_seed", 3),)
    )


STAGES: dict[str, Part] = {
    "shuffle(buffer_size=9, reshuffle_each_iteration=False)": Shuffle(buffer=9, reshuffle=False),
    "shuffle(9, 7, True)": Shuffle(buffer=9, seed=7, reshuffle=True),
    "shuffle(1_000, -7)": Shuffle(buffer=1000, seed=-7),
    "shuffle(tf.data.UNKNOWN_CARDINALITY)": Shuffle(buffer=-2),
    "shuffle(9, seed=(5, -6))": Shuffle(buffer=9, seed=(5, -6)),
    "shuffle(9, seed=None, name='x')": Shuffle(buffer=9),
    "repeat": ast.Repeat(),
    "repeat()": ast.Repeat(),
    "repeat(-1)": ast.Repeat(),
    "repeat(count=None)": ast.Repeat(),
    "repeat(count=3)": ast.Repeat(count=3),
    "batch(batch_size=4, drop_remainder=true)": Batch(size=4, drop_remainder=True),
    "padded_batch(4, ([None], []), drop_remainder=True)": Batch(size=4, drop_remainder=True),
    "ragged_batch(4)": Batch(size=4),
    "batch(4, deterministic=False)": Batch(size=4),  # TensorFlow ignores it
    "shard(4, 1)": ast.Shard(num_shards=4, index=1),
    "shard(num_shards=4, index=1)": ast.Shard(num_shards=4, index=1),
    "take(-1)": ast.Take(count=-1),
    "cache('')": ast.Cache(),
    "map(decode)": Map(),
    "map(self.decode, tf.data.AUTOTUNE)": Map(calls="auto"),
    "map(f, num_parallel_calls=AUTOTUNE, deterministic=False)": Map(
        calls="auto", deterministic=False
    ),
    "map(map_func=f, num_parallel_calls=4)": Map(calls=4),
    "map(calls=-1)": Map(calls="auto"),
    "enumerate": Map(),
    "enumerate(start=5)": Map(),
    "assert_cardinality(1000)": ast.AssertCardinality(count=1000),
    "prefetch": Prefetch(),
    "prefetch(tf.data.AUTOTUNE)": Prefetch(),
    "prefetch(None)": Prefetch(),
    "prefetch(buffer_size=2)": Prefetch(size=2),
    "with_options(shuffle_and_repeat_fusion=False, apply_default_optimizations=True)": WithOptions(
        fusion=False, optimizations=True
    ),
    "filter": Filter(),
    "filter(lambda x, y: g(x, '),') | y)": Filter(),
    "filter(kept='seen.txt')": Filter(kept="seen.txt"),
    "cache('/tmp/x')": opaque("cache(filename)"),
    "cache(filename='x')": opaque("cache(filename)"),
    "cache(filename)": opaque("cache(filename)"),
    "interleave(f, cycle_length=2)": opaque("interleave"),
}


@pytest.mark.parametrize("text", STAGES)
def test_a_stage_as_tf_data_writes_it(text: str) -> None:
    assert parse_stages(text) == ast.Pipeline(stages=(STAGES[text],))  # type: ignore[arg-type]


SOURCES: dict[str, Part] = {
    "train[:50%]+test": Read(spec="train[:50%]+test"),
    "train[:1_000] + test[3shard]": Read(spec="train[:1_000] + test[3shard]"),
    "'cache'": Read(spec="cache"),
    "cache[:5]": Read(spec="cache[:5]"),  # a split may be called like a stage
    "zip + map": Read(spec="zip + map"),
    "read(cache)": Read(spec="cache"),
    "read": Read(),
    "read()": Read(),
    "read(data=mnist:3.0.1)": Read(data="mnist:3.0.1"),
    "read(split=test, data='a b')": Read(spec="test", data="a b"),
    "read(train, interleave-cycle-length=4, host='1/4')": Read(
        spec="train", settings=(("interleave_cycle_length", 4), ("host", "1/4"))
    ),
    "read(train, host=1/4)": Read(spec="train", settings=(("host", "1/4"),)),
    "read(file_order=[a, 'b'])": Read(settings=(("file_order", ("a", "b")),)),
    "values(0, 1, 1)": ast.Values(values=(0, 1, 1)),
    "from_tensor_slices([0, 1, 1])": ast.Values(values=(0, 1, 1)),
    "from_generator(f)": opaque("from_generator"),
}


@pytest.mark.parametrize("text", SOURCES)
def test_a_source_as_it_is_typed(text: str) -> None:
    assert parse_stages(text) == ast.Pipeline(source=SOURCES[text])  # type: ignore[arg-type]


# A document beside the text that says the same.
@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("[]", "read"),
        ("[repeat: ]", "repeat"),
        ("[repeat: {count: }]", "repeat"),
        ("[repeat: {}]", "repeat"),
        ("[repeat: -1]", "repeat"),
        ("[{shuffle: {buffer-size: 9, seed: [1, 2]}}]", "shuffle(9, seed=(1, 2))"),
        ("[map: auto]", "map(calls=auto)"),
        ("[prefetch: 2]", "prefetch(2)"),
        ("[with-options: {shuffle_and_repeat_fusion: no}]", "with_options(fusion=False)"),
        ("[filter: seen.txt]", "filter(kept='seen.txt')"),
        ("[flat_map]", "flat_map"),
        ("[opaque: {call: f, reason: why}]", "opaque('f', 'why')"),
        ("['shuffle(9, seed=3)']", "shuffle(9, seed=3)"),
        ("[concatenate: {read: test, stages: [repeat: 2]}]", "concatenate(test | repeat(2))"),
        ("[concatenate: {other: test}]", "concatenate(test)"),
        ("[concatenate: {range: 3}]", "concatenate(range(3))"),
        ("[concatenate: {}]", "concatenate(read)"),
        ("[read: 'test[:5]']", "test[:5]"),
        ("test[:5]", "test[:5]"),
        ("[test]", "test"),
        ("[read: {spec: a, data: b, block: 2}]", "read(a, data=b, block=2)"),
        ("{read: a, data: b, block: 2}", "read(a, data=b, block=2)"),
        ("{read: {spec: a, block: 2}}", "read(a, block=2)"),
        ("{read: a, spec: a}", "a"),
        ("[range: 5]", "range(5)"),
        ("[values: [0, 1]]", "values(0, 1)"),
        ("[zip: [a, b]]", "zip(a, b)"),
        (
            "[choose_from_datasets: {inputs: [a, b], choices: {range: 2}}]",
            "choose_from_datasets([a, b], range(2))",
        ),
        (
            "[\"list_files('d', seed=3) | interleave(cycle_length=2)\", batch(3)]",
            "list_files('d', seed=3) | interleave(cycle_length=2) | batch(3)",
        ),
        (
            "[\"list_files('d', seed=3)\", interleave(cycle_length=2), batch: 3]",
            "list_files('d', seed=3) | interleave(cycle_length=2) | batch(3)",
        ),
        (
            "[list_files: {pattern: d, seed: 3}, interleave: {cycle_length: 2}, batch: 3]",
            "list_files('d', seed=3) | interleave(cycle_length=2) | batch(3)",
        ),
    ],
)
def test_a_document_says_what_a_text_does(document: str, text: str) -> None:
    assert from_yaml(document) == parse_stages(text)


def test_what_is_more_than_one_stage() -> None:
    assert parse_stages("batch(4, num_parallel_calls=2)").stages == (Batch(size=4), Map(calls=2))
    ahead = parse_stages("batch(4, num_parallel_calls=AUTOTUNE, deterministic=False)").stages
    assert ahead == (Batch(size=4), Map(calls="auto", deterministic=False))
    apart = parse_stages("rebatch(4, drop_remainder=True)").stages
    assert apart == (ast.Unbatch(), Batch(size=4, drop_remainder=True))
    source = parse_stages("choose_from_datasets(datasets=[a, b], choice_dataset=[0, 1, 0])").source
    assert isinstance(source, ast.ChooseFromDatasets)
    assert source.choices == ast.Pipeline(source=ast.Values(values=(0, 1, 0)))


def test_a_rebatch_is_a_batch_of_what_is_taken_apart() -> None:
    import tensorflow as tf

    sizes = [(count, first, then) for count in (0, 7, 12) for first in (1, 4) for then in (2, 5)]
    for (count, first, then), drop in counted((size, drop) for size in sizes for drop in (0, 1)):
        ds = tf.data.Dataset.range(count).shuffle(5, seed=3).batch(first)
        again = tf.data.Dataset.range(count).shuffle(5, seed=3).batch(first).unbatch()
        one, other = ds.rebatch(then, bool(drop)), again.batch(then, bool(drop))
        assert [list(b) for b in one.as_numpy_iterator()] == [
            list(b) for b in other.as_numpy_iterator()
        ]


@pytest.mark.parametrize("name", [call for call in ast.WHY_OPEN if "(" not in call])
def test_what_leaves_the_order_open_is_named_and_no_fault_of_the_text(name: str) -> None:
    pipeline = parse_stages(f"{name}(lambda x: f(x, [1, 2]), cycle_length=4)")
    assert (pipeline.stages or (pipeline.source,)) == (opaque(name),)


def test_every_split_of_the_catalog_is_a_source_as_it_is() -> None:
    datasets = [dataset for name in catalog_names() for dataset in catalog_datasets(name)]
    names = {split.name for dataset in datasets for split in dataset.splits}
    names |= {"val", "dev", "eval", "all", "valid", "unlabelled", "train_extra", "heldout"}
    for name in counted(sorted(names)):
        assert parse_stages(f"{name} | batch(2)").source == Read(spec=name)


def _is_read_back(pipeline: ast.Pipeline) -> None:
    text, document = text_of(pipeline), document_of(pipeline)
    assert parse_stages(text) == pipeline, text
    assert text_of(parse_stages(text)) == text
    assert pipeline_of(document) == pipeline, document
    assert pipeline_of(json.loads(json.dumps(document))) == pipeline
    if json.dumps(document).isprintable():
        assert from_yaml(yaml.safe_dump(document, sort_keys=False)) == pipeline


def test_what_is_written_is_read_back() -> None:
    assert check_cases(pipelines, _is_read_back, 60) >= in_this_run(30)
    assert document_of(ast.Pipeline()) == []


@pytest.mark.fuzz
def test_what_is_written_is_read_back_of_many() -> None:
    check_cases(pipelines, _is_read_back, FUZZ, fuzz=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cache | shufle(1000)", "at 'shufle(1000)': no stage 'shufle'; did you mean shuffle? sta"),
        ("cahe | repeat", "no stage 'cahe'; did you mean cache? A split of that name is written "),
        ("cache | train", "at 'train': no stage 'train';"),
        ("cache | range(3)", "at 'range(3)': range is a source, so it comes first"),
        ("batch(2) | list_files('d')", "is a source, so it comes first"),
        ("cache |", "at the end: a stage is needed"),
        ("", "at the end: a stage is needed"),
        ("|", "at '|': a stage is needed"),
        ("cache repeat", "at 'repeat': stages are parted by |"),
        ("shuffle(3).repeat(4)", "at '.repeat(4)': stages are parted by |"),
        ("shuffle(3", "at the end: a comma or a closing bracket is needed"),
        ("shuffle", "at 'shuffle': shuffle: buffer is needed"),
        ("shuffle(0)", "at 'shuffle(0)': shuffle: buffer=0: a number of elements from 1 to "),
        ("shuffle(buffr=3)", "at 'buffr=3)': shuffle: no argument 'buffr'; did you mean buffer? t"),
        ("shuffle(3, seed=1, seed=2)", "shuffle: seed is there twice"),
        ("shuffle(3, 4, True, 5)", "at '5)': shuffle: too many arguments by their place: 3 at mos"),
        ("shuffle(seed=1, 3)", "at '3)': shuffle: an argument by its place comes before those by"),
        ("shuffle('3')", 'shuffle: buffer="3": a whole number is needed'),
        ("shuffle(1e3)", "shuffle: buffer=1000.0: a whole number is needed"),
        ("repeat(0)", "repeat: count=0: nothing would be left"),
        ("map(lambda x: x)", "the name of a function, or nothing, is needed"),
        ("map(4)", "at '4)': the name of a function, or nothing, is needed; threads are calls=4"),
        ("cache(3)", "cache: a text is needed"),
        ("unbatch(3)", "at '3)': unbatch: too many arguments by their place: none"),
        ("zip()", "zip: inputs is needed"),
        (
            "choose_from_datasets(datasets=3)",
            "a list is needed, as [train | repeat, test | repeat]",
        ),
        ("concatenate(['a'])", "a whole number is needed"),
        ("read(split=|)", "a spec is needed, as train[:50%]"),
        ("repeat | shuffle(-2)", "shuffle: buffer=-2 (the whole dataset) of what repeats without"),
        ("range(1, 5)", "range counts from 0 by 1: range(stop)"),
        ("'train", "at ''train': the quote is not closed"),
        ("rebatch([3, 4])", "rebatch: batch: size=(3, 4): a whole number is needed"),
        ("shuffle(" + "9" * 200 + ")", "a number of at most 100 digits is needed"),
        ("a\x1b[31m | cache", r"at '\x1b[31m | cache'"),
        ("list_files('d') | interleave()", "cycle_length is needed"),
        ("list_files('d') | interleave(cycle_length=AUTOTUNE)", "cycle_length is needed"),
        ("list_files('d') | interleave(cycle_length=0)", "cycle_length=0: a number"),
        ("list_files('d') | interleave(cycle_length=1, block_length=0)", "block_length=0: a numbe"),
        ("list_files('d') | interleave(cycle_length=1, num_parallel_calls=2)", "TensorFlow refuse"),
        ("list_files('d') | interleave(cycle_length=1, deterministic=3)", "true or false"),
        ("list_files('d', seed='a')", 'list_files: seed="a": a whole number is needed'),
        ("list_files('d', shuffle=3)", "shuffle=3: true or false"),
        ("list_files(3)", "list_files: pattern=3: a text is needed"),
        ("TFRecordDataset('')", 'TFRecordDataset: filenames="": a name is needed'),
        ("TFRecordDataset('d', num_parallel_reads=-1)", "a number is needed"),
    ],
)
def test_what_is_wrong_in_a_text_is_said_with_its_place(text: str, said: str) -> None:
    message = error_line(lambda: parse_stages(text)) or ""
    assert said in message
    assert message.isprintable()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cache, shufle: 9]", "stage 2: no stage 'shufle'; did you mean shuffle?"),
        ("[cahe]", "stage 1: at 'cahe': no stage 'cahe'; did you mean cache?"),
        ("[shuffle: {bufer: 3}]", "shuffle: no argument 'bufer'; did you mean buffer?"),
        ("[shuffle: {buffer: 3, buffer_size: 4}]", "shuffle: buffer is there twice"),
        ("[shuffle: '3']", 'shuffle: buffer="3": a whole number is needed'),
        ("[shuffle]", "shuffle: buffer is needed"),
        ("[unbatch: 3]", "stage 1: unbatch: arguments are not taken"),
        ("[with_options: 3]", "with_options: arguments by their names are needed"),
        ("[cache: 3]", "cache: a text is needed"),
        ("[cache, range: 3]", "stage 2: range is a source; it comes first"),
        ("[cache, test]", "stage 2: at 'test': no stage 'test'"),
        ("[3]", "stage 1: a stage is needed, as cache or shuffle: 1000"),
        ("[{shuffle: 3, batch: 4}]", "stage 1: a stage is needed, as cache or shuffle: 1000"),
        ("[zip: 3]", "stage 1: zip: inputs: a list of inputs is needed"),
        ("[zip: [3]]", "a list of stages is needed, as [cache, shuffle: 1000, batch: 64]"),
        ("3", "a list of stages is needed"),
        ("{read: [a]}", "a spec is needed, as train[:50%]"),
        ("{read: a, spec: b}", "read: spec is there twice"),
        ("{read: {spec: a, block: 2}, block: 3}", "read: block is there twice"),
        ("{read: a, stages: [range: 3]}", "range is a source, and the mapping is one"),
    ],
)
def test_what_is_wrong_in_a_document_is_said_with_its_place(text: str, said: str) -> None:
    assert said in (error_line(lambda: from_yaml(text)) or "")


def test_hostile_texts_are_refused_in_time() -> None:
    many = 20_000
    hostile = ["zip(", "values[", "map(", "a+", "'", "|", "a["]
    texts = [
        *(text * many for text in hostile),
        "concatenate(" * many + "a" + ")" * many,
        "values(" + "[" * many,
        "a" + " " * many + "!",
        "filter(" + "(" * many,
        "filter(" + '"\\' * many,
        "shuffle(3, seed=" + "1" * many + ")",
        "x" * 1_000_001,
    ]
    begun = time.process_time()
    for text in texts:
        with pytest.raises(UsageError) as caught:
            parse_stages(text)
        assert len(str(caught.value)) < 600
    assert len(parse_stages(" | ".join(["map"] * many)).stages) == many
    assert time.process_time() - begun < 20


def test_a_document_within_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append({"concatenate": endless})
    read: dict[str, Any] = {}
    read["stages"] = read
    for document in (endless, read):
        with pytest.raises(UsageError, match="nested more than 20 deep"):
            pipeline_of(document)


def test_a_damaged_text_is_read_or_refused_in_a_line() -> None:
    put = st.sampled_from([*"()[]|,'\"=\\\0é0-", ""])
    damages = st.tuples(pipelines.map(text_of), st.integers(0, 400), put, st.integers(0, 3))

    def check(case: tuple[str, int, str, int]) -> None:
        text, at, put, removed = case
        at = min(at, len(text))
        damaged = text[:at] + put + text[at + removed :]
        if error_line(lambda: parse_stages(damaged)) is None:
            again = parse_stages(damaged)
            assert parse_stages(text_of(again)) == again

    check_cases(damages, check, 50)


_NAMES = st.sampled_from(
    ["read", "data", "stages", "shuffle", "zip", "concatenate", "inputs", "name", "choices"]
)
_NAMES |= st.sampled_from(["opaque", "sample_from_datasets", "weights", "buffer", "values"])
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=20,
)


def test_any_document_is_read_or_refused_in_a_line() -> None:
    def check(document: object) -> None:
        error_line(lambda: pipeline_of(document))

    check_cases(_ANYTHING, check, 60)


# Files that a script lists itself, as the settings of the reader that has their order.


@pytest.mark.parametrize(
    ("text", "data", "settings"),
    [
        (
            "list_files('d/*', seed=7) | interleave(cycle_length=4, block_length=2)",
            *("d/*", {"cycle": 4, "block": 2, "shuffle_files": True, "shuffle_seed": 7}),
        ),
        (
            "list_files(file_pattern='it\\'s/*') | interleave(TFRecordDataset, 3)",
            *("it's/*", {"cycle": 3, "block": 1, "shuffle_files": True}),
        ),
        (
            "list_files('d', shuffle=False, seed=3) | interleave(tf.data.TFRecordDataset, "
            "cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)",
            *("d", {"cycle": 4, "block": 1, "shuffle_files": False}),
        ),
        ("TFRecordDataset('d')", "d", {"cycle": 1, "block": 1, "shuffle_files": False}),
        (
            "TFRecordDataset(filenames='d', num_parallel_reads=5)",
            *("d", {"cycle": 5, "block": 1, "shuffle_files": False}),
        ),
        (  # without threads of its own it takes no notice
            "list_files('d', shuffle=False) | interleave(cycle_length=2, deterministic=False)",
            *("d", {"cycle": 2, "block": 1, "shuffle_files": False, "deterministic": True}),
        ),
        (
            "list_files('d', shuffle=False) | interleave(cycle_length=2, num_parallel_calls=2, "
            "deterministic=False)",
            *("d", {"cycle": 2, "block": 1, "shuffle_files": False, "deterministic": False}),
        ),
    ],
)
def test_files_that_are_listed_are_a_reader(text: str, data: str, settings: dict[str, Any]) -> None:
    pipeline = parse_stages(text)
    assert isinstance(pipeline.source, Read)
    assert (pipeline.source.listed, pipeline.source.spec) == (True, None)
    assert (pipeline.source.data, dict(pipeline.source.settings)) == (
        data,
        {"deterministic": True, **settings},
    )
    for whole in (f"{text} | batch(2)", f"zip({text} | batch(2), train)", f"concatenate({text})"):
        pipeline = parse_stages(whole)
        assert parse_stages(text_of(pipeline)) == pipeline
        assert pipeline_of(document_of(pipeline)) == pipeline
        assert ReadSettings(stages=pipeline).stages == pipeline


@pytest.mark.parametrize(
    "text",
    [
        "list_files",
        "list_files(pattern)",
        "list_files(['a', 'b'], seed=1) | interleave(cycle_length=2)",
        "list_files('d', seed=seed) | interleave(cycle_length=2)",
        "list_files('d', seed=1) | map | interleave(cycle_length=2)",
        "list_files('d', seed=1) | interleave(lambda f: read(f, 1), cycle_length=2)",
        "list_files('d', seed=1) | interleave(cycle_length=len(files))",
        "TFRecordDataset(files)",
        "TFRecordDataset(f'{folder}/*')",
    ],
)
def test_what_code_decides_leaves_the_order_open(text: str) -> None:
    source = parse_stages(text).source
    assert isinstance(source, ast.Opaque)
    assert text_of(parse_stages(text)).startswith(source.call)
