"""Stages in YAML and JSON: read, written, refused with the place of what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.files.yaml_text import parse_yaml
from shardctl.stages.stages import (
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
    Shuffle,
    Values,
    WithOptions,
    Zip,
)
from shardctl.stages.text import document_of, parse_stages, pipeline_of
from tests.cases import check_cases
from tests.stages.any_pipelines import pipelines
from tests.strategies import error_line


def _read(text: str) -> Pipeline:
    return pipeline_of(parse_yaml(text.encode(), source="x"))


def test_the_list_of_the_contract() -> None:
    assert _read("[cache, shuffle: {buffer: 1000, seed: 7}, repeat: 3, batch: 64]") == Pipeline(
        stages=(Cache(), Shuffle(buffer=1000, seed=7), Repeat(count=3), Batch(size=64))
    )


def test_a_mixture() -> None:
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
    assert _read(mixture) == parse_stages(
        "sample_from_datasets([train[:50%] | shuffle(100) | repeat, "
        "read(test, data='mnist', shuffle_seed=3) | repeat | take(5), other | repeat, "
        "more | repeat], weights=[0.5, 0.25, 0.25, 0], stop_on_empty=True) "
        "| batch(4, drop_remainder=True)"
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[repeat: ]", Repeat()),
        ("[repeat: {count: }]", Repeat()),
        ("[repeat: {}]", Repeat()),
        ("[repeat: -1]", Repeat()),
        ("[{shuffle: {buffer-size: 9, seed: [1, 2]}}]", Shuffle(buffer=9, seed=(1, 2))),
        ("[map: auto]", Map(calls="auto")),
        ("[prefetch: 2]", Prefetch(size=2)),
        ("[with-options: {shuffle_and_repeat_fusion: no}]", WithOptions(fusion=False)),
        ("[filter: seen.txt]", Filter(kept="seen.txt")),
        ("[flat_map]", parse_stages("flat_map").stages[0]),
        ("[opaque: {call: f, reason: why}]", Opaque(call="f", reason="why")),
        ("['shuffle(9, seed=3)']", Shuffle(buffer=9, seed=3)),
        (
            "[concatenate: {read: test, stages: [repeat: 2]}]",
            Concatenate(
                other=Pipeline(source=Read(spec="test"), stages=(Repeat(count=2),)),
            ),
        ),
        ("[concatenate: {other: test}]", Concatenate(other=Pipeline(source=Read(spec="test")))),
        ("[concatenate: {range: 3}]", Concatenate(other=Pipeline(source=Range(stop=3)))),
        ("[concatenate: {}]", Concatenate(other=Pipeline())),
    ],
)
def test_a_stage_as_yaml_has_it(text: str, part: object) -> None:
    assert _read(text) == Pipeline(stages=(part,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("[read: 'test[:5]']", Read(spec="test[:5]")),
        ("test[:5]", Read(spec="test[:5]")),
        ("[test]", Read(spec="test")),
        (
            "[read: {spec: a, data: b, block: 2}]",
            Read(spec="a", data="b", settings=(("block", 2),)),
        ),
        ("{read: a, data: b, block: 2}", Read(spec="a", data="b", settings=(("block", 2),))),
        ("{read: {spec: a, block: 2}}", Read(spec="a", settings=(("block", 2),))),
        ("[range: 5]", Range(stop=5)),
        ("[values: [0, 1]]", Values(values=(0, 1))),
        ("[zip: [a, b]]", parse_stages("zip(a, b)").source),
        (
            "[choose_from_datasets: {inputs: [a, b], choices: {range: 2}}]",
            parse_stages("choose_from_datasets([a, b], range(2))").source,
        ),
    ],
)
def test_a_source_comes_first(text: str, source: object) -> None:
    assert _read(text) == Pipeline(source=source)  # type: ignore[arg-type]


def test_an_empty_list_is_the_reader_alone() -> None:
    assert _read("[]") == Pipeline()
    assert document_of(Pipeline()) == []


def test_what_is_written_is_read_back_from_json_and_yaml() -> None:
    import yaml

    def check(pipeline: Pipeline) -> None:
        document = document_of(pipeline)
        assert pipeline_of(document) == pipeline, document
        assert pipeline_of(json.loads(json.dumps(document))) == pipeline
        if json.dumps(document).isprintable():
            assert _read(yaml.safe_dump(document, sort_keys=False)) == pipeline

    check_cases(pipelines, check, 30)


@pytest.mark.fuzz
def test_what_is_written_is_read_back_of_many() -> None:
    from tests.cases import FUZZ

    def check(pipeline: Pipeline) -> None:
        assert pipeline_of(json.loads(json.dumps(document_of(pipeline)))) == pipeline

    check_cases(pipelines, check, FUZZ, fuzz=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cache, shufle: 9]", "stage 2: no stage 'shufle'; did you mean shuffle?"),
        ("[cahe]", "stage 1: at 'cahe': no stage 'cahe'; did you mean cache?"),
        ("[shuffle: 0]", "stage 1: shuffle: buffer=0: a number of elements"),
        ("[shuffle: {bufer: 3}]", "shuffle: no argument 'bufer'; did you mean buffer?"),
        ("[shuffle: {buffer: 3, buffer_size: 4}]", "shuffle: buffer is there twice"),
        ("[shuffle: '3']", 'shuffle: buffer="3": a whole number is needed'),
        ("[shuffle]", "shuffle: buffer is needed"),
        ("[unbatch: 3]", "stage 1: unbatch: arguments are not taken"),
        ("[with_options: 3]", "with_options: arguments by their names are needed"),
        ("[cache: 3]", "cache: a text is needed"),
        ("[cache, range: 3]", "stage 2: range is a source; it comes first"),
        ("[cache, test]", "stage 2: at 'test': no stage 'test'"),
        ("[repeat: 0]", "repeat: count=0: nothing would be left"),
        ("[3]", "stage 1: a stage is needed, as cache or shuffle: 1000"),
        ("[{shuffle: 3, batch: 4}]", "stage 1: a stage is needed, as cache or shuffle: 1000"),
        ("[zip: 3]", "stage 1: zip: inputs: a list of inputs is needed"),
        ("[zip: [3]]", "a list of stages is needed, as [cache, shuffle: 1000, batch: 64]"),
        ("3", "a list of stages is needed"),
        ("{read: [a]}", "a spec is needed, as train[:50%]"),
        ("{read: a, stages: [range: 3]}", "range is a source, and the mapping is one"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        _read(text)
    assert said in str(caught.value)


_NAMES = st.sampled_from(
    ["read", "data", "stages", "shuffle", "zip", "concatenate", "inputs", "name"]
)
_NAMES |= st.sampled_from(
    ["choices", "opaque", "sample_from_datasets", "weights", "buffer", "values"]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=20,
)


def test_any_document_is_read_or_refused_in_a_line() -> None:
    check_cases(_ANYTHING, _is_read_or_refused, 60)


def _is_read_or_refused(document: object) -> None:
    error_line(lambda: pipeline_of(document))


def test_a_document_within_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append({"concatenate": endless})
    with pytest.raises(UsageError, match="nested more than 20 deep"):
        pipeline_of(endless)
    read: dict[str, Any] = {}
    read["stages"] = read
    with pytest.raises(UsageError, match="nested more than 20 deep"):
        pipeline_of(read)


def test_a_mixture_of_mixtures_is_a_mixture() -> None:
    inner = SampleFromDatasets(inputs=(Pipeline(), Pipeline(stages=(Repeat(),))), seed=3)
    outer = ChooseFromDatasets(
        inputs=(Pipeline(source=inner), Pipeline(source=Zip(inputs=(Pipeline(),)))),
        choices=Pipeline(source=Range(stop=2)),
    )
    pipeline = Pipeline(source=outer)
    assert pipeline_of(document_of(pipeline)) == pipeline
