"""A plan to continue, as people read it: where it stopped, what is left, how to read that."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import BrokenPromise, Proof
from shardctl.verbs.resume.view import (
    proof_line,
    resume_document,
    resume_rows,
    resume_table,
)
from tests.verbs.resume.resume_cases import TOY, dataset

TERMINAL = Screen(width=100, abridged=True)
PROOF = Proof(compared=1000, lost=1, repeated=2, moved=3, exact=False)


def lines(plan: ResumePlan, proof: Proof | None = None, screen: Screen = PLAIN) -> list[str]:
    return "".join(resume_table(plan, proof, screen)).splitlines()


# Files of 3, 5 and 3 examples, two at a time in blocks of 2: 00 11 0 11 22 1 2.
@pytest.mark.parametrize(
    ("consumed", "settings", "stopped", "left"),
    [
        pytest.param(
            0,
            {},
            "after 0 examples, in epoch 0; 0 files open, 0 of 3 opened",
            "11 examples of epoch 0 in 3 file instructions",
            id="nothing was read",
        ),
        pytest.param(
            1,
            {},
            "after 1 example, in epoch 0; 1 file open, 1 of 3 opened, 1 of a block of 2 read",
            "10 examples of epoch 0 in 4 file instructions",
            id="inside a block",
        ),
        pytest.param(
            4,
            {},
            "after 4 examples, in epoch 0; 2 files open, 2 of 3 opened",
            "7 examples of epoch 0 in 3 file instructions",
            id="two files open",
        ),
        pytest.param(
            6,
            {"batch": 4, "epochs": 3},
            "after 6 examples, in epoch 0, 1 batch and 2 examples; 1 file open, 2 of 3 opened, "
            "1 of a block of 2 read",
            "5 examples of epoch 0 in 3 file instructions, then 2 epochs",
            id="inside a batch",
        ),
        pytest.param(
            11,
            {"epochs": 2},
            "after 11 examples, in epoch 1; 0 files open, 0 of 3 opened",
            "11 examples of epoch 1 in 3 file instructions",
            id="the end of an epoch is the start of the next",
        ),
        pytest.param(
            11,
            {"batch": 4},
            "after 11 examples, in epoch 0, 3 batches",
            "nothing, the order is at its end",
            id="the end",
        ),
    ],
)
def test_where_it_stopped_and_what_is_left_take_a_line_each(
    consumed: int, settings: dict[str, Any], stopped: str, left: str
) -> None:
    plan = resume(TOY, "train", ReadSettings(cycle=2, block=2, **settings), consumed=consumed)
    assert lines(plan)[1:3] == [f"stopped: {stopped}", f"left: {left}"]


def test_nothing_that_is_left_needs_no_instructions() -> None:
    assert len(lines(resume(TOY, "train", consumed=11))) == 3


def test_what_new_hosts_drop_is_not_promised() -> None:
    settings = ReadSettings(batch=2, drop_remainder=True)
    said = lines(resume_on_hosts(TOY, "train", settings, hosts=1, to_hosts=4, consumed=2))
    (promise,) = (line for line in said if line.startswith("exactly once"))
    assert ", but for what each new host drops of its last batch." in promise


@pytest.mark.parametrize("mode", ["exactly-once", "exact-order"])
def test_what_a_buffer_held_is_counted(mode: Any) -> None:
    # A buffer of 3 has read 3 + 1 examples when 2 are out of it.
    settings = ReadSettings(buffer=3, buffer_seed=1)
    said = lines(resume(TOY, "train", settings, consumed=2, mode=mode))
    promise = next(line for line in said if line.startswith("exact"))
    assert promise.startswith("exactly once: " if mode == "exactly-once" else "exact order: ")
    assert "2 examples" in promise


@pytest.mark.parametrize(
    ("mode", "risk", "consumed", "promise"),
    [
        ("at-most-once", None, 0, "the buffer held nothing yet, so that nothing is repeated"),
        ("at-most-once", None, 2, "skipped: lost 2, repeated 0"),
        ("at-most-once", None, 10, "skipped: lost 1, repeated 0"),
        ("at-least-once", 2, 6, "The last 3, 1 buffer of them, are read again: 1 to 3 are"),
        ("at-least-once", 1e-6, 6, "All of them are read again: lost 0, repeated 6"),
    ],
)
def test_without_a_seed_it_is_said_what_is_lost_and_repeated(
    mode: Any, risk: float | None, consumed: int, promise: str
) -> None:
    settings = ReadSettings(buffer=3, cycle=1)
    said = lines(resume(TOY, "train", settings, consumed=consumed, mode=mode, risk=risk))
    line = next(line for line in said if line.startswith(f"{mode.replace('-', ' ')}: "))
    assert promise in line


def test_other_hosts_are_rows_with_their_first_and_last_file() -> None:
    plan = resume_on_hosts(TOY, "train", hosts=2, to_hosts=3, consumed=[1, 2])
    said = lines(plan)
    assert said[1] == "stopped: 2 hosts, each after 1 .. 2 examples"
    assert said[3].split() == ["host", "examples", "instructions", "first", "file", "last", "file"]
    # 8 of 11 are left: host 0 read the first of ids 0 to 5, host 1 the first two of 6 to 10.
    assert [line.split()[:2] for line in said[4:7]] == [["0", "3"], ["1", "3"], ["2", "2"]]
    alike = resume_on_hosts(TOY, "train", hosts=2, to_hosts=3, consumed=[2, 2])
    assert lines(alike)[1] == "stopped: 2 hosts, each after 2 examples"


def test_a_log_of_what_was_seen_has_no_epoch() -> None:
    said = lines(resume_unseen(TOY, "train", seen=[4, 5]))
    assert said[1] == "seen: 2 examples"
    assert said[2].startswith("left: 9 examples in ")


def test_of_many_instructions_the_first_and_the_last_are_shown() -> None:
    many = dataset(train=(2,) * 100)
    plan = resume(many, "train", ReadSettings(cycle=1), consumed=0)
    said = lines(plan, screen=TERMINAL)
    rows = said[4:25]
    assert [row.split()[0] for row in rows[:10]] == [f"toy-train-{i:05}" for i in range(10)]
    assert rows[10].strip() == "… 80 more rows; --all shows them"
    assert [row.split()[0] for row in rows[11:]] == [f"toy-train-{i:05}" for i in range(90, 100)]
    assert [row.split()[0] for row in lines(plan)[4:104]] == [
        f"toy-train-{i:05}" for i in range(100)
    ]
    one_more = resume(dataset(train=(2,) * 21), "train", ReadSettings(cycle=1), consumed=0)
    few = lines(one_more, screen=TERMINAL)
    assert [row.split()[0] for row in few[4:25]] == [f"toy-train-{i:05}" for i in range(21)]


def test_prose_is_folded_to_the_screen() -> None:
    plan = resume(TOY, "train", ReadSettings(buffer=3, buffer_seed=1, epochs=3), consumed=2)
    text = "".join(resume_table(plan, PROOF, Screen(width=60)))
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize(
    ("proof", "line"),
    [
        (PROOF, "proof: lost 1, repeated 2, moved 3 of 1,000 examples"),
        (
            Proof(compared=1, lost=0, repeated=0, moved=None, exact=True),
            "proof: lost 0, repeated 0 of 1 example",
        ),
        (
            Proof(compared=4, lost=0, repeated=0, moved=3, exact=False, of_inputs=True),
            "proof: lost 0, repeated 0 of what the buffer is given, which has no end; of the next "
            "4 examples 3 are others, or elsewhere",
        ),
    ],
)
def test_a_proof_is_the_last_line(proof: Proof, line: str) -> None:
    assert proof_line(proof) == line
    assert lines(resume(TOY, "train", consumed=3), proof)[-1] == line


def test_broken_promises_stand_before_the_proof() -> None:
    broken = [BrokenPromise(name=f"pending[{i}]", promised="1", found="2") for i in range(22)]
    proof = replace(PROOF, broken=tuple(broken))
    plan = resume(TOY, "train", consumed=3)
    *shown, more, last = lines(plan, proof, TERMINAL)[-22:]
    assert shown[0] == ("broken promise: pending[0]: the plan says 1, the pipeline comes to 2")
    assert more == "… 2 more broken promises; --all shows them"
    assert sum(line.startswith("broken promise: ") for line in lines(plan, proof)) == 22
    assert last == proof_line(PROOF)
    document = json.loads(
        "".join(to_json(resume_document(resume(TOY, "train", consumed=3), proof)))
    )
    assert document["proof"]["broken"][21] == {
        "name": "pending[21]",
        "promised": "1",
        "found": "2",
    }


def test_a_proof_is_the_last_field_of_a_plan_file() -> None:
    plan = resume(TOY, "train", consumed=3)
    document = json.loads("".join(to_json(resume_document(plan, PROOF))))
    assert list(document)[-1] == "proof"
    assert document["proof"] == {"compared": 1000, "lost": 1, "repeated": 2, "moved": 3}
    assert yaml.safe_load("".join(to_yaml(resume_document(plan, PROOF)))) == document
    assert "proof" not in json.loads("".join(to_json(resume_document(plan, None))))


def test_csv_has_a_row_for_each_instruction_of_each_host() -> None:
    plan = resume_on_hosts(TOY, "train", hosts=2, to_hosts=3, consumed=[1, 2])
    text = "".join(to_csv(resume_rows(plan, None)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["host"] for row in rows] == sorted(row["host"] for row in rows)
    assert {row["host"] for row in rows} == {"0/3", "1/3", "2/3"}
    assert sum(int(row["take"]) for row in rows) == 8
    alone = resume(TOY, "train", ReadSettings(cycle=1), consumed=2)
    text = "".join(to_csv(resume_rows(alone, None)))
    assert text.splitlines()[1] == ",toy-train-00000,train,2,1,3"


@pytest.mark.parametrize(
    ("mode", "risk", "said"),
    [
        (
            "at-most-once",
            None,
            "at most once: the buffers of the 2 hosts had read 7 examples.",
        ),
        (
            "at-most-once",
            None,
            "skipped: lost 4, repeated 0, whatever",
        ),
        ("at-least-once", 1e-6, "All of them are read again: lost 0, repeated 3"),
        ("at-least-once", 2.0, "The last 6, 1 buffer a host at most, are read again: 2 to "),
    ],
)
def test_buffers_of_several_hosts_without_seeds(mode: Any, risk: float | None, said: str) -> None:
    plan = resume_on_hosts(
        TOY,
        "train",
        ReadSettings(buffer=3),
        hosts=2,
        to_hosts=3,
        consumed=[1, 2],
        mode=mode,
        risk=risk,
    )
    assert any(said in line for line in lines(plan))


def test_a_proof_that_fails_is_marked_where_colour_is_shown() -> None:
    plan = resume(TOY, "train", consumed=3)
    color = Screen(color=True)
    assert lines(plan, PROOF, color)[-1] == f"\x1b[1;91m{proof_line(PROOF)}\x1b[0m"
    sound = Proof(compared=1000, lost=0, repeated=0, moved=0, exact=True)
    assert lines(plan, sound, color)[-1] == proof_line(sound)


def test_counts_of_hosts_are_all_there_but_where_tables_are_abridged() -> None:
    plan = replace(resume(TOY, "train", consumed=3), from_consumed=(5, 3, 5, 4))
    stopped = "stopped: 4 hosts, each after"
    assert lines(plan)[1] == f"{stopped} 5, 3, 4 examples"
    assert lines(plan, screen=TERMINAL)[1] == f"{stopped} 5 .. 4 examples"


@pytest.mark.parametrize(
    ("stages", "consumed", "said"),
    [
        (
            "shuffle(4, seed=1) | take(9)",
            2,
            [
                "stopped: after 2 examples, in epoch 0",
                "left: 7 examples of the pipeline",
                "exact: shardctl.tfds rebuilds the stages",
                "in Python: shardctl.tfds.resume(builder, 'plan.yaml'), with the file that",
                "or, with the script's own dataset: shardctl.tfds.resume_like(ds, consumed=2)",
            ],
        ),
        (
            "map | repeat | skip(1)",
            15,
            ["stopped: after 15 examples, in epoch 1", "left: the pipeline has no end"],
        ),
        (
            "zip(train, test) | take(3)",
            4,
            [
                "stopped: after 4 examples",
                "left: 2 examples",
                "train          2",
                "test           2",
            ],
        ),
        (
            "skip(2) | batch(3)",
            3,
            ["stopped: after 3 examples", "left: 6 examples of epoch 0", "then .batch(3)"],
        ),
    ],
)
def test_stages_say_who_continues_them(stages: str, consumed: int, said: list[str]) -> None:
    plan = resume(TOY, None, {"stages": stages}, consumed=consumed)
    found = lines(plan)
    assert not any("ReadConfig" in line for line in found) or plan.instructions
    for text in said:
        assert any(text in line for line in found), (text, found)


def test_instructions_that_are_none_have_no_rows() -> None:
    plan = resume(TOY, None, {"stages": "shuffle(4, seed=1) | take(9)"}, consumed=2)
    assert list(resume_rows(plan, None).rows()) == []
