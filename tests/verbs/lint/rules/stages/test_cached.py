"""SC073 and SC074: what each finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.stages.text import parse_stages
from shardctl.verbs.lint.rules import stages
from tests.verbs.lint.rules.rule_cases import Case, Row, case, codes_of, staged

SHUFFLE = "shuffle(2000, seed=1)"
CASES: tuple[Row, ...] = (
    ("SC073", staged(f"{SHUFFLE} | cache | repeat(3)"), staged(f"cache | {SHUFFLE} | repeat(3)")),
    ("SC073", staged(f"{SHUFFLE} | cache"), staged(f"{SHUFFLE} | cache | {SHUFFLE}")),
    (
        "SC073",
        staged(f"{SHUFFLE} | cache"),
        staged("shuffle(2000, seed=1, reshuffle=False) | cache"),
    ),
    ("SC073", staged("cache", shuffle_seed=1), staged("cache")),
    ("SC073", staged("cache", shuffle_seed=1), staged("cache", shuffle_seed=1, reshuffle=False)),
    (
        "SC073",
        staged(f"sample_from_datasets([train | {SHUFFLE} | cache, test | repeat], seed=1)"),
        staged(
            f"sample_from_datasets([train | {SHUFFLE} | cache, test | repeat], seed=1) | {SHUFFLE}"
        ),
    ),
    ("SC074", staged("cache | take(1000)"), staged("take(1000) | cache")),
    ("SC074", staged("cache | take(6399)"), staged("cache | take(6400)")),
    ("SC074", staged("cache | batch(64) | take(99)"), staged("cache | batch(64) | take(100)")),
    ("SC074", staged("cache | skip(399) | take(6000)"), staged("cache | skip(399) | take(6001)")),
    # A buffer reads ahead of what it hands out; prefetch may read on as it likes.
    (
        "SC074",
        staged("cache | shuffle(400, seed=1) | take(6000)"),
        staged(f"cache | {SHUFFLE} | take(6000)"),
    ),
    ("SC074", staged("cache | prefetch(2) | take(6397)"), staged("cache | prefetch | take(6397)")),
    ("SC074", staged("cache | repeat | take(6399)"), staged("cache | repeat | take(6400)")),
    ("SC074", staged("cache | take(100) | repeat(3)"), staged("cache | filter | take(100)")),
    ("SC074", staged("repeat | cache"), staged("repeat(2) | cache")),
    ("SC074", staged("cache", repeat_files=True, shuffle_seed=1), staged("cache", shuffle_seed=1)),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_a_stream_without_end_is_found_once_whatever_is_read() -> None:
    found = case("train[:50%]", "train[50%:]", stages=parse_stages("repeat | cache")).codes()
    assert found.count("SC074") == 1


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(stages) & {"SC073", "SC074"}
