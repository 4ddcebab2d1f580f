"""SC011 to SC013: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.spec.host import Host
from shardctl.verbs.lint.rules import shuffling as seeds
from tests.verbs.lint.rules.rule_cases import ENDLESS, HOSTS, SEEDED, Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
    ("SC011", case(shuffle_seed=1, global_seed=2), case(shuffle_seed=1)),
    ("SC011", case(buffer=2000, buffer_seed=1, global_seed=2), case(global_seed=2)),
    ("SC012", case(usage={"seeds": (0, 2**31 - 1)}), case(usage={"seeds": (0, 2**31 - 2)})),
    ("SC012", case(usage={"seeds": (5, 6, 5)}), case(usage={"seeds": (5, 6, -5)})),
    (
        "SC012",
        case(shuffle_seed=-1, buffer=2000, buffer_seed=2**31 - 2),
        case(shuffle_seed=7, buffer=2000, buffer_seed=7),
    ),
    ("SC013", case(buffer=2000, global_seed=1), case(buffer=2000, buffer_seed=1, global_seed=1)),
    (
        "SC013",
        case(shuffle_files=True, global_seed=1, deterministic=True),
        case(shuffle_seed=1, global_seed=1),
    ),
    ("SC014", case(loop="keras-fit", shuffle_seed=1), case(loop="python", shuffle_seed=1)),
    (
        "SC014",
        case(loop="keras-fit", shuffle_seed=1),
        case(loop="keras-fit", shuffle_seed=1, reshuffle=False),
    ),
    (
        "SC014",
        case(loop="keras-fit", shuffle_seed=1),
        case(loop="keras-fit", shuffle_seed=1, host_by="files", **HOSTS),
    ),
    (  # an InputContext of one host hides the length too
        "SC014",
        case(loop="keras-fit", shuffle_seed=1, host_by="files"),
        case(loop="keras-fit", shuffle_seed=1, host_by="files", host=Host(index=0, count=1)),
    ),
    (
        "SC015",
        case(shuffle_seed=1, epochs=3, pass_index=1),
        case(shuffle_seed=1, epochs=3, pass_index=0),
    ),
    ("SC015", case(shuffle_seed=1, epochs=3, pass_index=1), case(epochs=3, pass_index=1, **SEEDED)),
    ("SC016", case(**ENDLESS, pass_index=1), case(**ENDLESS)),
    (
        "SC016",
        case(loop="keras-fit", shuffle_seed=1, epochs=2, batch=10),
        case(loop="keras-fit", shuffle_seed=1, epochs=2, batch=7),
    ),
    (
        "SC016",
        case(loop="keras-fit", shuffle_seed=1, epochs=2, batch=7, drop_remainder=True),
        case(loop="keras-fit", shuffle_seed=1, batch=10),
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
    assert {code for code, _, _ in CASES} == codes_of(seeds)
