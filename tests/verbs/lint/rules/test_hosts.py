"""SC03x: what each rule finds something in, the nearest it does not, and shares listed by hand."""

from __future__ import annotations

import pytest

from shardctl.spec.host import Host
from shardctl.verbs.lint.rules import hosts
from tests.cases import FUZZ, check_cases
from tests.verbs.lint.rules.rule_cases import HOSTS, SMALL, Case, Row, case, codes_of
from tests.verbs.lint.rules.shares_by_hand import (
    Sharing,
    counts,
    findings,
    num_batches,
    shares_of,
    sharings,
)

CASES: tuple[Row, ...] = (
    ("SC031", case(usage={"hosts": 65}), case(usage={"hosts": 64})),
    ("SC031", case(host=Host(index=3, count=65)), case(host=Host(index=3, count=64))),
    (
        "SC031",
        case(host_by="files", usage={"hosts": 65}),
        case(host_by="examples", usage={"hosts": 65}),
    ),
    ("SC032", case(usage={"hosts": 7}), case(usage={"hosts": 8})),
    (
        "SC032",
        case("train[:9shard]", host_by="files", **HOSTS),
        case("train[:8shard]", host_by="files", **HOSTS),
    ),
    (
        "SC033",
        case(host_by="examples", usage={"hosts": 8}),
        case(host_by="even", usage={"hosts": 8}),
    ),
    (
        "SC033",
        case(host_by="examples", usage={"hosts": 2}),
        case(host_by="examples", usage={"hosts": 2}, **SMALL),
    ),
    # 6400 examples on 6 hosts are 1067 or 1066, and on 7 hosts 915 or 914.
    ("SC034", case(batch=533, usage={"hosts": 6}), case(batch=533, usage={"hosts": 8})),
    ("SC034", case(batch=1, usage={"hosts": 7}), case(batch=1, usage={"hosts": 7, "take": 914})),
    (
        "SC034",
        case(batch=915, usage={"hosts": 7}, drop_remainder=True),
        case(batch=915, usage={"hosts": 7}),
    ),
    ("SC034", case(host_by="files", usage={"hosts": 7}), case(host_by="even", usage={"hosts": 7})),
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
    assert {code for code, _, _ in CASES} == codes_of(hosts)


def agrees_by_hand(case: Sharing) -> None:
    lengths, host_by, num_hosts, batch, drop, epochs = case
    found, shares = findings(case), shares_of(lengths, host_by, num_hosts)
    num_files = sum(length > 0 for length in lengths)
    steps = [num_batches(len(host) * epochs, batch, drop) for host in shares]
    refused = not all(shares) if host_by == "even" else num_files < num_hosts
    refused = refused and host_by != "examples"
    if not num_files:
        assert set(found) == {"SC044"}
        return
    uneven = min(steps) < max(steps) and not refused
    assert ("SC034" in found) == uneven, case
    if uneven:
        assert counts(found["SC034"].why)[:2] == [min(steps), max(steps)]
        dropped = [num_batches(len(host) * epochs, batch, True) for host in shares]
        cures = not drop and min(dropped) == max(dropped)
        assert ("--drop-remainder" in found["SC034"].fix) == cures
    idle = sum(not host for host in shares)
    few = host_by != "examples" and num_files < num_hosts
    assert ("SC031" in found) == few
    assert ("SC032" in found) == (host_by != "examples" and not few and num_files % num_hosts > 0)
    assert ("SC037" in found) == (idle > 0 and not (host_by == "files" and few))
    assert ("SC033" in found) == (host_by == "examples" and num_hosts >= 8)


def test_hosts_get_what_sharing_by_hand_gives() -> None:
    check_cases(sharings, agrees_by_hand, 100)


@pytest.mark.fuzz
def test_hosts_get_what_sharing_by_hand_gives_fuzzed() -> None:
    check_cases(sharings, agrees_by_hand, FUZZ, fuzz=True)
