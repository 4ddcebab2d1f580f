"""Whatever in a plan is not as it should be is reported, or changes nothing of what is read.

Every field of real plans is changed, found by introspection, so that a new field without a case
fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import ShardctlError
from shardctl.saved.resume_plan import ResumePlan
from shardctl.verbs.resume.proof import broken_promises, prove
from tests.cases import FUZZ, counted, some_of
from tests.verbs.resume.plan_cases import SEEN, TOY, Mutant, is_of_another_pipeline, mutants, plans

Place = tuple[int, int, int]  # split, shard, index in the shard

# What is read is judged by what it reads, as damage to instructions is elsewhere.
READ = {"spec"}
# What a plan is planned anew with; what is wrong there shows in the fields that follow from it.
GIVEN = {*READ, "consumed", "from_consumed", "from_seen", "mode"}
# A copy elsewhere is as good; which other version and folders may be read `applied` has to say.
OF_APPLIED = {"data_dir", "name", "config", "version", "folders", "template"}
LEFT_TO_APPLIED = re.compile(r"dataset\.(data_dir|version|folders)\b|.*\btemplate$")


def report_of(make: Any) -> tuple[ResumePlan | None, str]:
    """Return a changed plan and what is said against it, "" for nothing."""
    try:
        plan: ResumePlan = make()
        proof = prove(TOY, plan, seen=SEEN)
    except ShardctlError as error:
        return None, f"error: {error}"
    if proof.holds:
        return plan, ""
    counts = f"lost {proof.lost}, repeated {proof.repeated}, moved {proof.moved}"
    return plan, "\n".join([*map(str, proof.broken), counts])


def of_each_place(name: str, changes: Iterable[Mutant], one_in: int) -> Iterator[Mutant]:
    """Yield the first change at each place, and one in `one_in` of the others.

    Rows of a list are one place. Which of the others they are differs from plan to plan, and from
    row to row, so that together they are changed in every way.
    """
    first, seen = list(plans()).index(name), Counter[str]()
    for change in changes:
        place = re.sub(r"\d+", "N", change[1])
        row, number = divmod(seen[place], 3)
        if not seen[place] or (first + row + number) % one_in == 0:
            yield change
        seen[place] += 1


# Some plans, a few changes at each place; slow tests take every plan, and more of them.
@pytest.mark.parametrize(
    ("name", "one_in"),
    [
        *((name, 40) for name in list(plans())[::6]),
        *(pytest.param(name, 3, marks=pytest.mark.slow) for name in plans()),
    ],
)
def test_whatever_is_changed_in_a_plan_is_reported_or_changes_nothing(
    name: str, one_in: int
) -> None:
    changes = of_each_place(name, mutants(plans()[name]), one_in)
    check_changed(plans()[name], changes)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", list(plans())[: max(1, FUZZ // 50)])
def test_every_change_in_a_plan_is_reported_or_changes_nothing(name: str) -> None:
    check_changed(plans()[name], mutants(plans()[name]))


def check_changed(plan: ResumePlan, changes: Iterable[Mutant]) -> None:
    assert report_of(lambda: plan) == (plan, "")
    wrong = []
    for _, path, make in counted(some_of(changes)):
        changed, report = report_of(make)
        root = re.split(r"[\[.#]", path[1:])[0]
        if root in (*READ, "warnings", "advice") or LEFT_TO_APPLIED.match(path[1:]):
            continue  # these are said, and not promised, or read to their end
        if not report:
            assert changed is not None
            if path != ".unseeded.risk" or not is_of_another_pipeline(changed):
                wrong.append(f"{path}: nothing is said")
        elif root not in GIVEN and changed is not None:
            said = {"reader_state": "reader"}.get(root, root)
            if not any(line.startswith(said) for line in report.splitlines()):
                wrong.append(f"{path}: {report}")
    assert wrong == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"consumed": 32}, "consumed: the plan says 32, the pipeline comes to 33"),
        ({"consumed": 33.0}, "consumed: the plan says 33.0, the pipeline comes to 33"),
        ({"reader_state": None}, "reader: the plan says nothing, the pipeline comes to 4 fields"),
        (
            {"further_epochs": ()},
            "further_epochs: the plan says 0 entries, the pipeline comes to 1",
        ),
    ],
)
def test_what_a_plan_says_and_what_it_comes_to_are_told(change: dict[str, Any], said: str) -> None:
    plan = plans()["exact"]
    assert [str(broken) for broken in broken_promises(replace(plan, **change), plan)] == [said]
