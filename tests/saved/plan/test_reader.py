from __future__ import annotations

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
from shardctl.files.documents import FORMAT_VERSION
from shardctl.saved.head import head
from shardctl.saved.plan_file import (
    digest_of,
    parse_plan,
    plan_json,
    plan_yaml,
    read_plan,
    resume_document,
)
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import check_cases, counted
from tests.strategies import damaged, documents, error_line
from tests.verbs.resume.resume_cases import TOY

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
        ('"split": "train"', '"split": "trian"', "of a split; the splits are train, test"),
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


def test_of_a_plan_that_is_cut_off_the_first_that_is_missing_is_named() -> None:
    said = "the plan is cut off: it has no dataset, ordered, splits and "
    with pytest.raises(DatasetError, match=rf"plan: {said}\d+ more$"):
        parse_plan(b'{"format_version": 1, "kind": "resume"}', source="plan")


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
        ({"sources": [3]}, "sources\\[0\\] must be a mapping"),
        ({"sources": [{"data": 3, "spec": None, "consumed": 2}]}, "sources.0..data must be text"),
        ({"sources": [{"data": None, "spec": 3, "consumed": 2}]}, "sources.0..spec must be text"),
        (
            {"sources": [{"data": None, "spec": None, "consumed": -2}]},
            "consumed -2 is negative",
        ),
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


def sealed(plan: ResumePlan, path: tuple[Any, ...], value: object) -> bytes:
    """Return a plan file with one value changed, whose digest is that of what it holds."""
    document = json.loads(text_of(plan, plan_json))
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    content = {**document, "file_instructions": plan.instructions}
    if isinstance(document.get("hosts"), list):
        content["hosts"] = [
            {**host, "file_instructions": share.instructions}
            for host, share in zip(document["hosts"], plan.hosts, strict=True)
            if isinstance(host, dict)
        ]
    return json.dumps({**document, "digest": digest_of(content)}).encode()


BUFFER = json.loads(text_of(PLANS["at most once"], plan_json))["unseeded"]


@pytest.mark.parametrize(
    ("name", "path", "value", "text"),
    [
        ("exact", ("dataset",), 3, "dataset must be a mapping, not 3"),
        ("exact", ("splits",), 3, "splits must be a "),
        ("exact", ("file_instructions",), 3, "file_instructions must be a list, not 3"),
        ("exact", ("pipeline",), 3, "pipeline must be a mapping, not 3"),
        ("exact", ("pipeline", "cycle"), 0, "cycle"),
        ("exact", ("pipeline", "loader"), "grain", "--cycle 16 means nothing to Grain"),
        ("exact", ("spec",), 3, "spec must be text"),
        ("exact", ("mode",), "sometimes", "mode 'sometimes': there are exact, exactly-once, "),
        ("exact", ("mode",), 3, "mode 3: there are exact, exactly-once, "),
        ("exact", ("exact",), False, "exact is not what mode comes to, true"),
        ("exactly once", ("exact",), True, "exact is not what mode comes to, false"),
        (
            "exact",
            ("read_config", "shuffle_files"),
            True,
            r'read_config is not what pipeline comes to, {"interleave_cycle_length": 16,',
        ),
        ("exact", ("consumed",), -1, "consumed -1 is negative"),
        ("exact", ("epoch",), None, "epoch must be a whole number"),
        ("exact", ("remaining_total",), 0.5, "remaining_total must be a whole number"),
        ("exact", ("num_pending_instructions",), "2", "num_pending_instructions must be a whole"),
        ("exact", ("num_further_epochs",), True, "num_further_epochs must be a whole number"),
        ("exact", ("further_epochs",), 3, "further_epochs must be a list, not 3"),
        ("exact", ("further_epochs", 0), 3, "further_epochs.0. must be a mapping, not 3"),
        (
            "exact",
            ("further_epochs", 0, "epoch"),
            "1",
            "epoch must be a whole number",
        ),
        (
            "exact",
            ("further_epochs", 0, "file_seeds"),
            3,
            "further_epochs.0..file_seeds must be a mapping, not 3",
        ),
        (
            "exact",
            ("further_epochs", 0, "file_seeds"),
            [3],
            "further_epochs.0..file_seeds.* must be",
        ),
        (
            "exactly once",
            ("further_epochs", 0, "buffer_seeds"),
            [3, None],
            "seed2 must be a whole number",
        ),
        ("exact", ("from_seen",), 3, "from_seen must be true or false"),
        ("hosts", ("from_consumed",), 3, "from_consumed must be a list"),
        ("hosts", ("from_consumed",), [3, -1], "from_consumed.1. -1 is negative"),
        ("exactly once", ("pending",), 3, "pending must be a list"),
        ("exactly once", ("pending",), [2, 1.5], "pending.1. must be a whole number, not 1.5"),
        ("exactly once", ("pending",), [True], "pending.0. must be a whole number, not true"),
        ("exact order", ("shuffle",), 3, "shuffle must be a mapping"),
        ("exact order", ("shuffle", "seeds"), None, "shuffle.seeds must be a mapping, not nothing"),
        (
            "exact order",
            ("shuffle", "seeds"),
            [1, 2, 3],
            "seeds must be a mapping, not a list",
        ),
        ("exact order", ("shuffle", "emitted"), None, "shuffle.emitted must be a whole number"),
        ("exact order", ("reader",), 3, "reader must be a mapping"),
        ("exact order", ("reader", "next_file"), -1, "reader.next_file -1 is negative"),
        ("at most once", ("unseeded",), 3, "unseeded must be a mapping"),
        ("at most once", ("unseeded", "emitted"), None, "unseeded.emitted must be a whole"),
        ("at most once", ("unseeded", "expected_lost"), "1", "unseeded.expected_lost must be a"),
        ("at most once", ("unseeded", "risk"), "1", "unseeded.risk must be a"),
        (
            "at most once",
            ("unseeded",),
            None,
            "mode at-most-once without a buffer that is unseeded",
        ),
        ("exact", ("unseeded",), BUFFER, "mode exact with a buffer that is unseeded"),
        (
            "at most once",
            ("pipeline", "buffer_seed"),
            1,
            "mode at-most-once of a pipeline whose buffer has a seed, or is none",
        ),
        ("hosts", ("hosts",), 3, "hosts must be a list"),
        ("hosts", ("hosts", 1), 3, "a host must be a mapping"),
        ("hosts", ("hosts", 1, "num_examples"), 99, "hosts, entry 1: num_examples 99 where the"),
        ("hosts", ("hosts", 1, "index"), 3, "host 3 of 3: hosts count from 0 to 2"),
        ("hosts", ("hosts", 1, "file_instructions"), 3, "hosts, entry 1 must be a list"),
        ("exact", ("after_read",), 3, "after_read must be a list"),
    ],
)
def test_a_wrong_value_under_a_right_digest_is_refused(
    name: str, path: tuple[Any, ...], value: object, text: str
) -> None:
    with pytest.raises(DatasetError, match=text):
        parse_plan(sealed(PLANS[name], path, value), source="plan")


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


@pytest.mark.long
def test_damaged_plans_are_the_same_plans_or_one_line() -> None:
    texts = [(plan, text_of(plan, write).encode()) for plan in PLANS.values() for write in WRITERS]

    def check(case: tuple[ResumePlan, bytes]) -> None:
        plan, data = case
        if error_line(lambda: parse_plan(data, source="plan")) is None:
            assert parse_plan(data, source="plan") == plan

    cases = st.sampled_from(texts).flatmap(
        lambda drawn: st.tuples(st.just(drawn[0]), damaged(drawn[1]))
    )
    check_cases(cases, check, 300)


def test_nonsense_is_one_line() -> None:
    whole = json.loads(text_of(PLANS["hosts"], plan_json))
    values = documents((*whole, "filename", "skip", "seeds", "index"))

    def check(drawn: tuple[str, Any]) -> None:
        key, value = drawn
        data = json.dumps({**whole, key: value}).encode()
        assert error_line(lambda: parse_plan(data, source="plan")) or whole[key] == value

    cases = st.tuples(st.sampled_from([key for key in whole if key != "proof"]), values)
    check_cases(cases, check, 80)
