"""SC087 and SC088: what each finds something in, and the nearest in which it does not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from shardctl.spec.host import Host
from shardctl.verbs.lint.rules import loaders as rules
from tests.verbs.lint.rules.rule_cases import Case, Row, case, codes_of

STATEFUL: dict[str, Any] = {"loader": "stateful", "shuffle": True, "global_seed": 1}
OF_ONE: dict[str, Any] = {"loader": "stateful", "shuffle_seed": 1, "host": Host(index=0, count=1)}
TORCH: dict[str, Any] = {"loader": "torch", "usage": {"hosts": 3}}
DEALT: dict[str, Any] = {"loader": "accelerate", "usage": {"hosts": 4}}

CASES: tuple[Row, ...] = (
    ("SC087", case(workers=2, **STATEFUL), case(workers=0, **STATEFUL)),
    ("SC087", case(**STATEFUL), case(**{**STATEFUL, "loader": "torch"})),
    ("SC087", case(**STATEFUL), case(**OF_ONE)),
    ("SC087", case(workers=2, **STATEFUL), case(workers=2, loader="stateful", global_seed=1)),
    ("SC087", case("train", **STATEFUL), case("test", **STATEFUL)),
    # 400 examples: of 3 processes 2 read one twice.
    ("SC088", case("test", **TORCH), case("test[:399]", **TORCH)),
    ("SC088", case("test", **TORCH), case("train", **TORCH)),
    ("SC088", case("test", **TORCH), case("test", drop_shard_remainder=True, **TORCH)),
    ("SC088", case("test", **TORCH), case("test", batch=7, drop_remainder=True, **TORCH)),
    ("SC088", case("test", **TORCH), case("test", loader="torch")),
    # A round of 4 processes is 4 batches: 400 examples are 12 rounds and a half of batches of 8.
    ("SC088", case("test", batch=8, **DEALT), case("test", batch=10, **DEALT)),
    ("SC088", case("test", batch=8, **DEALT), case("test", batch=8, drop_remainder=True, **DEALT)),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == {
        code for code in codes_of(rules) if "SC087" <= code <= "SC089"
    }


def test_it_says_how_many_are_read_again() -> None:
    (found,) = [f for f in case("test", **TORCH).lint().findings if f.rule.code == "SC088"]
    assert 3 * math.ceil(400 / 3) == 402
    assert "3 processes read 402 examples, and there are 400: 2 are read again" in found.why


def test_what_was_read_twice_is_not_lost_when_it_is_dropped() -> None:
    """3 processes read 134 each, 19 batches of 7: 399 of 402, and 2 of those 402 come twice."""
    dropped = case("test", batch=7, drop_remainder=True, **TORCH)
    (found,) = [f for f in dropped.lint().findings if f.rule.code == "SC051"]
    assert "1 of 400 examples fill no batch of 7 on 3 hosts" in found.why
