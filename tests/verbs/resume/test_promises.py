"""Whatever in a plan is not as it should be is reported, or changes nothing of what is read.

Every field of real plans is changed, found by introspection, so that a new field without a case
fails. What is read is worked out here by hand from the instructions.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from shardctl.dataset.identity import DatasetIdentity
from shardctl.errors import ShardctlError
from shardctl.loaders.loader import LoaderCall, Stop
from shardctl.order.plan_order import plan_order
from shardctl.saved.head import read_split_sizes
from shardctl.saved.plan_file import DIGEST, digest_of, parse_plan, plan_json, read_instructions
from shardctl.saved.resume_plan import (
    CALLS,
    FurtherEpoch,
    HostShare,
    ReaderState,
    ResumePlan,
    ShuffleState,
)
from shardctl.saved.unseeded_buffer import UnseededBuffer
from shardctl.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.proof import broken_promises, planned_anew, prove
from tests.cases import FUZZ, counted, some_of
from tests.oracles import interleave_by_hand
from tests.verbs.resume.plan_cases import (
    SEEN,
    TOY,
    Mutant,
    is_of_another_pipeline,
    mutants,
    plans,
)

Change = TypeVar("Change")
Edit = tuple[tuple[Any, ...], Any]  # where in a document, and the value to put there
Place = tuple[int, int, int]  # split, shard, index in the shard

# What is read is judged by what it reads, and a change that makes no difference there is none.
READ = {"spec", "settings", "instructions", "hosts"}
# What a plan is planned anew with; what is wrong there shows in the fields that follow from it.
GIVEN = {*READ, "consumed", "from_consumed", "from_seen", "mode"}
# A copy elsewhere is as good; which other version and folders may be read `applied` has to say.
OF_APPLIED = {"data_dir", "name", "config", "version", "folders", "template"}
LEFT_TO_APPLIED = re.compile(r"dataset\.(data_dir|version|folders)\b|.*\btemplate$")


def read_by_hand(plan: ResumePlan) -> Any:
    """Return all that a plan makes its readers read; where it keeps no order, in any."""
    settings, num_held = plan.settings, plan.num_pending_instructions
    shares = [host.instructions for host in plan.hosts] or [plan.instructions]
    shards = settings.host is not None and settings.host_mode.reads_all and not plan.from_seen
    stride, phase = settings.host_mode.stride_and_phase(settings.host) if shards else (1, 0)
    firsts = []
    for reads in shares:
        held, rest = reads.select(slice(0, num_held)), reads.select(slice(num_held, None))
        if not shards:
            held, rest = reads.select(slice(0, 0)), reads
        read = [*places(held, plan), *places(rest, plan)[phase::stride]]
        if plan.unseeded is not None and settings.repeat_files:
            read = read[: plan.remaining]  # cut before the buffer
        firsts.append(read if plan.exact else sorted(read))
    buffer = settings.buffer, settings.buffer_seed
    return (
        [read[: plan.remaining] if plan.mode == "exact" else read for read in firsts],
        [*further(plan)],
        (settings.batch, settings.drop_remainder, plan.remaining),
        plan.shuffle if plan.exact else buffer,
    )


def places(reads: Reads, plan: ResumePlan) -> list[Place]:
    columns = (reads.split, reads.shard, reads.skip)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    if plan.continued_by == "loader":
        cycle, block = 1, 1
    else:
        cycle, block = plan.cycle_length, plan.settings.block
    turns = interleave_by_hand(reads.take.tolist(), cycle, block)
    return [(rows[row][0], rows[row][1], rows[row][2] + index) for row, index in turns]


def further(plan: ResumePlan) -> Iterator[list[Place]]:
    """Yield what each of the readers reads in each of the further epochs."""
    if not plan.num_further_epochs:
        return
    count = len(plan.hosts)
    new: list[Host | None] = [Host(index=i, count=count) for i in range(count)]
    hosts = new or [plan.settings.host]
    for host in hosts:
        settings = replace(plan.settings, host=host)
        if plan.unseeded is not None:  # whose seed decides what a last batch drops
            settings = with_any_buffer_seed(replace(settings, batch=None, drop_remainder=False))
        order = plan_order(TOY, plan.spec, settings).order
        codes = order.read((plan.epoch + 1) * order.epoch_size, order.num_examples)
        columns = (column.tolist() for column in order.codes.places(codes))
        read = list(zip(*columns, strict=True))
        # Of buffers without a seed no more is said than what each epoch holds.
        yield read if plan.unseeded is None else sorted(read)


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


def of_each_place(
    name: str, changes: Iterable[Change], path_of: Callable[[Change], str], one_in: int
) -> Iterator[Change]:
    """Yield the first change at each place, and one in `one_in` of the others.

    Rows of a list are one place. Which of the others they are differs from plan to plan, and from
    row to row, so that together they are changed in every way.
    """
    first, seen = list(plans()).index(name), Counter[str]()
    for change in changes:
        place = re.sub(r"\d+", "N", path_of(change))
        row, number = divmod(seen[place], 3)
        if not seen[place] or (first + row + number) % one_in == 0:
            yield change
        seen[place] += 1


# A third of the plans, a few changes at each place; slow tests take every plan, and more of them.
of_plans = pytest.mark.parametrize(
    ("name", "one_in"),
    [
        *((name, 12) for name in list(plans())[::3]),
        *(pytest.param(name, 3, marks=pytest.mark.slow) for name in plans()),
    ],
)


@of_plans
def test_whatever_is_changed_in_a_plan_is_reported_or_changes_nothing(
    name: str, one_in: int
) -> None:
    changes = of_each_place(name, mutants(plans()[name]), lambda mutant: mutant[1], one_in)
    check_changed(plans()[name], changes)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", list(plans())[: max(1, FUZZ // 50)])
def test_every_change_in_a_plan_is_reported_or_changes_nothing(name: str) -> None:
    check_changed(plans()[name], mutants(plans()[name]))


def check_changed(plan: ResumePlan, changes: Iterable[Mutant]) -> None:
    assert report_of(lambda: plan) == (plan, "")
    as_it_is = read_by_hand(plan)
    wrong = []
    for _, path, make in counted(some_of(changes)):
        changed, report = report_of(make)
        root = re.split(r"[\[.#]", path[1:])[0]
        if root in ("warnings", "advice") or LEFT_TO_APPLIED.match(path[1:]):
            continue  # these are said, and not promised
        if not report:
            assert changed is not None
            same = root in READ and read_by_hand(changed) == as_it_is
            if path in (".settings.cycle", ".settings.block", ".unseeded.risk"):
                same = same or is_of_another_pipeline(changed)
            if not same:
                wrong.append(f"{path}: nothing is said")
        elif root not in GIVEN and changed is not None:
            said = {"reader_state": "reader"}.get(root, root)
            if not any(line.startswith(said) for line in report.splitlines()):
                wrong.append(f"{path}: {report}")
    assert wrong == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[Edit]:
    """Yield where in a document to put which other value; `None` stands for leaving it out."""
    match value:
        case dict() | list():
            if isinstance(value, list):
                yield path, [*value, *(value[:1] or [1])]
                yield path, value[1:]
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                yield from leaves(inner, (*path, key))
        case bool():
            yield path, not value
        case float():
            yield from ((path, other) for other in (value * 2, value / 2, -1.0, None))
        case int():
            yield from ((path, other) for other in (value + 1, value - 1, None))
        case str():
            yield from ((path, other) for other in (f"{value}x", None))
        case None:
            yield from ((path, other) for other in (1, True, "x", "1/2"))


def changed_document(document: Any, path: tuple[Any, ...], value: Any) -> bytes:
    """Return a plan file with one value changed, and sealed anew."""
    inner = changed = copy.copy(document)
    for key in path[:-1]:
        inner[key] = inner = copy.copy(inner[key])
    inner[path[-1]] = value
    names = {split.name: index for index, split in enumerate(read_split_sizes(changed["splits"]))}

    def sealed(part: dict[str, Any]) -> dict[str, Any]:
        reads = read_instructions(part["file_instructions"], names, "file_instructions")
        return {**part, "file_instructions": reads}

    content = sealed(changed)
    if "hosts" in changed:
        content["hosts"] = [sealed(host) for host in changed["hosts"]]
    return json.dumps({**changed, DIGEST: digest_of(content)}).encode()


@of_plans
def test_a_plan_file_that_was_edited_and_sealed_anew_is_found_out(name: str, one_in: int) -> None:
    def place(edit: Edit) -> str:
        return ".".join(map(str, edit[0]))

    document = document_of(plans()[name])
    check_edited(plans()[name], document, of_each_place(name, leaves(document), place, one_in))


@pytest.mark.fuzz
@pytest.mark.parametrize("name", list(plans())[: max(1, FUZZ // 50)])
def test_every_edit_of_a_plan_file_sealed_anew_is_found_out(name: str) -> None:
    document = document_of(plans()[name])
    check_edited(plans()[name], document, leaves(document))


def document_of(plan: ResumePlan) -> Any:
    return json.loads("".join(plan_json(plan)))


def check_edited(plan: ResumePlan, document: Any, edits: Iterable[Edit]) -> None:
    as_it_is = read_by_hand(plan)
    unmatched = changed_document(document, ("spec",), plan.spec)
    assert report_of(lambda: parse_plan(unmatched, source="plan"))[1] == ""
    wrong = []
    for path, value in counted(some_of(edits)):
        if path[0] == DIGEST or not path:
            continue

        def make(path: tuple[Any, ...] = path, value: Any = value) -> ResumePlan:
            return applied(parse_plan(changed_document(document, path, value), source="plan"), TOY)

        changed, report = report_of(make)
        if report or LEFT_TO_APPLIED.match(".".join(map(str, path))):
            continue
        assert changed is not None
        if path == ("unseeded", "risk") and is_of_another_pipeline(changed):
            continue  # that takes as many buffers
        same_promises = replace(changed, spec=plan.spec, settings=plan.settings) == replace(
            plan, instructions=changed.instructions, hosts=changed.hosts
        )
        if not same_promises or read_by_hand(changed) != as_it_is:
            wrong.append(f"{path} = {value!r}: nothing is said")
    assert wrong == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"consumed": 32}, "consumed: the plan says 32, the pipeline comes to 33"),
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


@pytest.mark.parametrize("name", ["unseen", "unseen by files", "unseen to hosts"])
def test_a_plan_of_the_unseen_is_made_anew_of_all_that_it_leaves_out(name: str) -> None:
    plan = plans()[name]
    anew = planned_anew(TOY, plan)
    assert (anew.instructions, anew.hosts) == (plan.instructions, plan.hosts)
    assert broken_promises(plan, anew) == ()


@pytest.mark.long
def test_every_field_of_a_plan_is_changed_and_reported() -> None:
    """Over all plans together; what never is reported is listed here with its reason."""
    no_matter = {
        ("ResumePlan", "warnings"),  # said, and not promised
        ("ResumePlan", "advice"),  # likewise
        ("ResumePlan", "assumptions"),  # likewise
        ("ResumePlan", "given"),  # the dataset of the command
        ("ResumePlan", "refs"),  # where the dataset is looked for
        # Of a run that was shared among other hosts, whose plan is made anew from its position.
        ("ResumePlan", "stretches"),
        ("ResumePlan", "shared"),
        *(("DatasetIdentity", name) for name in OF_APPLIED),
    }
    in_parts = ("instructions", "dataset", "settings", "seeds")
    tried, reported = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for plan in plans().values():
        for field, _, make in mutants(plan):
            tried[field] += 1
            if field not in reported and report_of(make)[1]:
                reported[field] += 1
    kinds = (
        ResumePlan,
        ReaderState,
        ShuffleState,
        UnseededBuffer,
        KernelSeeds,
        FurtherEpoch,
        HostShare,
        Stop,
        LoaderCall,
    )
    for kind in (*kinds, *CALLS, ReadSettings, DatasetIdentity):
        for one in dataclasses.fields(kind):
            field = (kind.__name__, one.name)
            if field in no_matter or one.name in in_parts:
                continue
            assert tried[field], field
            assert reported[field], field
