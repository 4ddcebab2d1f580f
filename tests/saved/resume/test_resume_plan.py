"""A plan to continue, as a value: what follows from its fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.saved.resume_plan import ListedPlan, PlanListing, settings_as_planned
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.verbs.resume.resume_cases import TOY


@pytest.mark.parametrize(
    ("mode", "exact"), [("exact", True), ("exact-order", True), ("exactly-once", False)]
)
def test_a_plan_is_exact_where_the_order_stays(mode: Any, exact: bool) -> None:
    assert replace(resume(TOY, "train", consumed=3), mode=mode).exact == exact


def test_instructions_are_those_of_one_reader_or_of_all_new_hosts() -> None:
    alone = resume(TOY, "train", ReadSettings(cycle=1), consumed=4)
    # File 0 is read; of file 1 one of 5 examples is, and file 2 was not opened.
    assert [(i.skip, i.take) for i in alone.file_instructions] == [(1, 4), (0, 3)]
    assert alone.num_instructions == 2
    among = resume_on_hosts(TOY, "train", hosts=1, to_hosts=2, consumed=[0])
    assert [host.num_examples for host in among.hosts] == [6, 5]
    assert among.file_instructions == ()
    # Ids 0 to 5 lie in files 0 and 1, ids 6 to 10 in files 1 and 2.
    assert among.num_instructions == 4


def test_a_repr_says_what_goes_on_with_the_plan() -> None:
    listed = resume(TOY, "train", ReadSettings(cycle=1), consumed=4)
    assert repr(listed) == (
        "<ResumePlan toy train: exact, 4 consumed, 7 left of epoch 0, 2 file instructions>"
    )
    stages = {"stages": "skip(2) | take(7)", "shuffle_seed": 3, "pass_index": 1}
    assert repr(resume(TOY, "train", stages, consumed=3)) == (
        "<ResumePlan toy train: exact, 3 consumed, 4 left of epoch 0, continued by shardctl.tfds>"
    )
    among = resume_on_hosts(TOY, "train", hosts=1, to_hosts=2, consumed=[0])
    assert repr(among) == (
        "<ResumePlan toy train: exactly-once, 0 consumed, 11 left of epoch 0, "
        "4 file instructions, for 2 hosts>"
    )
    assert repr(among.hosts[1]) == "<HostShare host 1 of 2: 5 examples, 2 file instructions>"
    listing = PlanListing(
        kind="plan",
        dataset=TOY.identity,
        plans=(ListedPlan(title="train", reads=listed.instructions),),
    )
    assert repr(listing) == "<PlanListing toy plan: 1 plan>"


@pytest.mark.parametrize(
    ("settings", "ordered", "cycle", "block"),
    [
        ({}, False, 16, 16),
        ({}, True, 1, 16),
        ({"cycle": 3, "block": 2}, False, 3, 2),
    ],
)
def test_the_reader_is_set_as_the_interrupted_one_was(
    settings: dict[str, Any], ordered: bool, cycle: int, block: int
) -> None:
    toy = replace(TOY, ordered=ordered)
    plan = resume(toy, "train", ReadSettings(**settings), consumed=3)
    assert plan.cycle_length == cycle
    assert plan.read_config == {
        "interleave_cycle_length": cycle,
        "interleave_block_length": block,
        "shuffle_files": False,
    }


def test_settings_as_planned_have_every_default_written_out() -> None:
    given = ReadSettings(shuffle_seed=5, buffer=7, buffer_seed=1)
    planned = settings_as_planned(given, ordered=False)
    assert (planned.cycle, planned.reshuffle, planned.buffer_reshuffle) == (16, True, True)
    assert (planned.shuffle_seed, planned.buffer, planned.buffer_seed) == (5, 7, 1)
    assert settings_as_planned(planned, ordered=False) == planned
    assert settings_as_planned(ReadSettings(), ordered=True).cycle == 1


def test_the_pipeline_holds_every_setting_by_name() -> None:
    plan = resume(TOY, "train", ReadSettings(cycle=2, shuffle_seed=5), consumed=3)
    assert plan.pipeline["cycle"] == 2
    assert plan.pipeline["shuffle_seed"] == 5
    assert plan.pipeline["buffer"] is None
