"""SC046 and SC051: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.verbs.lint.rules import left_out
from tests.cases import check_cases
from tests.verbs.lint.rules.rule_cases import ENDLESS, ONE_FILE, Case, Row, case, codes_of
from tests.verbs.lint.rules.shares_by_hand import (
    Sharing,
    counts,
    findings,
    num_batches,
    shares_of,
    sharings,
)

CASES: tuple[Row, ...] = (
    ("SC046", case(usage={"take": 17}), case(usage={"take": 16})),
    ("SC046", case(usage={"take": 17}), case(cycle=1, usage={"take": 17})),
    ("SC046", case(usage={"take": 6300}), case(usage={"take": 6400})),
    ("SC046", case(usage={"take": 16}, reverse=True), case(usage={"take": 99}, **ONE_FILE)),
    ("SC046", case(usage={"take": 16}, shuffle_files=True), case(usage={"take": 16}, block=99)),
    ("SC046", case(usage={"take": 17, "hosts": 4}), case(usage={"take": 1600, "hosts": 4})),
    # 400 examples in batches of 64 leave 16.
    (
        "SC051",
        case("test", batch=64, drop_remainder=True),
        case("test", batch=50, drop_remainder=True),
    ),
    (
        "SC051",
        case("train[:90%]", evaluated=("train[90%:]",), batch=100, drop_remainder=True),
        case("train[:90%]", "train[90%:]", batch=100, drop_remainder=True),
    ),
    ("SC051", case("test", batch=64, drop_remainder=True), case("test", batch=64)),
    ("SC007", case(deterministic=False), case(deterministic=True)),
    ("SC008", case(shuffle_files=True, global_seed=1), case(shuffle_seed=2, global_seed=1)),
    (
        "SC008",
        case(shuffle_files=True, global_seed=1),
        case(shuffle_files=True, global_seed=1, deterministic=True),
    ),
    (
        "SC009",
        case(**ENDLESS, buffer=-2, buffer_seed=1),
        case(epochs=9, shuffle_seed=1, buffer=-2, buffer_seed=1),
    ),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(left_out)


@pytest.mark.long
def test_an_evaluation_loses_what_fills_no_batch() -> None:
    def check(case: Sharing) -> None:
        lengths, host_by, num_hosts, batch, drop, _ = case
        found = findings(case, "test")
        shares = shares_of(lengths, host_by, num_hosts)
        lost = sum(len(host) - batch * num_batches(len(host), batch, True) for host in shares)
        assert ("SC051" in found) == (drop and lost > 0)
        if "SC051" in found:
            assert counts(found["SC051"].why)[:2] == [lost, sum(lengths)]

    check_cases(sharings, check, 150)


def test_the_evaluation_of_flax_loses_272_of_10000() -> None:
    # https://flax.readthedocs.io/en/latest/guides/data_preprocessing/full_eval.html
    found = findings(((10_000,), "even", 1, 512, True, 1), "test")
    assert counts(found["SC051"].why) == [272, 10_000, 512]
    assert 10_000 - 272 == 19 * 512 == 9728
