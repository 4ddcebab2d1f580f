"""A plan to continue, as people and programs read it: whole texts, with and without a proof."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_csv, to_json, to_yaml
from shardctl.loaders.loader import LOADERS
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.proof import BrokenPromise, Proof, prove
from shardctl.verbs.resume.view import proof_line, resume_document, resume_rows, resume_table
from tests.golden import assert_golden
from tests.verbs.resume.resume_cases import CASES, TOY, dataset, plan_of

GOLDEN = Path(__file__).parent / "golden"
PROOF = Proof(compared=1000, lost=1, repeated=2, moved=3, exact=False)
MANY = dataset(train=(2,) * 100)


@pytest.mark.parametrize("name", CASES)
def test_tables_and_plan_files_are_these(name: str) -> None:
    plan = plan_of(name)
    assert prove(TOY, plan).holds
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
    version = {} if loader == "tfds" else {"loader_version": LOADERS[loader].proven[-1]}
    settings = {"loader": loader, "batch": 2, **version}
    plan = resume_unseen(TOY, "train", settings, seen=[0, 4, 5, 4])
    _, *text = resume_table(plan, None, PLAIN)  # the first line names the version
    assert_golden(GOLDEN / f"log-{loader}.txt", "".join(text))
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
    assert lines(some)[2] == "stopped: 4 hosts, each after 5, 3, 4 examples"


@pytest.mark.parametrize(
    ("proof", "line"),
    [
        (PROOF, "proof: lost 1, repeated 2, moved 3 of 1,000 examples"),
        (
            Proof(compared=1, lost=0, repeated=0, moved=None, exact=True),
            "proof: lost 0, repeated 0 of 1 example",
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
