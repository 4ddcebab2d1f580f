"""What a plan says besides what it reads, looked at before TensorFlow reads it."""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.planning.order import resolved_spec
from shardctl.planning.resume.promises import (
    BrokenPromise,
    broken_promises,
    left_out,
    planned_anew,
    with_reads_of,
)
from shardctl.planning.resume.proof import prove

MAX_COUNTED = 1 << 26  # examples of a plan without an order that are counted one by one


@dataclass(frozen=True, kw_only=True)
class LookedAt:
    """What a plan says that is not so, and the plan with all of that right but what it reads.

    notes: what was not looked at, and why.
    """

    broken: tuple[BrokenPromise, ...]
    reads: ResumePlan
    notes: tuple[str, ...] = ()


def looked_at(dataset: Dataset, plan: ResumePlan) -> LookedAt:
    """Compare what a plan says with what it should say.

    Without an order TensorFlow has nothing to be compared with but the instructions, so these are
    counted: whether every example that is left is there once, for all hosts together. The log of a
    plan of the unseen is not here: it is taken to hold what the instructions leave out.

    Raises:
        UsageError: no pipeline of these settings stops there.
        UnpredictableOrderError: TensorFlow leaves the order open.
    """
    if not (plan.hosts or plan.from_seen):
        anew = planned_anew(dataset, plan)
        return LookedAt(broken=broken_promises(plan, anew), reads=with_reads_of(plan, anew))
    num_examples = resolved_spec(dataset, plan.spec).num_examples
    if num_examples > MAX_COUNTED:
        note = (
            f"whether the plan reads every example that is left once is not looked at: "
            f"{num_examples:,} examples are more than {MAX_COUNTED:,}"
        )
        return LookedAt(broken=(), reads=plan, notes=(note,))
    seen = left_out(dataset, plan) if plan.from_seen else None
    proof = prove(dataset, plan, seen=seen)
    broken = proof.broken
    allowed = (0, 0) if proof.allowed is None else proof.allowed
    if proof.lost > allowed[0] or proof.repeated > allowed[1]:
        promised = f"each of {proof.compared:,} examples once"
        if proof.allowed is not None:
            promised = f"at most {allowed[0]:,} lost and {allowed[1]:,} repeated"
        each = BrokenPromise(
            name="file_instructions",
            promised=promised,
            found=f"{proof.lost:,} lost and {proof.repeated:,} repeated",
        )
        broken = (*broken, each)
    anew = planned_anew(dataset, plan, seen=seen)
    return LookedAt(broken=broken, reads=with_reads_of(plan, anew))
