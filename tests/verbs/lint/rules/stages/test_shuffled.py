"""SC071 and SC072: what each finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.verbs.lint.rules import stages
from tests.verbs.lint.rules.rule_cases import Case, Row, codes_of, staged

SHUFFLE = "shuffle(2000, seed=1)"
CASES: tuple[Row, ...] = (
    ("SC071", staged(f"{SHUFFLE} | skip(500)"), staged(f"skip(500) | {SHUFFLE}")),
    ("SC071", staged(f"{SHUFFLE} | map | take(500)"), staged(f"{SHUFFLE} | map | take(-1)")),
    (
        "SC071",
        staged("shuffle(2000, seed=1) | take(500)"),
        staged("shuffle(2000, seed=1, reshuffle=False) | take(500)"),
    ),
    ("SC071", staged(f"{SHUFFLE} | take(500)"), staged("shuffle(1) | take(500)")),
    # Behind a repeat it is the number of steps; a cache keeps the first order.
    ("SC071", staged(f"{SHUFFLE} | take(500) | repeat"), staged(f"{SHUFFLE} | repeat | take(500)")),
    ("SC071", staged(f"{SHUFFLE} | skip(9) | cache"), staged(f"{SHUFFLE} | cache | skip(9)")),
    ("SC071", staged("skip(500)", shuffle_seed=1), staged("skip(500)")),
    (
        "SC071",
        staged("skip(500)", shuffle_seed=1),
        staged("skip(500)", shuffle_seed=1, layout={"train": (100,)}),
    ),
    # All that there is, no part of it.
    ("SC071", staged(f"{SHUFFLE} | take(6399)"), staged(f"{SHUFFLE} | take(6400)")),
    (
        "SC071",
        staged(f"sample_from_datasets([train | {SHUFFLE} | skip(9), test | repeat], seed=1)"),
        staged(f"sample_from_datasets([train | skip(9) | {SHUFFLE}, test | repeat], seed=1)"),
    ),
    ("SC072", staged(f"batch(64) | {SHUFFLE}"), staged(f"{SHUFFLE} | batch(64)")),
    ("SC072", staged(f"batch(64) | {SHUFFLE}"), staged(f"batch(64) | unbatch | {SHUFFLE}")),
    ("SC072", staged(f"batch(64) | {SHUFFLE}"), staged(f"{SHUFFLE} | batch(64) | {SHUFFLE}")),
    ("SC072", staged(f"batch(2) | {SHUFFLE}"), staged(f"batch(1) | {SHUFFLE}")),
    ("SC078", staged("filter | batch(64)"), staged("filter(kept='log.txt') | batch(64)")),
    ("SC078", staged("flat_map"), staged("map")),
    ("SC079", staged("batch(64) | skip(5000)"), staged("skip(5000) | batch(64)")),
    ("SC079", staged("skip(6400)"), staged("skip(6399)")),
    ("SC079", staged("take(0)"), staged("take(1)")),
    (
        "SC079",
        staged("take(9) | batch(10, drop_remainder=True)"),
        staged("take(10) | batch(10, drop_remainder=True)"),
    ),
    ("SC079", staged("take(3) | shard(4, 3)"), staged("take(4) | shard(4, 3)")),
    ("SC079", staged("repeat | concatenate(test)"), staged("concatenate(test) | repeat")),
    ("SC079", staged("repeat | concatenate(test)"), staged("repeat(2) | concatenate(test)")),
    # What comes there is nothing already, or not known.
    ("SC079", staged("batch(64) | skip(100)"), staged("batch(64) | filter | skip(100)")),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(stages) & {"SC071", "SC072", "SC078", "SC079"}


def test_several_hosts_make_a_warning_of_an_open_count() -> None:
    alone, several = (staged("filter", usage={"hosts": n}).lint().findings for n in (1, 4))
    assert [f.severity for f in alone if f.rule.code == "SC078"] == ["notice"]
    assert [f.severity for f in several if f.rule.code == "SC078"] == ["warning"]
    endless = staged("filter | repeat", usage={"hosts": 4}).lint().findings
    assert [f.severity for f in endless if f.rule.code == "SC078"] == ["notice"]
