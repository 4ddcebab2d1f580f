"""Stages and sources take what tf.data takes; readers and parts are found wherever they are."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.errors import UsageError
from shardctl.stages import stages as ast
from shardctl.stages.pipelines import parts_of, readers_of, sources_of, with_changed, with_seeds
from shardctl.stages.text import parse_stages, text_of
from shardctl.verbs.lint.context import count_of
from tests.cases import check_cases, counted
from tests.golden import assert_answers
from tests.pipelines.real_pipelines import real_dataset
from tests.stages.any_pipelines import pipelines
from tests.strategies import error_line

MOST = 2**63 - 1


GOLDEN = Path(__file__).parent / "golden"


def test_what_no_call_of_tf_data_takes_is_refused() -> None:
    names = {**vars(ast), "TWO": (ast.Pipeline(), ast.Pipeline())}
    assert_answers(GOLDEN / "made.txt", lambda question: repr(eval(question, names)))


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


def _ends(text: str) -> str:
    """Return whether a pipeline never ends, and what is said of one behind which nothing comes."""
    said = [str(parse_stages(text).never_ends)]
    for stage in ("shuffle(-2)", "skip(-1)"):
        said.append(error_line(lambda last=stage: parse_stages(f"{text} | {last}")) or "taken")  # type: ignore[misc]
    return "\n".join(said)


def test_what_never_ends() -> None:
    assert_answers(GOLDEN / "endless.txt", _ends)


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
