"""A plan to continue, as people and programs read it: whole texts, with and without a proof."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import BrokenPromise, Proof, prove
from shardctl.verbs.resume.view import proof_line, resume_document, resume_rows, resume_table
from tests.golden import assert_golden
from tests.verbs.resume.resume_cases import TOY, dataset

GOLDEN = Path(__file__).parent / "golden"
PROOF = Proof(compared=1000, lost=1, repeated=2, moved=3, exact=False)
MANY = dataset(train=(2,) * 100)
OPEN = {"buffer": 3, "cycle": 1}
SEEDED = {"buffer": 3, "buffer_seed": 1, "epochs": 3}
AT_MOST: dict[str, Any] = {"mode": "at-most-once"}
AT_LEAST: dict[str, Any] = {"mode": "at-least-once"}

TORCH = {"loader_version": "2.13.0"}
# Files of 3, 5 and 3 examples, two at a time in blocks of 2: 00 11 0 11 22 1 2. Settings, and how
# far the pipeline got; with hosts, those of other hosts.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing was read": ({"cycle": 2, "block": 2}, {"consumed": 0}),
    "inside a block": ({"cycle": 2, "block": 2}, {"consumed": 1}),
    "two files open": ({"cycle": 2, "block": 2}, {"consumed": 4}),
    "inside a batch": ({"cycle": 2, "block": 2, "batch": 4, "epochs": 3}, {"consumed": 6}),
    "the end of an epoch": ({"shuffle_seed": 1, "epochs": 2}, {"consumed": 11}),
    "the end": ({"batch": 4}, {"consumed": 11}),
    "steps": ({"batch": 4, "epochs": 3, "shuffle_seed": 1}, {"steps": 3}),
    "endless": ({"repeat_files": True, "epochs": 2, **OPEN, "buffer_seed": 1}, {"consumed": 9}),
    "host of examples": ({"host": "1/2", "host_by": "examples", "cycle": 1}, {"consumed": 2}),
    "exactly once": (SEEDED, {"consumed": 2}),
    "exact order": (SEEDED, {"consumed": 2, "mode": "exact-order"}),
    "buffer of a host": ({**SEEDED, "host": "0/2", "host_by": "examples"}, {"consumed": 2}),
    "unseeded, nothing held": (OPEN, {"consumed": 0, **AT_MOST}),
    "unseeded, skipped": (OPEN, {"consumed": 2, **AT_MOST}),
    "unseeded, near the end": (OPEN, {"consumed": 10, **AT_MOST}),
    "unseeded, later epochs": ({**OPEN, "epochs": 3}, {"consumed": 10, **AT_MOST}),
    "unseeded, at a risk": (OPEN, {"consumed": 6, **AT_LEAST, "risk": 2.0}),
    "unseeded, all again": (OPEN, {"consumed": 6, **AT_LEAST, "risk": 1e-6}),
    "hosts apart": (
        {"epochs": 3, "cycle": 1, "batch": 2, "drop_remainder": True},
        {"hosts": 2, "to_hosts": 2, "consumed": [5, 6]},
    ),
    "hosts of files": (
        {"host_by": "files", "cycle": 1},
        {"hosts": 2, "to_hosts": 3, "consumed": [4, 2]},
    ),
    "hosts of stages assumed": (
        {"stages": "cache | take(5)"},
        {"hosts": 2, "to_hosts": 1, "consumed": 1},
    ),
    "hosts by turns": (
        {"cycle": 1, "stages": "shard(2, 1) | cache | shuffle(1, seed=1) | repeat(2)"},
        {"hosts": 2, "to_hosts": 2, "consumed": [4, 2]},
    ),
    "hosts": ({"epochs": 2}, {"hosts": 2, "to_hosts": 3, "consumed": [1, 2]}),
    "hosts alike": ({}, {"hosts": 2, "to_hosts": 3, "consumed": 2}),
    "hosts, unseeded": ({"buffer": 3}, {"hosts": 2, "to_hosts": 3, "consumed": [1, 2], **AT_MOST}),
    "hosts, at a risk": (
        {"buffer": 3},
        {"hosts": 2, "to_hosts": 3, "consumed": [1, 2], **AT_LEAST, "risk": 2.0},
    ),
    "hosts that drop": (
        {"batch": 2, "drop_remainder": True},
        {"hosts": 1, "to_hosts": 4, "consumed": 2},
    ),
    "stages": ({"stages": "shuffle(4, seed=1) | take(9)"}, {"consumed": 2}),
    "stages inside a batch": (
        {"stages": "shuffle(4, seed=1) | skip(2) | batch(3)"},
        {"consumed": 4},
    ),
    "stages that cut, inside a batch": ({"stages": "skip(2) | batch(3)"}, {"consumed": 4}),
    "stages without end": ({"stages": "map | repeat | skip(1)"}, {"consumed": 15}),
    "sources": ({"stages": "zip(train, test) | take(3)"}, {"consumed": 4}),
    "stages by instructions": ({"stages": "skip(2) | batch(3)"}, {"consumed": 3}),
    "stages of hosts": (
        {"stages": "shard(2, 0) | shuffle(4, seed=1) | batch(2)"},
        {"hosts": 2, "to_hosts": 1, "consumed": 2},
    ),
    "torch": (
        {"loader": "torch", "loader_version": "2.13.0", "shuffle_seed": 5, "batch": 2, "epochs": 2},
        {"consumed": 3},
    ),
    "torch of a process": (
        {"loader": "torch", "host": "0/2", "shuffle_seed": 5, "pass": 3, "batch": 2, **TORCH},
        {"steps": 1},
    ),
    "iterations of torch": (
        {"loader": "torch", "shuffle": True, "global_seed": 7, "epochs": 3, "batch": 2, **TORCH},
        {"steps": 7},
    ),
    "later pass of torch": ({"loader": "torch", "pass": 2, "batch": 2, **TORCH}, {"steps": 2}),
    "accelerate": (
        {"loader": "accelerate", "loader_version": "1.15.0", "shuffle_seed": 5, "batch": 3}
        | {"epochs": 2},
        {"consumed": 13},
    ),
    "grain of workers": (
        {"loader": "grain", "loader_version": "0.2.18", "epochs": 2, "batch": 2, "workers": 3},
        {"consumed": 4},
    ),
    "a stream": (
        {"loader": "hf", "loader_version": "5.2.0", "buffer": 4, "shuffle_seed": 1, "arrow": False}
        | {"pass": 1},
        {"consumed": 5},
    ),
    "by index": (
        {"loader": "hf", "loader_version": "5.2.0", "shuffle_seed": 5, "pass": 1, "batch": 2},
        {"steps": 3},
    ),
    "grain on hosts": (
        {"loader": "grain", "loader_version": "0.2.18", "shuffle_seed": 5, "epochs": 3},
        {"hosts": 2, "to_hosts": 3, "consumed": 2},
    ),
}


def plan_of(name: str) -> ResumePlan:
    settings, where = CASES[name]
    read: Any = as_settings(settings)
    spec = None if "stages" in settings else "train"
    return (resume_on_hosts if "hosts" in where else resume)(TOY, spec, read, **where)


@pytest.mark.parametrize("name", CASES)
def test_tables_and_plan_files_are_these(name: str) -> None:
    plan = plan_of(name)
    document = resume_document(plan, None)
    text = "".join(
        [
            *(f"warning: {warning}\n" for warning in plan.warnings),
            *resume_table(plan, None, PLAIN),
            *to_csv(resume_rows(plan)),
            *to_json(document),
        ]
    )
    assert_golden(GOLDEN / f"{name.replace(', ', '-').replace(' ', '-')}.txt", text)


def lines(plan: ResumePlan, proof: Proof | None = None, screen: Screen = PLAIN) -> list[str]:
    return "".join(resume_table(plan, proof, screen)).splitlines()


@pytest.mark.parametrize("loader", ["tfds", "grain", "torch", "stateful", "accelerate", "hf"])
def test_a_log_of_what_was_seen_leaves_each_example_once(loader: str) -> None:
    plan = resume_unseen(TOY, "train", {"loader": loader, "batch": 2}, seen=[0, 4, 5, 4])
    assert_golden(GOLDEN / f"log-{loader}.txt", "".join(resume_table(plan, None, PLAIN)))
    pairs = zip(plan.instructions.first, plan.instructions.take, strict=True)
    read = [int(first) + i for first, take in pairs for i in range(take)]
    assert read == [1, 2, 3, 6, 7, 8, 9, 10]
    assert prove(TOY, plan, seen=[0, 4, 5]).holds
    missed = prove(TOY, plan, seen=[0, 4])
    assert (missed.holds, missed.lost) == (False, 1)


def test_tables_are_abridged_and_folded_to_the_screen() -> None:
    terminal = Screen(width=60, abridged=True)
    plan = resume(MANY, "train", ReadSettings(cycle=1, epochs=3), consumed=0)
    broken = [BrokenPromise(name=f"pending[{i}]", promised="1", found="2") for i in range(22)]
    text = "".join(resume_table(plan, replace(PROOF, broken=tuple(broken)), terminal))
    assert_golden(GOLDEN / "many-on-a-terminal.txt", text)
    assert max(map(len, text.splitlines())) <= 60
    assert sum(line.startswith("toy-train-") for line in lines(plan)) == 100
    some = replace(resume(TOY, "train", consumed=3), from_consumed=(5, 3, 5, 4))
    assert lines(some)[1] == "stopped: 4 hosts, each after 5, 3, 4 examples"
    assert lines(some, screen=terminal)[1] == "stopped: 4 hosts, each after 5 .. 4 examples"


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
        (
            Proof(compared=4, lost=3, repeated=1, moved=None, exact=False, allowed=(3, 1)),
            "proof: lost at most 3, repeated at most 1, whatever the seed was; 4 examples read",
        ),
    ],
)
def test_a_proof_is_the_last_line_and_the_last_field(proof: Proof, line: str) -> None:
    plan = resume(TOY, "train", consumed=3)
    assert proof_line(proof) == line
    shown = lines(plan, proof, Screen(color=True))[-1]
    assert shown == (line if proof.holds else f"\x1b[1;91m{line}\x1b[0m")
    broken = replace(proof, broken=(BrokenPromise(name="epoch", promised="1", found="2"),))
    document = json.loads("".join(to_json(resume_document(plan, broken))))
    assert list(document)[-1] == "proof"
    assert document["proof"] == {
        **{name: getattr(proof, name) for name in ("compared", "lost", "repeated", "moved")},
        **({"allowed": {"lost": 3, "repeated": 1}} if proof.allowed else {}),
        "broken": [{"name": "epoch", "promised": "1", "found": "2"}],
    }
    assert yaml.safe_load("".join(to_yaml(resume_document(plan, broken)))) == document
