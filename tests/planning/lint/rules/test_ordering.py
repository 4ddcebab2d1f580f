"""SC007 to SC009: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.planning.lint.rules import ordering
from tests.planning.lint.rules.rule_cases import ENDLESS, Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
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
    assert {code for code, _, _ in CASES} == codes_of(ordering)
