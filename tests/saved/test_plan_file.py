"""Plan files: written whole, read back as they were, or refused in a line."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import inspect
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.files.documents import Document, to_csv, to_json, to_yaml
from shardctl.saved import resume_plan as plans
from shardctl.saved.plan_file import (
    call_record,
    digest_of,
    instruction_rows,
    parse_plan,
    plan_document,
    read_call,
    read_instructions,
    read_plan,
)
from shardctl.saved.resume_plan import PlanListing, ResumePlan, settings_as_planned
from shardctl.saved.snapshot_file import read_comparable
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import check_cases, counted
from tests.golden import assert_evaluated
from tests.strategies import NOWHERE, Place, damaged, error_line, places_of, with_value
from tests.verbs.resume.resume_cases import TOY

BUFFERED = ReadSettings(buffer=3, buffer_seed=1, epochs=2, shuffle_seed=4, batch=2)
UNSEEDED = ReadSettings(buffer=3, epochs=2, shuffle_seed=4)
WRITERS: list[Callable[[Document], Any]] = [to_json, to_yaml]
PLANS = {
    "exact": resume(TOY, "train", ReadSettings(shuffle_seed=4, epochs=3), consumed=5),
    "exactly once": resume(TOY, "train+test", BUFFERED, consumed=6, mode="exactly-once"),
    "exact order": resume(TOY, "train", BUFFERED, consumed=6, mode="exact-order"),
    "nothing pending": resume(TOY, "train", BUFFERED, consumed=0, mode="exact-order"),
    "at most once": resume(TOY, "train", UNSEEDED, consumed=6, mode="at-most-once"),
    "at least once": resume(TOY, "train", UNSEEDED, consumed=6, mode="at-least-once", risk=1e-3),
    "the end": resume(TOY, "train", consumed=11),
    "hosts": resume_on_hosts(TOY, "train", BUFFERED, hosts=2, to_hosts=3, consumed=[1, 2]),
    "idle hosts": resume_on_hosts(TOY, "train", hosts=2, to_hosts=3, consumed=[6, 4]),
    "hosts without seeds": resume_on_hosts(
        TOY, "train", UNSEEDED, hosts=2, to_hosts=3, consumed=[1, 2], mode="at-most-once"
    ),
    "unseen": resume_unseen(TOY, "train", ReadSettings(shuffle_files=True), seen=[4, 5]),
    "cut": resume(TOY, None, {"stages": "skip(2) | batch(3) | take(2)"}, steps=1),
    "stages": resume(TOY, None, {"stages": "shuffle(3, seed=1) | take(7)"}, consumed=2),
    "no end": resume(TOY, None, {"stages": "map | repeat | skip(3)"}, consumed=99),
    "mixture": resume(
        TOY, None, {"stages": "zip(train, read(test, data='mnist')) | repeat(2)"}, consumed=9
    ),
    "unseen of stages": resume_unseen(TOY, None, {"stages": "filter | repeat"}, seen=[4, 5]),
}
each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


def text_of(plan: ResumePlan, write: Callable[[Document], Any] = to_json) -> str:
    return "".join(write(plan_document(plan)))


def parsed(data: bytes | str) -> ResumePlan:
    return parse_plan(data.encode() if isinstance(data, str) else data, source="plan")


def refused(data: bytes | str) -> str:
    return error_line(lambda: parsed(data)) or ""


# Plans that come back.


@each_plan
def test_a_plan_comes_back_as_it_was(plan: ResumePlan, tmp_path: Path) -> None:
    for write in WRITERS:
        (tmp_path / "plan").write_text(text_of(plan, write))
        assert read_plan(tmp_path / "plan") == read_plan(str(tmp_path / "plan")) == plan
        found = read_comparable(tmp_path / "plan")
        assert isinstance(found, PlanListing)
        assert found.dataset == plan.dataset
    assert json.loads(text_of(plan)) == yaml.safe_load(text_of(plan, to_yaml))


def test_the_digest_is_that_of_every_field() -> None:
    fields = {"consumed": 3, "spec": "é"}
    text = b'shardctl resume 1\n{"consumed":3,"spec":"\\u00e9"}\n'
    assert digest_of(fields) == f"sha256:{hashlib.sha256(text).hexdigest()}"
    # What is made from the plan, the digest itself and where the dataset lies take no part.
    for more in ({"proof": {}, "digest": "x"}, {"refs": ["../big.yaml"]}):
        assert digest_of({**fields, **more}) == digest_of(fields)
    written = json.loads(text_of(PLANS["exact order"]))  # columns are those of files on file
    assert len({plan_document(plan)["digest"] for plan in PLANS.values()}) == len(PLANS)
    assert digest_of({**written, "consumed": 7}) != digest_of(written)


# Calls behind the reader.


def call_of(record: Any) -> plans.TfCall:
    call = read_call(record)
    assert list(call_record(call).items()) == list(record.items())
    return call


# File instructions, one a line.

RECORD = {"filename": "a", "split": "train", "skip": 1, "take": 2, "examples_in_shard": 3}


def listed(value: Any) -> object:
    return read_instructions(value, {"train": 0, "test": 1}, "x")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *[(name, name) for name in ('a"b', "a\\b", "a'b: #", "é數", "yes")],
        ("a##[b]", r"a\x23#[b]"),
        ("\x7f\u2028\u202e", r"\x7f\u2028\u202e"),
        ("-\t", r"'-\t"),
    ],
)
def test_names_of_any_characters_are_quoted(name: str, cell: str) -> None:
    files = ShardFiles(pattern=f"{name}-\0", num_shards=1)
    toy = Dataset(name="d", splits=(Split(name="no", shard_lengths=(3,), files=(files,)),))
    plan = replace(resume(toy, "no", consumed=0), warnings=())
    for write in WRITERS:
        text = text_of(plan, write)
        assert "\u202e" not in text
        found = parsed(text)
        assert found == plan
        assert found.instructions.filenames() == [f"{name}-00000"]
    (row,) = csv.reader(io.StringIO("".join(to_csv(instruction_rows(plan))).partition("\n")[2]))
    assert row[1] == f"{cell}-00000"
    assert len(row) == len(instruction_rows(plan).fields)


# What is refused.


@pytest.mark.parametrize("write", WRITERS)
def test_a_plan_that_is_cut_off_is_refused_wherever(write: Any) -> None:
    data = text_of(PLANS["hosts"], write).encode()
    # The last line break may go: nothing is lost with it.
    for stop in counted([*range(0, len(data) - 1, 29), *range(len(data) - 40, len(data) - 1)]):
        with pytest.raises(DatasetError):
            parsed(data[:stop])


def edited(old: str, new: str) -> ResumePlan:
    whole = text_of(resume(TOY, "train", ReadSettings(cycle=1, epochs=2), consumed=5))
    assert old in whole
    return parsed(whole.replace(old, new, 1))


def sealed(plan: ResumePlan, place: Place | str, value: object) -> str:
    """Return a plan file with one value changed, whose digest is that of what it holds."""
    document = with_value(json.loads(text_of(plan)), place, value)
    content = dict(document)
    if content["file_instructions"] is not None:
        content["file_instructions"] = plan.instructions
    if isinstance(document.get("hosts"), list):
        content["hosts"] = [
            {**host, "file_instructions": share.instructions}
            for host, share in zip(document["hosts"], plan.hosts, strict=False)
            if isinstance(host, dict)
        ]
    return json.dumps({**document, "digest": digest_of(content)})


BUFFER = json.loads(text_of(PLANS["at most once"]))["unseeded"]
SOURCE = {"data": None, "spec": None, "consumed": 2}


def test_what_is_refused_is_on_file(tmp_path: Path) -> None:
    assert_evaluated(globals(), "refused_plans")
    with pytest.raises(DatasetError, match="no such file"):
        read_plan(tmp_path / "plan.yaml")


@pytest.mark.long
@pytest.mark.parametrize("name", ["exact order", "at least once", "hosts", "unseen", "mixture"])
def test_a_value_of_another_kind_is_refused_anywhere(name: str) -> None:
    plan = PLANS[name]
    for place in counted(list(places_of(json.loads(text_of(plan))))):
        for value in NOWHERE:
            assert place == ("digest",) or refused(sealed(plan, place, value)), place


@pytest.mark.long
def test_damaged_plans_are_the_same_plans_or_one_line() -> None:
    texts = [(plan, text_of(plan, write).encode()) for plan in PLANS.values() for write in WRITERS]

    def check(case: tuple[ResumePlan, bytes]) -> None:
        plan, data = case
        if not refused(data):
            assert parsed(data) == plan

    cases = st.sampled_from(texts).flatmap(
        lambda drawn: st.tuples(st.just(drawn[0]), damaged(drawn[1]))
    )
    check_cases(cases, check, 100)


# A plan as a value: what follows from its fields, and its calls of tf.data.

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
