"""What rules about settings find in stages that no settings mean, and the nearest they do not."""

from __future__ import annotations

import pytest

from shardctl.stages.text import parse_stages
from tests.verbs.lint.rules.rule_cases import Case, Row, case, staged

# A take first, so that no settings mean the same.
SHUFFLE = "take(6000) | shuffle(2000, seed=1)"
TWICE = "sample_from_datasets([train | shuffle(9, seed={}), train | shuffle(9, seed={})], seed=5)"
CASES: tuple[Row, ...] = (
    ("SC001", staged("take(9) | repeat(2)"), staged("take(9)")),
    ("SC001", staged("take(6000) | repeat"), staged(f"{SHUFFLE} | repeat")),
    (
        "SC001",
        staged(f"{SHUFFLE[:-1]}, reshuffle=False) | repeat(2)"),
        staged(f"take(9) | repeat(2) | {SHUFFLE[:-1]}, reshuffle=False)"),
    ),
    ("SC001", staged("take(9) | repeat(2)"), staged("take(9) | repeat(2)", shuffle_seed=1)),
    (
        "SC001",
        staged("sample_from_datasets([train | repeat, test | repeat], seed=1)"),
        staged(
            "sample_from_datasets([train | repeat, test | repeat], seed=1) | shuffle(9, seed=1)"
        ),
    ),
    ("SC002", staged("take(6000) | shuffle(20, seed=1)"), staged(SHUFFLE)),
    ("SC002", staged("take(9) | shuffle(20, seed=1)"), staged("take(9) | shuffle(-2, seed=1)")),
    ("SC002", staged("shuffle(20, seed=1) | take(9)"), staged(f"{SHUFFLE} | shuffle(20, seed=1)")),
    ("SC003", staged("take(9) | repeat(2)", shuffle_seed=1), staged("take(9)", shuffle_seed=1)),
    ("SC005", staged("take(9) | shuffle(1, seed=1)"), staged("take(9) | shuffle(2, seed=1)")),
    (
        "SC007",
        staged(f"{SHUFFLE} | map(calls=2, deterministic=False)"),
        staged(f"{SHUFFLE} | map(calls=1, deterministic=False)"),
    ),
    (
        "SC007",
        staged(f"{SHUFFLE} | with_options(deterministic=False)"),
        staged(f"{SHUFFLE} | with_options(deterministic=True)"),
    ),
    (
        "SC009",
        staged("map | shuffle(-2, seed=1) | skip(1)", repeat_files=True, shuffle_seed=1),
        staged("take(99) | shuffle(-2, seed=1) | skip(1)", repeat_files=True, shuffle_seed=1),
    ),
    ("SC014", staged(SHUFFLE, loop="keras-fit"), staged(f"{SHUFFLE} | repeat", loop="keras-fit")),
    ("SC014", staged(SHUFFLE, loop="keras-fit"), staged(f"filter | {SHUFFLE}", loop="keras-fit")),
    (
        "SC015",
        staged(f"{SHUFFLE} | map | repeat(2)", pass_index=1),
        staged(f"{SHUFFLE} | repeat(2)", pass_index=1),
    ),
    (
        "SC015",
        staged(f"{SHUFFLE} | batch(2) | repeat(2)", pass_index=1),
        staged(f"{SHUFFLE} | batch(2) | repeat(2)"),
    ),
    ("SC017", staged("take(9) | batch(2)"), staged(f"{SHUFFLE} | batch(2)")),
    ("SC017", staged("take(9) | batch(2)"), staged("take(9) | batch(2)", shuffle_seed=1)),
    (
        "SC017",
        case("train", stages=parse_stages("zip(train, train | shuffle(9, seed=1))")),
        case("train", stages=parse_stages("zip(test, train | shuffle(9, seed=1))")),
    ),
    ("SC046", staged("map | take(99) | batch(2)"), staged("skip(1) | take(99) | batch(2)")),
    ("SC046", staged("take(99) | batch(2)"), staged("take(99) | batch(2)", cycle=1)),
    ("SC046", staged("take(99)"), staged("take(6400) | skip(1)")),
    (
        "SC051",
        staged("skip(1) | batch(8, drop_remainder=True)", evaluated=("test",)),
        staged("skip(8) | batch(8, drop_remainder=True)", evaluated=("test",)),
    ),
    (
        "SC051",
        staged("skip(1) | batch(8, drop_remainder=True)", evaluated=("test",)),
        staged("skip(1) | batch(8)", evaluated=("test",)),
    ),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


CLEAN = (
    "cache | shuffle(2000, seed=1) | repeat | batch(64) | prefetch",
    "map(calls='auto') | cache | shuffle(2000, seed=1) | map | batch(64) | repeat | take(500)",
    "shuffle(2000, seed=1) | repeat(3) | batch(64, drop_remainder=True) | prefetch(2)",
    "shuffle(2000, seed=1) | map(calls=4) | batch(64) | prefetch",
    "take(6000) | cache | shuffle(2000, seed=1) | batch(64)",
    "shard(2, 0) | map | cache | shuffle(2000, seed=1) | repeat | batch(64)",
    "sample_from_datasets([train[:50%] | shuffle(900, seed=1) | repeat, train[50%:] | "
    "shuffle(900, seed=2) | repeat], weights=[0.7, 0.3], seed=4) | shuffle(1000, seed=3) | "
    "batch(64) | prefetch",
    "choose_from_datasets([train[:50%] | shuffle(900, seed=1) | repeat, train[50%:] | "
    "shuffle(900, seed=2) | repeat], choices=range(2) | repeat) | batch(64)",
)


@pytest.mark.parametrize("text", CLEAN)
def test_a_common_pipeline_is_clean(text: str) -> None:
    # The examples are interleaved from 64 files; one file that is not shuffled before.
    found = staged(text, layout={"train": (100,) * 12}).lint().findings
    assert [(one.rule.code, one.why) for one in found] == []


def test_what_helps_is_said_in_stages() -> None:
    for text in ("take(9)", "take(9) | repeat(2)", "take(6000) | shuffle(2000)"):
        for found in staged(text).lint().findings:
            assert "--buffer" not in found.fix
            assert "buffer=" not in found.fix
            assert found.settings[-1] == "stages"
