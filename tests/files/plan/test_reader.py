from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import DatasetError
from shardctl.files.documents import FORMAT_VERSION
from shardctl.files.head import head
from shardctl.files.plan.document import digest_of, resume_document
from shardctl.files.plan.reader import parse_plan, read_plan
from shardctl.files.plan.writer import plan_json, plan_yaml
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from shardctl.planning.resume.seen import resume_unseen
from tests.cases import check_cases, counted
from tests.planning.resume.resume_cases import TOY
from tests.strategies import damaged, documents, error_line

BUFFERED = ReadSettings(buffer=3, buffer_seed=1, epochs=2, shuffle_seed=4, batch=2)
UNSEEDED = ReadSettings(buffer=3, epochs=2, shuffle_seed=4)
WRITERS: list[Callable[[ResumePlan], Any]] = [plan_json, plan_yaml]
PLANS = {
    "exact": resume(TOY, "train", ReadSettings(shuffle_seed=4, epochs=3), consumed=5),
    "exactly once": resume(TOY, "train+test", BUFFERED, consumed=6),
    "exact order": resume(TOY, "train", BUFFERED, consumed=6, mode="exact-order"),
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
        TOY,
        None,
        {"stages": "zip(train, read(test, data='mnist')) | repeat(2) | batch(3)"},
        consumed=9,
    ),
    "unseen of stages": resume_unseen(TOY, None, {"stages": "filter | repeat"}, seen=[4, 5]),
}


def text_of(plan: ResumePlan, write: Callable[[ResumePlan], Any]) -> str:
    return "".join(write(plan))


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_plan_comes_back_as_it_was(plan: ResumePlan, write: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan"
    path.write_text(text_of(plan, write))
    assert read_plan(path) == plan
    assert read_plan(str(path)) == plan


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_json_and_yaml_hold_the_same(plan: ResumePlan) -> None:
    as_json, as_yaml = (text_of(plan, write) for write in WRITERS)
    assert json.loads(as_json) == yaml.safe_load(as_yaml)


def test_a_plan_begins_as_every_document_does() -> None:
    document = json.loads(text_of(PLANS["exact"], plan_json))
    assert {key: document[key] for key in ("format_version", "kind", "dataset")} == head(
        "resume", TOY.identity
    )
    assert FORMAT_VERSION == 1
    keys = ["pipeline", "consumed", "epoch", "remaining", "file_instructions", "read_config"]
    assert [key for key in document if key in keys] == keys
    assert list(document["file_instructions"][0]) == [
        "filename",
        "split",
        "skip",
        "take",
        "examples_in_shard",
    ]
    assert document["read_config"] == {
        "interleave_cycle_length": 16,
        "interleave_block_length": 16,
        "shuffle_files": False,
    }


@pytest.mark.parametrize("write", WRITERS)
def test_names_keep_their_characters(write: Any) -> None:
    name = "a\"b\\c 'd' é 數 \u2028 \u202e \x7f: #x"
    files = ShardFiles(pattern=f"{name}-\0", num_shards=2)
    dataset = Dataset(name="toy", splits=(Split(name="yes", shard_lengths=(2, 3), files=(files,)),))
    plan = resume(dataset, "yes", consumed=1)
    text = text_of(plan, write)
    assert "\u202e" not in text
    assert parse_plan(text.encode(), source="plan") == plan
    assert plan.file_instructions[0].filename == f"{name}-00000"


@pytest.mark.parametrize("write", WRITERS)
def test_a_plan_that_is_cut_off_is_refused_wherever(write: Any) -> None:
    data = text_of(PLANS["hosts"], write).encode()
    # The last line break may go: nothing is lost with it.
    stops = [*range(0, len(data) - 1, 7), *range(len(data) - 40, len(data) - 1)]
    for stop in counted(stops):
        with pytest.raises(DatasetError):
            parse_plan(data[:stop], source="plan")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('"consumed": 5', '"consumed": 6', "does not match its digest"),
        ('"skip": 0, "take": 3', '"skip": 1, "take": 2', "does not match its digest"),
        (
            '"skip": 0, "take": 3',
            '"skip": 2, "take": 3',
            "skip 2 and take 3 do not fit a file of 3",
        ),
        ('"skip": 0, "take": 3', '"skip": -1, "take": 3', "skip -1 is negative"),
        ('"skip": 0, "take": 3', '"skip": 0.5, "take": 3', "skip must be a whole number"),
        ('"take": 3, ', "", "entry . needs|are needed, in this order"),
        ('"split": "train"', '"split": "trian"', "split 'trian'; the splits are train, test"),
        ('"format_version": 1', '"format_version": 2', "reads plans of version 1"),
        ('"kind": "resume"', '"kind": "simulate"', "this is the answer of 'simulate'"),
        ('"kind": "resume",', "", "this is not a plan"),
        ('"digest"', '"digests"', "cut off: it has no digest"),
        ('"further_epochs": [', '"further_epochs": 3, "x": [', "does not match its digest"),
        ('"consumed": 5', '"consumed": 5, "more": 5', "does not match its digest"),
    ],
)
def test_a_plan_that_was_edited_is_refused(old: str, new: str, text: str) -> None:
    plan = resume(TOY, "train", ReadSettings(cycle=1, epochs=2), consumed=5)
    whole = text_of(replace(plan, warnings=()), plan_json)
    assert old in whole
    with pytest.raises(DatasetError, match=text):
        parse_plan(whole.replace(old, new, 1).encode(), source="plan")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"continued_by": "hand"}, "continued_by 'hand': there are file_instructions"),
        ({"continued_by": None}, "continued_by"),
        ({"mode": "exactly-once", "exact": False}, "is exact, without file instructions"),
        ({"remaining": None}, "remaining of a pipeline without end|not whole"),
        ({"remaining_total": None}, "remaining of a pipeline without end"),
        (
            {"remaining": None, "remaining_total": None, "continued_by": "file_instructions"},
            "file instructions of a pipeline without end",
        ),
        ({"sources": 3}, "sources must be a list"),
        ({"sources": [3]}, "a source must be a mapping"),
        ({"sources": [{"data": 3, "spec": None, "consumed": 2}]}, "data of a source"),
        ({"sources": [{"data": None, "spec": 3, "consumed": 2}]}, "spec of a source"),
        ({"sources": [{"data": None, "spec": None, "consumed": -2}]}, "consumed of a source"),
        ({"sources": [{"data": None, "spec": None, "consumed": 2, "x": 1}]}, "x"),
    ],
)
def test_wrong_stages_under_a_right_digest_are_refused(change: dict[str, Any], text: str) -> None:
    plan = PLANS["stages"]
    document = {**resume_document(plan), **change}
    document["digest"] = digest_of({**document, "file_instructions": plan.instructions})
    document["file_instructions"] = []
    with pytest.raises(DatasetError, match=text):
        parse_plan(json.dumps(document).encode(), source="plan")


def test_stages_of_a_plan_without_stages_are_refused() -> None:
    plan = PLANS["the end"]
    document = {**resume_document(plan), "continued_by": "shardctl.tfds"}
    document["digest"] = digest_of({**document, "file_instructions": plan.instructions})
    document["file_instructions"] = []
    with pytest.raises(DatasetError, match="without stages"):
        parse_plan(json.dumps(document).encode(), source="plan")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "a plan file must be a mapping, not nothing"),
        (b"[1, 2]", "a plan file must be a mapping, not a list"),
        (b"name: toy\nsplits: {}", "this is not a plan; a plan is written by resume --output"),
        (b"{", "is not JSON"),
        (b"\x00\x01", "NUL"),
        (b"kind: [resume\n", "is not YAML"),
    ],
)
def test_a_file_that_is_not_a_plan_is_refused(data: bytes, text: str) -> None:
    with pytest.raises(DatasetError, match=text):
        parse_plan(data, source="plan")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        read_plan(tmp_path / "plan.yaml")


def test_damaged_plans_are_plans_or_one_line() -> None:
    texts = [text_of(plan, write).encode() for plan in PLANS.values() for write in WRITERS]
    cases = st.sampled_from(texts).flatmap(damaged)
    check_cases(
        cases,
        lambda data: _ignore(error_line(lambda: parse_plan(data, source="plan"))),
        300,
    )


def test_nonsense_is_one_line() -> None:
    whole = json.loads(text_of(PLANS["hosts"], plan_json))
    values = documents((*whole, "filename", "skip", "seeds", "index"))

    def check(drawn: tuple[str, Any]) -> None:
        key, value = drawn
        data = json.dumps({**whole, key: value}).encode()
        assert error_line(lambda: parse_plan(data, source="plan")) or whole[key] == value

    cases = st.tuples(st.sampled_from([key for key in whole if key != "proof"]), values)
    check_cases(cases, check, 80)


def _ignore(line: str | None) -> None:
    """Whether it is refused is not the question here, only how."""
