"""SC035 to SC037: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.planning.lint.rules import host_shuffles
from tests.planning.lint.rules.rule_cases import HOSTS, Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
    ("SC035", case(shuffle_seed=1, **HOSTS), case(shuffle_seed=1)),
    (
        "SC035",
        case(shuffle_seed=1, host_by="files", **HOSTS),
        case(shuffle_seed=1, host_by="files", usage={"hosts": 7}),
    ),
    (
        "SC035",
        case(shuffle_seed=1, host_by="files", **HOSTS),
        case(shuffle_seed=1, host_by="examples", **HOSTS),
    ),
    (
        "SC036",
        case(shuffle_files=True, host_by="examples", **HOSTS),
        case(shuffle_seed=1, host_by="examples", **HOSTS),
    ),
    (
        "SC036",
        case(deterministic=False, host_by="examples", **HOSTS),
        case(deterministic=False, host_by="even", **HOSTS),
    ),
    (
        "SC036",
        case(shuffle_files=True, global_seed=1, host_by="examples", **HOSTS),
        case(shuffle_files=True, global_seed=1, deterministic=True, host_by="examples", **HOSTS),
    ),
    ("SC037", case("train[:3]", **HOSTS), case("train[:4]", **HOSTS)),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(host_shuffles)
