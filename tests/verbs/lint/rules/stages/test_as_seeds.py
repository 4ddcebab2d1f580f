"""What rules about seeds find in stages that no settings mean, and the nearest they do not."""

from __future__ import annotations

import pytest

from tests.verbs.lint.rules.rule_cases import Case, Row, staged

# A take first, so that no settings mean the same.
SHUFFLE = "take(6000) | shuffle(2000, seed=1)"
TWICE = "sample_from_datasets([train | shuffle(9, seed={}), train | shuffle(9, seed={})], seed=5)"
CASES: tuple[Row, ...] = (
    ("SC006", staged("take(6000) | shuffle(2000)"), staged(SHUFFLE)),
    (
        "SC006",
        staged("take(6000) | shuffle(2000)"),
        staged("take(6000) | shuffle(2000)", global_seed=1),
    ),
    (
        "SC006",
        staged("sample_from_datasets([train | repeat, test | repeat])"),
        staged("sample_from_datasets([train | repeat, test | repeat], seed=1)"),
    ),
    ("SC011", staged(SHUFFLE, global_seed=1), staged("take(9)", global_seed=1)),
    (
        "SC011",
        staged(SHUFFLE, global_seed=1),
        staged("take(6000) | shuffle(2000, seed=(1, 2))", global_seed=1),
    ),
    ("SC012", staged(TWICE.format(1, 1)), staged(TWICE.format(1, 2))),
    (
        "SC012",
        staged(TWICE.format(1, 1)),
        staged("zip(train | shuffle(9, seed=1), train | shuffle(9, seed=1))"),
    ),
    ("SC013", staged("take(9) | shuffle(9)", global_seed=1), staged(SHUFFLE, global_seed=1)),
    ("SC017", staged("take(9)"), staged("take(9) | repeat(2)")),  # which is SC001
    (
        "SC036",
        staged("take(99) | shuffle(9) | shard(2, 1)"),
        staged("take(99) | shard(2, 1) | shuffle(9)"),
    ),
    (
        "SC036",
        staged("take(99) | shuffle(9) | shard(2, 1)"),
        staged("take(99) | shuffle(9, seed=1) | shard(2, 1)"),
    ),
    (
        "SC036",
        staged("take(99) | shard(2, 1)", shuffle_files=True),
        staged("take(99) | shard(2, 1)", shuffle_seed=1),
    ),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()
