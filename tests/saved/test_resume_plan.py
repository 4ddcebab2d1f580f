"""A plan to resume as a value: what follows from its fields, and its calls of tf.data."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import replace
from typing import Any

from shardctl.saved import resume_plan as plans
from shardctl.saved.resume_plan import settings_as_planned
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.verbs.resume.resume_cases import TOY

ALONE = resume(TOY, "train", ReadSettings(cycle=1), consumed=4)
AMONG = resume_on_hosts(TOY, "train", hosts=1, to_hosts=2, consumed=[0])


def test_a_repr_says_what_goes_on_with_the_plan() -> None:
    stages = {"stages": "skip(2) | take(7)", "shuffle_seed": 3, "pass_index": 1}
    listed = plans.ListedPlan(title="train", reads=ALONE.instructions)
    listing = plans.PlanListing(kind="plan", dataset=TOY.identity, plans=(listed,))
    assert [repr(one) for one in (ALONE, resume(TOY, "train", stages, consumed=3), AMONG)] == [
        "<ResumePlan toy train: exact, 4 consumed, 7 left of epoch 0, 2 file instructions>",
        "<ResumePlan toy train: exact, 3 consumed, 4 left of epoch 0, continued by shardctl.tfds>",
        "<ResumePlan toy train: exactly-once, 0 consumed, 11 left of epoch 0, "
        "4 file instructions, for 2 hosts>",
    ]
    assert repr(AMONG.hosts[1]) == "<HostShare host 1 of 2: 5 examples, 2 file instructions>"
    assert repr(listing) == "<PlanListing toy plan: 1 plan>"


def test_settings_as_planned_have_every_default_written_out() -> None:
    given = ReadSettings(shuffle_seed=5, buffer=7, buffer_seed=1)
    planned = settings_as_planned(given, ordered=False)
    assert planned == replace(given, cycle=16, block=16, reshuffle=True, buffer_reshuffle=True,
                              shuffle_files=True)  # fmt: skip
    assert settings_as_planned(planned, ordered=False) == planned
    assert settings_as_planned(ReadSettings(), ordered=True).cycle == 1


def test_each_call_is_a_method_with_its_arguments(tf: Any) -> None:
    assert len({call.call for call in plans.CALLS}) == len(plans.CALLS)
    for call in plans.CALLS:
        method = getattr(tf.data.Dataset, call.call)
        names = {field.name for field in dataclasses.fields(call)} - {"skip_instructions"}
        is_of_epochs = call is plans.ConcatenateCall
        assert is_of_epochs or names <= inspect.signature(method).parameters.keys()
    numbers = tf.data.Dataset.range(10)
    for one in (
        plans.ShardCall(num_shards=3, index=1),
        plans.TakeCall(count=2),
        plans.BatchCall(batch_size=2, drop_remainder=True),
    ):
        fields = dataclasses.asdict(one)
        assert not fields.pop("skip_instructions", 0)
        numbers = getattr(numbers, one.call)(**fields)
    assert [batch.tolist() for batch in numbers.as_numpy_iterator()] == [[1, 4]]
