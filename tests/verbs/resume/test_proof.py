from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads
from shardctl.verbs.resume import proof as module
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import BrokenPromise, Proof, left_and_excess, num_differing, prove
from tests.cases import check_cases, counted
from tests.verbs.resume.plan_cases import SEEN, plans
from tests.verbs.resume.plan_cases import TOY as TOY_OF_PLANS
from tests.verbs.resume.resume_cases import TOY, dataset
from tests.verbs.resume.resume_cases import Case as ResumeCase
from tests.verbs.resume.resume_cases import cases as resume_cases


@pytest.mark.long
def test_every_plan_can_be_proved() -> None:
    def check(case: ResumeCase) -> None:
        try:
            order = plan_order(case.dataset, case.spec, case.settings).order
        except UsageError:
            return
        consumed = case.stop % (order.num_examples + 1)
        plan = resume(case.dataset, case.spec, case.settings, consumed=consumed, mode=case.mode)
        proof = prove(case.dataset, plan)
        assert proof.holds
        assert (proof.lost, proof.repeated, proof.compared) == (0, 0, plan.remaining)
        assert not plan.exact or proof.moved == 0

    check_cases(resume_cases(), check, 40)


def changed(plan: ResumePlan, **columns: Any) -> ResumePlan:
    """Return a plan with some columns of its instructions replaced."""
    return replace(plan, instructions=replace(plan.instructions, **columns))


def with_damage_in_a_row(reads: Reads) -> Iterator[tuple[Reads, int, int]]:
    """Yield what leaves out an example, or reads a file again: with how many, of either.

    The last row and every second one before it are damaged.
    """
    rows = np.arange(len(reads))
    for row in np.flatnonzero(reads.take)[::-2].tolist():
        one = (rows == row).astype(np.int64)
        yield replace(reads, skip=reads.skip + one, take=reads.take - one), 1, 0
        yield reads.select(np.append(rows, row)), 0, int(reads.take[row])


def with_damage(plan: ResumePlan) -> Iterator[tuple[ResumePlan, int, int]]:
    """Yield plans with such damage, of the plan itself and of its hosts."""
    for reads, lost, repeated in with_damage_in_a_row(plan.instructions):
        yield replace(plan, instructions=reads), lost, repeated
    for place, host in enumerate(plan.hosts):
        for reads, lost, repeated in with_damage_in_a_row(host.instructions):
            hosts = list(plan.hosts)
            hosts[place] = replace(host, instructions=reads)
            yield replace(plan, hosts=tuple(hosts)), lost, repeated


@pytest.mark.parametrize("name", plans())
def test_an_example_that_any_plan_leaves_out_or_repeats_is_counted(name: str) -> None:
    plan = plans()[name]
    seen = SEEN if plan.from_seen else None
    right = prove(TOY_OF_PLANS, plan, seen=seen)
    assert right.holds
    settings = plan.settings
    # Where what is read is cut or shared afterwards, others are lost or repeated for it.
    is_cut = settings.repeat_files or settings.stages is not None
    is_cut |= settings.host is not None and settings.host_mode.reads_all
    for wrong, lost, repeated in counted(with_damage(plan)):
        found = prove(TOY_OF_PLANS, wrong, seen=seen)
        if not is_cut:
            assert (found.lost, found.repeated) == (right.lost + lost, right.repeated + repeated)
        if settings.stages is not None:
            assert found.lost == found.repeated > 0  # `take` hands out as many
        assert not found.holds or (settings.repeat_files and not lost)


def test_wrong_pending_ids_break_the_exact_order() -> None:
    settings = ReadSettings(cycle=1, buffer=3, buffer_seed=1)
    plan = resume(TOY, "train", settings, consumed=3, mode="exact-order")
    assert plan.pending is not None
    proof = prove(TOY, replace(plan, pending=plan.pending[::-1]))
    assert (proof.lost, proof.repeated, proof.holds) == (0, 0, False)


def test_hosts_that_lose_an_example_are_found_out() -> None:
    plan = resume_on_hosts(TOY, "train", hosts=2, to_hosts=2, consumed=[2, 1])
    assert prove(TOY, plan) == Proof(compared=8, lost=0, repeated=0, moved=None, exact=False)
    twice = replace(plan, hosts=(plan.hosts[0], plan.hosts[0]))
    first = BrokenPromise(name="hosts[1].index", promised="0", found="1")
    assert prove(TOY, twice) == Proof(
        compared=8, lost=4, repeated=4, moved=None, exact=False, broken=(first,)
    )


def test_a_plan_of_the_unseen_is_proved_with_the_log() -> None:
    host = ReadSettings(host=Host(index=0, count=2), host_by="files", reverse=True)
    plan = resume_unseen(TOY, "train", host, seen=[0, 0, 10])
    assert prove(TOY, plan, seen=[0, 0, 10]).holds
    other_log = prove(TOY, plan, seen=[0])
    assert other_log.lost == 1
    counts = ["consumed", "remaining", "remaining_total"]
    assert [promise.name for promise in other_log.broken] == counts
    assert prove(TOY, plan, seen=[0, 1, 10]).repeated == 1
    with pytest.raises(UsageError, match="give it again with --seen FILE"):
        prove(TOY, plan)


# Streams compared: position by position as two lists, and by number as two bags.

ORDER = plan_order(dataset(train=(4, 5)), "train").order
chunks = st.lists(st.lists(st.integers(0, 8), max_size=6), max_size=5)


def arrays(lists: list[list[int]]) -> list[Int64s]:
    return [np.array(chunk, np.int64) for chunk in lists]


@given(chunks, chunks)
def test_places_that_differ_are_those_of_two_lists(
    left: list[list[int]], right: list[list[int]]
) -> None:
    one, other = ([code for chunk in side for code in chunk] for side in (left, right))
    expected = sum(a != b for a, b in zip_longest(one, other))
    assert num_differing(arrays(left), arrays(right)) == expected


@given(chunks, chunks)
def test_what_is_left_and_what_came_too_often_are_those_of_two_bags(
    expected: list[list[int]], came: list[list[int]]
) -> None:
    found = left_and_excess(ORDER, arrays(expected), arrays(came))
    bags = [Counter(code for chunk in side for code in chunk) for side in (expected, came)]
    assert found == ((bags[0] - bags[1]).total(), (bags[1] - bags[0]).total())


def test_more_examples_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTED", 8)
    with pytest.raises(UsageError, match="9 are more than 8"):
        left_and_excess(ORDER, [], [])
