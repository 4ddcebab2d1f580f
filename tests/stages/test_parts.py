"""Stages and sources take what tf.data takes; readers and parts are found wherever they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.stages import stages as ast
from shardctl.stages.pipelines import parts_of, readers_of, sources_of, with_changed, with_seeds
from shardctl.stages.text import parse_stages, text_of
from shardctl.verbs.lint.context import count_of
from tests.cases import check_cases, counted
from tests.pipelines.real_pipelines import real_dataset
from tests.stages.any_pipelines import pipelines

MOST = 2**63 - 1
TWO = (ast.Pipeline(), ast.Pipeline())


MADE: dict[str, Callable[[Any], object]] = {
    "shuffle: buffer=0: a number of elements from 1 to": lambda s: s.Shuffle(buffer=0),
    "shuffle: buffer=-1: ": lambda s: s.Shuffle(buffer=-1),
    "shuffle: buffer=1.5: a whole number is needed": lambda s: s.Shuffle(buffer=1.5),
    "a seed, or the two seeds of the kernel": lambda s: s.Shuffle(buffer=3, seed=(1, 2, 3)),
    "shuffle: reshuffle=1: true or false": lambda s: s.Shuffle(buffer=3, reshuffle=1),
    "repeat: count=0: nothing would be left": lambda s: s.Repeat(count=0),
    "repeat: count=-2: 1 or more is needed, or -1": lambda s: s.Repeat(count=-2),
    "batch: size=0: a number from 1 to": lambda s: s.Batch(size=0),
    "shard: num_shards=0: a number from 1": lambda s: s.Shard(num_shards=0, index=0),
    "shard: index=-1: a number from 0 to": lambda s: s.Shard(num_shards=2, index=-1),
    "shard: index=2 of num_shards=2: shards": lambda s: s.Shard(num_shards=2, index=2),
    "take: count=-2: a number from 0 to": lambda s: s.Take(count=-2),
    f"skip: count={MOST + 1}: a number from 0 to": lambda s: s.Skip(count=MOST + 1),
    'map: calls=0: a number from 1 is needed, or "auto"': lambda s: s.Map(calls=0),
    'map: calls="many": a whole number is needed': lambda s: s.Map(calls="many"),
    'prefetch: size=-2: a number from 0 is needed, or "auto"': lambda s: s.Prefetch(size=-2),
    "range: stop=-1: a number from 0 to": lambda s: s.Range(stop=-1),
    "values: values=(1.5,): a whole number is needed": lambda s: s.Values(values=(1.5,)),
    "zip: an input, or several, is needed": lambda s: s.Zip(inputs=()),
    "a Pipeline is needed at index 0": lambda s: s.Zip(inputs=(s.Range(stop=1),)),
    "a Pipeline is needed": lambda s: s.Concatenate(other=s.Range(stop=1)),
    'filter: kept="": a name is needed': lambda s: s.Filter(kept=""),
    'opaque: call="": a name is needed': lambda s: s.Opaque(call=""),
    "read: spec=3: a text is needed": lambda s: s.Read(spec=3),
    "read: settings=3: settings by their names are needed": lambda s: s.Read(settings=3),
    "a is there twice": lambda s: s.Read(settings=(("a", 1), ("a", 2))),
    "sample_from_datasets: 1 weight of 2 inputs: one each is needed": lambda s: (
        s.SampleFromDatasets(inputs=TWO, weights=(1.0,))
    ),
    "an input, or several": lambda s: s.ChooseFromDatasets(inputs=(), choices=s.Pipeline()),
    "a seed, or the two seeds": lambda s: s.Shuffle(buffer=3, seed=(1, 2**63)),
    'read: settings="ab": settings by': lambda s: s.Read(settings="ab"),
    "pairs of a name and a value": lambda s: s.Read(settings=[("a",)]),
    "Repeat: no source of a pipeline": lambda s: s.Pipeline(source=s.Repeat()),
    "Range: no stage of a pipeline": lambda s: s.Pipeline(stages=(s.Range(stop=3),)),
}


@pytest.mark.parametrize("said", MADE)
def test_what_no_call_of_tf_data_takes_is_refused(said: str) -> None:
    with pytest.raises(UsageError) as caught:
        MADE[said](ast)
    assert said in str(caught.value)


@pytest.mark.parametrize("weights", [(0.0, 0.0), (1.0, -1.0), (1.0, math.nan), (1e308, 1e308)])
def test_weights_are_numbers_with_a_sum(weights: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="one is more than 0"):
        ast.SampleFromDatasets(inputs=TWO, weights=weights)


def test_values_are_kept_as_pythons_own() -> None:
    made: Any = ast
    three, less, several = np.int64(3), np.int32(-1), np.array([1, 2])
    assert made.Shuffle(buffer=three, seed=three) == ast.Shuffle(buffer=3, seed=3)
    assert type(made.Shuffle(buffer=three).buffer) is int
    assert made.Repeat(count=less) == ast.Repeat()
    assert made.Values(values=several).values == (1, 2)
    assert made.SampleFromDatasets(inputs=[ast.Pipeline()], weights=[1]).weights == (1.0,)
    assert made.Shuffle(buffer=MOST, seed=[1, -2]).seed == (1, -2)
    assert made.Shuffle(buffer=3, seed=-(2**70)).seed == -(2**70)
    assert made.Map(calls="auto") == made.Map(calls=-1)
    assert made.Pipeline(stages=[ast.Repeat()]).stages == (ast.Repeat(),)
    assert made.Prefetch(size=-1) == ast.Prefetch()
    settings = made.Read(settings={"file_order": ["a"]}).settings
    assert settings == made.Read(settings=[["file_order", ["a"]]]).settings
    assert settings == (("file_order", ("a",)),)


def test_tensorflow_refuses_what_is_refused_here() -> None:
    """But a count below -1, which is -1 for it, and a repeat of 0, by what it follows."""
    import tensorflow as tf

    made: Any = {"shuffle": "buffer", "batch": "size", "prefetch": "size"}
    made |= dict.fromkeys(("take", "skip", "repeat"), "count")
    calls = [(name, {key: n}) for name, key in made.items() for n in (-2, -1, 0, 1, 2, 9)]
    calls += [
        ("shard", {"num_shards": n, "index": i}) for n in (0, 1, 2, 3) for i in (-1, 0, 1, 2, 3)
    ]
    more = [("take", -2), ("skip", -2), ("repeat", -2), ("repeat", 0)]
    for name, arguments in counted(calls):
        taken = is_taken_here = True
        try:
            list(getattr(tf.data.Dataset.range(6), name)(*arguments.values()).take(9))
        except (ValueError, tf.errors.OpError):
            taken = False
        try:
            getattr(ast, name.title())(**arguments)
        except UsageError:
            is_taken_here = False
        is_more = (name, *arguments.values()) in more
        assert is_taken_here is (taken and not is_more), (name, arguments)


def test_counts_are_the_cardinalities_of_tensorflow() -> None:
    ends = ("range(11)", "range(0)", "range(3) | repeat", "values(1, 2)")
    calls = ["take(5)", "take(99)", "take(-1)", "skip(5)", "skip(99)", "skip(-1)", "unbatch"]
    calls += ["repeat(0)", "repeat(3)", "repeat", "shard(3, 1)", "shard(3, 2)", "shuffle(4)"]
    calls += ["batch(4)", "batch(4, drop_remainder=True)", "batch(11)", "map", "cache"]
    texts = [f"{end} | {call}" for end, call in product(ends, calls)]
    texts += [f"zip({one}, {other})" for one, other in product(ends, ends)]
    texts += [f"{one} | concatenate({other})" for one, other in product(ends, ends)]
    names = {-1: math.inf, -2: None}
    for text in counted(texts):
        try:
            pipeline = parse_stages(text)
            real = int(real_dataset(pipeline, lambda read: None).cardinality())
        except (UsageError, ValueError, AttributeError):
            continue
        assert count_of(pipeline, lambda read: None) == names.get(real, real), text


@pytest.mark.parametrize(
    ("text", "endless"),
    [
        ("repeat", True),
        ("repeat(9)", False),
        ("repeat | take(3)", False),
        ("repeat | take(-1) | batch(3) | map", True),
        ("concatenate(repeat)", True),
        ("repeat | flat_map", False),  # nobody knows
        ("range(3) | repeat", True),
        ("zip(a | repeat, b)", False),
        ("zip(a | repeat, b | repeat)", True),
        ("sample_from_datasets([a | repeat, b])", True),
        ("sample_from_datasets([a | repeat, b], stop_on_empty=True)", False),
        ("sample_from_datasets([a | repeat, b | repeat], stop_on_empty=True)", True),
        ("choose_from_datasets([a | repeat, b | repeat], range(2))", False),
        ("choose_from_datasets([a | repeat, b | repeat], range(2) | repeat)", True),
        ("choose_from_datasets([a | repeat, b], range(2) | repeat)", False),
    ],
)
def test_what_never_ends(text: str, endless: bool) -> None:
    assert parse_stages(text).never_ends is endless
    if not endless:
        assert parse_stages(f"{text} | shuffle(-2) | skip(-1)")
        return
    for stage, said in (("shuffle(-2)", "the buffer never fills"), ("skip(-1)", "nothing comes")):
        with pytest.raises(UsageError, match=said):
            parse_stages(f"{text} | {stage}")


def test_readers_are_in_the_order_of_the_script_and_parts_of_all_levels() -> None:
    pipeline = parse_stages(
        "sample_from_datasets([a | concatenate(b), zip(c, d)], seed=1) | concatenate(e | repeat(2))"
    )
    assert [read.spec for read in readers_of(pipeline)] == ["a", "b", "c", "d", "e"]
    pipeline = parse_stages("zip(a | shuffle(3, seed=1), b | batch(2)) | map | concatenate(c)")
    names = [part.name for part in parts_of(pipeline)]
    assert names == ["zip", "read", "shuffle", "read", "batch", "map", "concatenate", "read"]


def test_choices_are_no_examples_and_what_is_shared_is_one_source() -> None:
    pipeline = parse_stages("choose_from_datasets([a, b], choices=range(2) | repeat)")
    assert [source.name for source in sources_of(pipeline)] == ["read", "read"]
    names = {part.name for part in parts_of(pipeline, choices=True)}
    assert names - {part.name for part in parts_of(pipeline)} == {"range", "repeat"}
    pipeline = parse_stages("zip(shared('x', a), shared('x', a))")
    assert readers_of(pipeline) == [ast.Read(spec="a")]


def test_every_reader_and_every_file_of_a_pipeline_is_changed() -> None:
    text = """zip({}a | concatenate({}b | filter(kept='{}x')), shared('s', {}c),
        sample_from_datasets([{}d, zip({}e)]), choose_from_datasets([{}f], choices={}g | repeat))
        | concatenate({}h) | filter | filter(kept='{}y')"""
    names = iter("abcdefgh")

    def read(part: ast.Read) -> ast.Read:
        assert part.spec == next(names)
        return replace(part, spec=f"new_{part.spec}")

    before, after = (parse_stages(text.format(*[new] * 10)) for new in ("", "new_"))
    assert with_changed(before, read=read, kept=lambda path: f"new_{path}") == after
    check_cases(pipelines, _is_as_it_was, 50)


def _is_as_it_was(pipeline: ast.Pipeline) -> None:
    assert with_changed(pipeline) == pipeline


def test_what_has_no_seed_gets_one_and_what_is_shared_the_same() -> None:
    text = "zip(shared('x', shuffle(9)), shared('x', shuffle(9)) | skip(1)) | shuffle(3, seed=8)"
    assert text_of(with_seeds(parse_stages(text))) == (
        "zip(shared('x', pipeline=shuffle(9, seed=1)), "
        "shared('x', pipeline=shuffle(9, seed=1)) | skip(1)) | shuffle(3, seed=8)"
    )
