from __future__ import annotations

import pytest

from shardctl.errors import ShardctlError
from shardctl.saved.resume_plan import ResumePlan
from shardctl.tfds.verifying import verify as plan_promises
from shardctl.tfds.verifying.verify import looked_at
from shardctl.verbs.resume.answer import resume_unseen
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.proof import BrokenPromise
from tests.cases import add_cases
from tests.verbs.resume.plan_cases import SEEN, TOY, is_of_another_pipeline, mutants, plans

# What is read is compared with TensorFlow where there is an order; warnings and advice are words.
READ = (".spec", ".settings", ".instructions", ".dataset", ".warnings", ".advice")


QUICK = ("exact", "at most once", "unseen", "host by files")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in plans()],
)
def test_whatever_a_plan_says_is_looked_at_without_its_log(name: str) -> None:
    plan = plans()[name]
    assert looked_at(TOY, plan)[0] == ()
    silent = []
    for _, path, make in mutants(plan):
        if path.startswith(READ) or (path.startswith(".hosts") and "instructions" in path):
            continue
        add_cases()
        try:
            changed: ResumePlan = make()
            broken = looked_at(TOY, applied(changed, TOY))[0]
        except ShardctlError:
            continue
        # A risk for which as many buffers are read again makes the same plan.
        if not broken and not (path == ".unseeded.risk" and is_of_another_pipeline(changed)):
            silent.append(path)
    assert silent == []


def test_an_example_that_two_instructions_read_is_counted() -> None:
    plan = resume_unseen(TOY, "train", seen=SEEN)
    for _, path, make in mutants(plan.instructions):
        if path == ".rows#2":  # the first row once more
            twice = looked_at(TOY, _with(plan, make()))
    assert twice[0][-1] == BrokenPromise(
        name="file_instructions",
        promised="at most 0 lost and 0 repeated",
        found="0 lost and 3 repeated",
    )


def test_what_is_too_many_to_count_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_promises, "MAX_COUNTED", 20)
    plan = resume_unseen(TOY, "train", seen=SEEN)
    broken, reads, notes = looked_at(TOY, plan)
    assert (broken, reads) == ((), plan)
    assert notes == (
        "whether the plan reads every example that is left once is not looked at: 27 examples are "
        "more than 20",
    )


def _with(plan: ResumePlan, instructions: object) -> ResumePlan:
    from dataclasses import replace

    return replace(plan, instructions=instructions)  # type: ignore[arg-type]
