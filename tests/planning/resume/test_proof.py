from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shardctl.core.hosts.host import Host
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import DatasetError, UsageError
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.promises import BrokenPromise
from shardctl.planning.resume.proof import Proof, prove
from shardctl.planning.resume.resume import resume
from shardctl.planning.resume.seen import resume_unseen
from tests.cases import check_cases
from tests.planning.resume.resume_cases import TOY, dataset
from tests.planning.resume.resume_cases import Case as ResumeCase
from tests.planning.resume.resume_cases import cases as resume_cases


def test_every_plan_can_be_proved() -> None:
    def check(case: ResumeCase) -> None:
        from shardctl.planning.order import plan_order

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

    check_cases(resume_cases(), check, 200)


def changed(plan: ResumePlan, **columns: Any) -> ResumePlan:
    """Return a plan with some columns of its instructions replaced."""
    return replace(plan, instructions=replace(plan.instructions, **columns))


def swapped(plan: ResumePlan) -> ResumePlan:
    """Return a plan with its first two instructions swapped."""
    order = np.array([1, 0, *range(2, len(plan.instructions))])
    return replace(plan, instructions=plan.instructions.select(order))


@pytest.mark.parametrize(
    ("settings", "lost", "repeated", "moved"),
    [
        pytest.param({"cycle": 1}, 1, 0, 8, id="exact"),
        pytest.param({"cycle": 1, "buffer": 2, "buffer_seed": 1}, 1, 0, None, id="exactly once"),
    ],
)
def test_an_example_left_out_is_lost(
    settings: dict[str, Any], lost: int, repeated: int, moved: int | None
) -> None:
    plan = resume(TOY, "train", ReadSettings(**settings), consumed=3)
    take = plan.instructions.take.copy()
    take[-1] -= 1
    proof = prove(TOY, changed(plan, take=take))
    assert (proof.lost, proof.repeated) == (lost, repeated)
    assert not proof.holds


def test_an_example_read_again_is_repeated() -> None:
    plan = resume(TOY, "train", ReadSettings(cycle=1), consumed=4)
    skip, take = plan.instructions.skip.copy(), plan.instructions.take.copy()
    skip[0] -= 1
    take[0] += 1
    proof = prove(TOY, changed(plan, skip=skip, take=take))
    # 3 is read again and moves every one of the 7 that follow, and one comes after the end.
    assert proof == Proof(compared=7, lost=0, repeated=1, moved=8, exact=True)
    assert not proof.holds


def test_examples_in_another_order_are_moved() -> None:
    plan = resume(TOY, "train", ReadSettings(cycle=1), consumed=3)
    proof = prove(TOY, swapped(plan))
    # Files of 5 and 3 in the other order: of the 8 places none holds what it should.
    assert proof == Proof(compared=8, lost=0, repeated=0, moved=8, exact=True)
    assert not proof.holds


def test_a_plan_that_is_exactly_once_may_move_examples() -> None:
    settings = ReadSettings(cycle=1, buffer=3, buffer_seed=1)
    plan = resume(TOY, "train", settings, consumed=3)
    proof = prove(TOY, swapped(plan))
    assert (proof.lost, proof.repeated, proof.holds) == (0, 0, True)


def test_wrong_pending_ids_break_the_exact_order() -> None:
    settings = ReadSettings(cycle=1, buffer=3, buffer_seed=1)
    plan = resume(TOY, "train", settings, consumed=3, mode="exact-order")
    assert plan.pending is not None
    proof = prove(TOY, replace(plan, pending=plan.pending[::-1]))
    assert (proof.lost, proof.repeated, proof.holds) == (0, 0, False)


def test_a_later_pass_of_fit_is_proved_with_its_batches() -> None:
    """They decide which seeds the pass takes."""
    settings = ReadSettings(loop="keras-fit", pass_index=1, epochs=2, shuffle_seed=3, batch=4)
    plan = resume(TOY, "train", settings, consumed=8)
    assert prove(TOY, plan).holds


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
    assert prove(TOY, plan, seen=[0]).lost == 1
    assert prove(TOY, plan, seen=[0, 1, 10]).repeated == 1
    with pytest.raises(UsageError, match="give it again with seen=CODES"):
        prove(TOY, plan)


def test_a_plan_for_another_dataset_proves_nothing() -> None:
    with pytest.raises(DatasetError, match="another state of toy"):
        prove(dataset(train=(11,), test=(4,)), resume(TOY, "train", consumed=3))


def test_more_examples_than_can_be_counted_are_refused() -> None:
    huge = dataset(train=(2**40,))
    plan = resume_on_hosts(huge, "train", hosts=2, to_hosts=1, consumed=[2**39 - 1])
    with pytest.raises(UsageError, match="prove counts every example"):
        prove(huge, plan)
