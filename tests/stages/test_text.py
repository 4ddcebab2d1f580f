"""Stages as text and as a document: read, written, refused with the place of what is wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.files.parse import parse_yaml
from shardctl.metadata.dataset_names import catalog_datasets, catalog_names
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages import stages as ast
from shardctl.stages.stages import Batch, Read, Shuffle
from shardctl.stages.text import document_of, parse_stages, pipeline_of, text_of
from tests.cases import FUZZ, check_cases, counted, in_this_run
from tests.golden import assert_answers
from tests.stages.any_pipelines import pipelines
from tests.strategies import error_line

GOLDEN = Path(__file__).parent / "golden"


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


def said(text: str) -> str:
    """Return the document that a text is, with the settings of files that are listed."""
    pipeline = parse_stages(text)
    source, document = pipeline.source, json.dumps(document_of(pipeline))
    is_listed = isinstance(source, Read) and source.listed
    return f"{document} {dict(source.settings)}" if is_listed else document  # type: ignore[attr-defined]


def test_a_text_says_what_it_always_did() -> None:
    assert_answers(GOLDEN / "texts.txt", said)
    for text, rule in (
        ("", "at the end: a stage is needed"),
        ("shuffle(" + "9" * 200 + ")", "a number of at most 100 digits is needed"),
        ("a\x1b[31m | cache", r"at '\x1b[31m | cache'"),
    ):
        assert rule in (error_line(lambda text=text: parse_stages(text)) or "")  # type: ignore[misc]


def test_a_document_says_what_a_text_does() -> None:
    assert_answers(GOLDEN / "documents.txt", lambda text: text_of(from_yaml(text)))


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
    check_cases(pipelines, _is_read_back, FUZZ)


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


def test_files_that_are_listed_are_a_reader_wherever_they_are() -> None:
    text = "list_files('d/*', seed=7) | interleave(cycle_length=4, block_length=2)"
    for whole in (f"{text} | batch(2)", f"zip({text} | batch(2), train)", f"concatenate({text})"):
        pipeline = parse_stages(whole)
        assert parse_stages(text_of(pipeline)) == pipeline
        assert pipeline_of(document_of(pipeline)) == pipeline
        assert ReadSettings(stages=pipeline).stages == pipeline
