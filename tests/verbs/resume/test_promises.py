"""Whatever in a plan is not as it should be is reported, or changes nothing of what is read.

Every field of real plans is changed, found by introspection, so that a new field without a case
fails.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from operator import getitem
from typing import Any

import pytest

from shardctl.errors import ShardctlError
from shardctl.files.documents import to_json
from shardctl.saved.head import read_split_sizes
from shardctl.saved.plan_file import DIGEST, digest_of, parse_plan, plan_document, read_instructions
from shardctl.saved.resume_plan import ResumePlan, ShardCall, ShuffleCall, TakeCall
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.proof import broken_promises, prove
from tests.cases import FUZZ, counted, some_of
from tests.golden import assert_evaluated
from tests.verbs.resume.plan_cases import SEEN, TOY, Mutant, is_of_another_pipeline, mutants, plans

Place = tuple[int, int, int]  # split, shard, index in the shard

# What is read is judged by what it reads, as damage to instructions is elsewhere.
READ = {"spec"}
# What a plan is planned anew with; what is wrong there shows in the fields that follow from it.
GIVEN = {*READ, "consumed", "from_consumed", "from_seen", "mode"}
# A copy elsewhere is as good; which other version and folders may be read `applied` has to say.
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
        calls = [ShuffleCall] if changed is None else [*map(type, changed.after_read)]
        if root == "after_read" and plan.mode == "exact-order" and ShuffleCall not in calls:
            continue  # the form of 0.2.0, of which shardctl.tfds reads the same
        if root == "mode" and not report:
            continue  # another plan, which is right: both modes list the same instructions
        if not report:
            assert changed is not None
            if path != ".unseeded.risk" or not is_of_another_pipeline(changed):
                wrong.append(f"{path}: nothing is said")
        elif root not in GIVEN and changed is not None:
            said = {"reader_state": "reader"}.get(root, root)
            if not any(line.startswith(said) for line in report.splitlines()):
                wrong.append(f"{path}: {report}")
    assert wrong == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield where in a document to put which other value."""
    match value:
        case dict() | list():
            if isinstance(value, list):
                yield from ((path, [*value, *(value[:1] or [1])]), (path, value[1:]))
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                yield from leaves(inner, (*path, key))
        case bool():
            yield path, not value
        case int() | float():
            yield from ((path, other) for other in (value + 1, value - 1, None))
        case str():
            yield from ((path, other) for other in (f"{value}x", None))
        case None:
            yield from ((path, other) for other in (1, True, "x", "1/2"))


def edited(document: Any, path: tuple[Any, ...], value: Any) -> ResumePlan:
    """Return the plan of a file in which one value was changed, and which was sealed anew."""
    changed = copy.deepcopy(document)
    reduce(getitem, path[:-1], changed)[path[-1]] = value
    names = {split.name: index for index, split in enumerate(read_split_sizes(changed["splits"]))}

    def listed(part: Any) -> Any:
        reads = read_instructions(part["file_instructions"], names, "file_instructions")
        return {**part, "file_instructions": reads}

    content = listed(changed) if changed["file_instructions"] is not None else dict(changed)
    if "hosts" in changed:
        content["hosts"] = list(map(listed, changed["hosts"]))
    changed[DIGEST] = digest_of(content)
    return applied(parse_plan(json.dumps(changed).encode(), source="plan"), TOY)


@pytest.mark.parametrize(
    "name", [*list(plans())[2::9], *(pytest.param(n, marks=pytest.mark.slow) for n in plans())]
)
def test_every_edit_of_a_plan_file_is_found_out(name: str) -> None:
    plan, wrong = plans()[name], []
    document = json.loads("".join(to_json(plan_document(plan))))
    assert report_of(lambda: edited(document, ("spec",), plan.spec)) == (plan, "")
    for path, value in counted(some_of(leaves(document))):
        if path[0] in (DIGEST, "advice", "assumptions", "refs"):
            continue  # these promise nothing
        changed, report = report_of(partial(edited, document, path, value))
        if report or LEFT_TO_APPLIED.match(".".join(map(str, path))):
            continue
        assert changed is not None
        if path == ("unseeded", "risk") and is_of_another_pipeline(changed):
            continue  # it reads as many buffers again
        cuts = any(isinstance(call, TakeCall | ShardCall) for call in plan.after_read)
        takes = path[2:] != ("skip",) or document["file_instructions"][path[1]]["take"]
        if path[0] == "file_instructions" and (cuts or not takes):
            continue  # of these not all is read
        if path == ("after_read",) and plan.pending == ():
            continue  # 0.2.0 had no call for the buffer of an exact order
        if replace(changed, spec=plan.spec, settings=plan.settings) != plan:
            wrong.append(f"{path} = {value!r}: nothing is said")
    assert wrong == []


def test_what_a_plan_says_and_what_it_comes_to_are_told() -> None:
    assert_evaluated(globals(), "broken", broken_promises)
