"""SC081 to SC085: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.lint.rules import loaders as rules
from tests.verbs.lint.rules.rule_cases import Case, Row, case, codes_of, dataset

GRAIN: dict[str, Any] = {"loader": "grain", "loader_version": "0.2.18"}
SEED: dict[str, Any] = {**GRAIN, "shuffle_seed": 1}
TWO: dict[str, Any] = {"usage": {"hosts": 2}}
THREE: dict[str, Any] = {"usage": {"hosts": 3}}
LONG: dict[str, Any] = {"layout": {"train": (65538, 65536)}}
WINDOWS: dict[str, Any] = {**GRAIN, "buffer_seed": 1}

CASES: tuple[Row, ...] = (
    ("SC081", case(workers=2, batch=16, **SEED), case(workers=1, batch=16, **SEED)),
    ("SC081", case(workers=2, batch=16, **SEED), case(workers=2, **SEED)),
    ("SC081", case(workers=2, batch=2, **SEED), case(workers=2, batch=1, **SEED)),
    (
        "SC081",
        case("train[:2]", workers=2, batch=9, **SEED),
        case("train[:1]", workers=2, batch=9, **SEED),
    ),
    ("SC082", case("train[:359]", **TWO, **SEED), case("train[:360]", **TWO, **SEED)),
    ("SC082", case("train[:359]", **TWO, **SEED), case("train[:359]", **SEED)),
    (
        "SC082",
        case("train[:359]", **TWO, **GRAIN, epochs=2),
        case("train[:359]", **TWO, **GRAIN, epochs=2, drop_shard_remainder=True),
    ),
    (
        "SC082",
        case("train[:359]", **TWO, **SEED),
        case("train[:359]", host_by="examples", **TWO, **SEED),
    ),
    (
        "SC082",
        case(evaluated=("test[:3]",), **TWO, **GRAIN),
        case(evaluated=("test[:4]",), **TWO, **GRAIN),
    ),
    ("SC083", case("train[:360]", **TWO, **SEED), case("train[:359]", **TWO, **SEED)),
    ("SC083", case("train[:359]", **THREE, **SEED), case("train[:359]", **SEED)),
    ("SC083", case("train[:360]", **TWO, **SEED), case("train[:360]", **TWO, **GRAIN)),
    (
        "SC083",
        case("train[:359]", drop_shard_remainder=True, **TWO, **SEED),
        case("train[:3]", drop_shard_remainder=True, **TWO, **SEED),
    ),
    (
        "SC083",
        case("train[:360]", **TWO, **SEED),
        case("train[:360]", host_by="examples", **TWO, **SEED),
    ),
    ("SC084", case("train[:65537]", **SEED, **LONG), case("train[:65536]", **SEED, **LONG)),
    ("SC084", case("train[:65537]", **SEED, **LONG), case("train[:65538]", **SEED, **LONG)),
    ("SC084", case("train[:65537]", **SEED, **LONG), case("train[:65537]", **GRAIN, **LONG)),
    (
        "SC084",
        case("train[:131073]", **TWO, **SEED, **LONG),
        case("train[:131073]", drop_shard_remainder=True, **TWO, **SEED, **LONG),
    ),
    ("SC084", case(buffer=65537, **WINDOWS, **LONG), case(buffer=65536, **WINDOWS, **LONG)),
    (
        "SC085",
        case("train[:1000]", buffer=300, **WINDOWS),
        case("train[:900]", buffer=300, **WINDOWS),
    ),
    (
        "SC085",
        case("train[:1000]", buffer=300, epochs=2, **WINDOWS),
        case("train[:1000]", buffer=300, epochs=3, **WINDOWS),
    ),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def read(num_examples: int, **settings: Any) -> list[int]:
    order = plan_order(
        dataset(train=(num_examples,)), "train", ReadSettings(**GRAIN, **settings)
    ).order
    return [int(code) for chunk in order.chunks(0, order.num_examples) for code in chunk]


def test_grain_before_0_2_13_loses_no_remainder() -> None:
    found = case("train[:359]", **TWO, **SEED)
    older = replace(found, read={**found.read, "loader_version": "0.2.12"})
    assert "SC082" not in older.codes()


@pytest.mark.parametrize("epochs", [1, 2, 3, 7])
def test_what_is_said_of_the_remainder_is_what_is_read(epochs: int) -> None:
    found = case("train[:11]", usage={"hosts": 3}, epochs=epochs, **SEED).lint().findings
    said = next(finding.why for finding in found if finding.rule.code == "SC082")
    hosts = [
        Counter(read(11, shuffle_seed=1, epochs=epochs, host=Host(index=index, count=3)))
        for index in range(3)
    ]
    size = hosts[0].total()
    assert f"reads {size} example" in said
    short = epochs * 4 - hosts[0].total()
    assert f"2 of them are {short} short of" in said
    again = hosts[2].total() - epochs * 3
    assert (f"read {again} once more" in said) == bool(again)


def test_hosts_read_in_lockstep_as_it_is_said() -> None:
    first, second = (read(20, shuffle_seed=5, host=Host(index=k, count=2)) for k in range(2))
    assert [code + 10 for code in first] == second


def test_windows_that_are_not_full_repeat_examples_as_it_is_said() -> None:
    whole, cut = (Counter(read(n, buffer=300, buffer_seed=1)) for n in (900, 1000))
    assert set(whole.values()) == {1}
    assert len(whole) == 900
    assert max(cut.values()) == 2
    assert len(cut) < 1000


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == {
        code for code in codes_of(rules) if "SC081" <= code <= "SC086"
    }
