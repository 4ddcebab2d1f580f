"""Readers and parts of a pipeline, wherever they are in it."""

from __future__ import annotations

from shardctl.stages.pipelines import parts_of, readers_of, sources_of
from shardctl.stages.stages import Pipeline, Read, Repeat, Shared, Zip
from shardctl.stages.text import parse_stages


def test_readers_are_in_the_order_of_the_script() -> None:
    pipeline = parse_stages(
        "sample_from_datasets([a | concatenate(b), zip(c, d)], seed=1) | concatenate(e | repeat(2))"
    )
    assert [read.spec for read in readers_of(pipeline)] == ["a", "b", "c", "d", "e"]


def test_choices_are_no_examples() -> None:
    pipeline = parse_stages("choose_from_datasets([a, b], choices=range(2) | repeat)")
    assert [source.name for source in sources_of(pipeline)] == ["read", "read"]
    assert not any(isinstance(part, Repeat) for part in parts_of(pipeline))
    assert any(isinstance(part, Repeat) for part in parts_of(pipeline, choices=True))


def test_what_is_shared_is_one_source() -> None:
    shared = Shared(label="x", pipeline=Pipeline(source=Read(spec="a")))
    pipeline = Pipeline(source=Zip(inputs=(Pipeline(source=shared), Pipeline(source=shared))))
    assert readers_of(pipeline) == [Read(spec="a")]


def test_parts_are_those_of_all_levels() -> None:
    pipeline = parse_stages("zip(a | shuffle(3, seed=1), b | batch(2)) | map | concatenate(c)")
    names = [part.name for part in parts_of(pipeline)]
    assert names == ["zip", "read", "shuffle", "read", "batch", "map", "concatenate", "read"]
