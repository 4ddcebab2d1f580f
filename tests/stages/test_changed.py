"""Every reader and every file of a pipeline is changed, wherever it is."""

from __future__ import annotations

from dataclasses import replace

from shardctl.stages.pipelines import with_changed, with_seeds
from shardctl.stages.stages import Pipeline, Read
from shardctl.stages.text import parse_stages, text_of
from tests.cases import check_cases
from tests.stages.any_pipelines import pipelines


def test_readers_everywhere() -> None:
    text = """zip(a | concatenate(b | filter(kept='x')), shared('s', c),
                  sample_from_datasets([d, zip(e)]), choose_from_datasets([f], choices=g | repeat))
              | concatenate(h) | filter | filter(kept='y')"""
    names = iter("abcdefgh")

    def read(part: Read) -> Read:
        assert part.spec == next(names)
        return replace(part, spec=f"{part.spec}{part.spec}")

    changed = with_changed(parse_stages(text), read=read, kept=lambda path: f"{path}{path}")
    expected = text.replace("'x'", "'xx'").replace("'y'", "'yy'")
    for name in "abcdefgh":
        for before, after in (("(", "("), (" ", " "), ("[", "[")):
            for end in " |),]":
                expected = expected.replace(f"{before}{name}{end}", f"{after}{name * 2}{end}")
    expected = expected.replace("choices=g ", "choices=gg ")
    assert changed == parse_stages(expected)


def test_nothing_is_changed_where_nothing_is_asked() -> None:
    def check(pipeline: Pipeline) -> None:
        assert with_changed(pipeline) == pipeline

    check_cases(pipelines, check, 50)


def test_what_has_no_seed_gets_one_and_what_is_shared_the_same() -> None:
    text = "zip(shared('x', shuffle(9)), shared('x', shuffle(9)) | skip(1)) | shuffle(3, seed=8)"
    seeded = with_seeds(parse_stages(text))
    assert text_of(seeded) == (
        "zip(shared('x', pipeline=shuffle(9, seed=1)), "
        "shared('x', pipeline=shuffle(9, seed=1)) | skip(1)) | shuffle(3, seed=8)"
    )
