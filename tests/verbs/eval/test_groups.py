"""Hosts of an evaluation that do the same, together."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.verbs.eval.answer import REMAINDERS, HostGroup, evaluate, host_groups
from tests.cases import check_cases
from tests.verbs.eval.eval_cases import EvalCase, eval_cases, toy


def test_few_hosts_are_alone() -> None:
    groups = host_groups(evaluate(toy(4097), batch=64, hosts=3), 3)
    assert [(group.first, group.last, group.count) for group in groups] == [
        (0, 0, 1),
        (1, 1, 1),
        (2, 2, 1),
    ]
    # 4097 = 1366 + 1366 + 1365; 1366 = 21 * 64 + 22
    assert [group.num_examples for group in groups] == [(1366, 1366), (1366, 1366), (1365, 1365)]
    assert groups[0].full == (21, 21)
    assert groups[0].partial == (1, 1)
    assert groups[0].remainder == (22, 22)
    assert groups[0].padding == (42, 42)
    assert groups[0].steps == {"ragged": (22, 22), "drop": (21, 21), "pad": (22, 22)}


def test_many_hosts_are_with_those_that_read_as_many() -> None:
    groups = host_groups(evaluate(toy(4097), batch=512, hosts=8), 2)
    assert [(group.first, group.last, group.count) for group in groups] == [(0, 0, 1), (1, 7, 7)]
    assert all(group.are_neighbours for group in groups)


def test_hosts_between_others_are_no_neighbours() -> None:
    files = evaluate(toy(5, 9, 5, 9), None, {"host_by": "files"}, batch=10, hosts=4)
    groups = host_groups(files, 2)
    assert [(group.first, group.last, group.count) for group in groups] == [(0, 2, 2), (1, 3, 2)]
    assert not any(group.are_neighbours for group in groups)


def test_too_many_are_with_those_that_make_about_as_many_steps() -> None:
    # Host h reads h + 1 batches of one example.
    evaluation = evaluate(toy(*range(1, 11)), None, {"host_by": "files"}, batch=1, hosts=10)
    groups = host_groups(evaluation, 4)
    # The host that is done first is alone: the 9 others are three groups.
    assert [group.steps["ragged"] for group in groups] == [(1, 1), (2, 4), (5, 7), (8, 10)]


def test_steps_that_are_dropped_tell_no_hosts_apart() -> None:
    # Host h reads h + 1 examples in batches of two, of which partial ones are dropped.
    evaluation = evaluate(
        toy(*range(1, 11)), None, {"host_by": "files"}, batch=2, hosts=10, remainder="drop"
    )
    groups = host_groups(evaluation, 4)
    assert [group.steps["drop"] for group in groups] == [(0, 0), (1, 2), (3, 4), (5, 5)]


@pytest.mark.parametrize("remainder", ["ragged", "pad"])
def test_many_hosts_are_a_few_groups(remainder: str) -> None:
    lengths = tuple(range(1, 317))
    evaluation = evaluate(toy(*lengths), batch=1, hosts=100_000, remainder=remainder)  # type: ignore[arg-type]
    groups = host_groups(evaluation, 24)
    # 316 * 317 / 2 = 50,086 examples, one for each of the first hosts.
    assert [(group.first, group.last) for group in groups] == [(0, 50_085), (50_086, 99_999)]


def _check(group: HostGroup, case: EvalCase, hosts: list[int]) -> None:
    shares = [len(share) for share in case.shares()]
    size = case.batch * case.num_devices
    own = [shares[host] for host in hosts]
    assert (group.first, group.last, group.count) == (hosts[0], hosts[-1], len(hosts))
    assert group.num_examples == (min(own), max(own))
    full = [count // size for count in own]
    batches = [-(-count // size) for count in own]
    longest = max(-(-count // size) for count in shares)
    assert group.full == (min(full), max(full))
    partial = [all_ - whole for all_, whole in zip(batches, full, strict=True)]
    assert group.partial == (min(partial), max(partial))
    assert group.remainder == (min(c % size for c in own), max(c % size for c in own))
    assert group.padding == (min(-c % size for c in own), max(-c % size for c in own))
    assert group.padding_batches == (longest - max(batches), longest - min(batches))
    assert group.steps == {
        "ragged": (min(batches), max(batches)),
        "drop": (min(full), max(full)),
        "pad": (longest, longest),
    }


def test_groups_are_all_hosts_and_say_the_least_and_the_most_of_each() -> None:
    def check(case: EvalCase) -> None:
        for remainder in REMAINDERS:
            evaluation = case.evaluation(remainder=remainder)
            for most in (2, 3, 50):
                groups = host_groups(evaluation, most)
                assert len(groups) <= max(most, 1)
                assert sum(group.count for group in groups) == case.num_hosts
                assert [group.first for group in groups] == sorted(g.first for g in groups)
                hang = evaluation.hang(remainder)
                if hang is not None:  # nobody who waits is with one who is done
                    waiting = [g.count for g in groups if g.steps[remainder][0] > hang.step]
                    done = [g.count for g in groups if g.steps[remainder][1] == hang.step]
                    assert (sum(waiting), sum(done)) == (hang.waiting, hang.finished)
            for host, group in enumerate(host_groups(evaluation, case.num_hosts)):
                _check(group, case, [host])

    check_cases(eval_cases, check, 60)


def test_a_group_says_the_least_and_the_most_of_its_hosts() -> None:
    case = EvalCase(
        lengths=(7,) * 5 + (3,) * 4, num_hosts=9, num_devices=1, batch=4, host_by="files"
    )
    seven, three = host_groups(case.evaluation(), 2)
    _check(seven, case, list(range(5)))
    _check(three, case, list(range(5, 9)))
    assert np.array_equal(case.evaluation().num_examples, [7] * 5 + [3] * 4)
