"""SC03x: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.core.hosts.host import Host
from shardctl.planning.lint.rules import hosts
from tests.planning.lint.rules.rule_cases import HOSTS, SMALL, Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
    ("SC031", case(usage={"num_hosts": 65}), case(usage={"num_hosts": 64})),
    ("SC031", case(host=Host(index=3, count=65)), case(host=Host(index=3, count=64))),
    (
        "SC031",
        case(host_by="files", usage={"num_hosts": 65}),
        case(host_by="examples", usage={"num_hosts": 65}),
    ),
    ("SC032", case(usage={"num_hosts": 7}), case(usage={"num_hosts": 8})),
    (
        "SC032",
        case("train[:9shard]", host_by="files", **HOSTS),
        case("train[:8shard]", host_by="files", **HOSTS),
    ),
    (
        "SC033",
        case(host_by="examples", usage={"num_hosts": 8}),
        case(host_by="even", usage={"num_hosts": 8}),
    ),
    (
        "SC033",
        case(host_by="examples", usage={"num_hosts": 2}),
        case(host_by="examples", usage={"num_hosts": 2}, **SMALL),
    ),
    # 6400 examples on 6 hosts are 1067 or 1066, and on 7 hosts 915 or 914.
    (
        "SC034",
        case(batch=533, usage={"num_hosts": 6}),
        case(batch=533, usage={"num_hosts": 8}),
    ),
    (
        "SC034",
        case(batch=1, usage={"num_hosts": 7}),
        case(batch=1, usage={"num_hosts": 7, "take": 914}),
    ),
    (
        "SC034",
        case(batch=915, usage={"num_hosts": 7}, drop_remainder=True),
        case(batch=915, usage={"num_hosts": 7}),
    ),
    (
        "SC034",
        case(host_by="files", usage={"num_hosts": 7}),
        case(host_by="even", usage={"num_hosts": 7}),
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
    assert {code for code, _, _ in CASES} == codes_of(hosts)
