"""A plan as a document: its fields in order, and the digest that knows an edit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from shardctl.saved.plan_file import digest_of, resume_document
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.verbs.resume.resume_cases import TOY, dataset

SETTINGS = ReadSettings(buffer=3, buffer_seed=1, epochs=2, shuffle_seed=4, batch=2)


def planned(**changed: Any) -> ResumePlan:
    return replace(resume(TOY, "train", SETTINGS, consumed=6, mode="exact-order"), **changed)


ALWAYS = [
    *("format_version", "kind", "dataset", "ordered", "splits", "spec", "pipeline", "consumed"),
    *("epoch", "remaining", "remaining_total", "file_instructions", "num_pending_instructions"),
    *("read_config", "after_read", "mode", "exact", "num_further_epochs", "further_epochs"),
    "digest",
]


@pytest.mark.parametrize(
    ("plan", "more"),
    [
        (resume(TOY, "train", consumed=5), {"reader"}),
        (planned(), {"pending", "shuffle", "reader"}),
        (
            resume_on_hosts(TOY, "train", hosts=2, to_hosts=3, consumed=[1, 2]),
            {"hosts", "from_consumed"},
        ),
        (resume_unseen(TOY, "train", seen=[4]), {"from_seen"}),
    ],
    ids=["exact", "through a buffer", "for other hosts", "of a log"],
)
def test_fields_that_say_nothing_of_a_plan_are_left_out(plan: ResumePlan, more: set[str]) -> None:
    document = resume_document(plan)
    assert [key for key in document if key not in more] == ALWAYS
    assert document.keys() - set(ALWAYS) == more


def test_what_is_left_of_a_pipeline_without_end_is_no_number() -> None:
    plan = resume(TOY, "train", {"stages": "map | repeat | batch(3)"}, steps=40)
    document = resume_document(plan)
    assert (document["consumed"], document["remaining"], document["remaining_total"]) == (
        120,
        None,
        None,
    )


def test_what_a_buffer_and_an_epoch_are_made_of_is_in_it_as_numbers() -> None:
    document = resume_document(planned())
    # A buffer of 3 has read 3 + 5 inputs when 6 are out of it.
    assert document["shuffle"] == {
        "buffer_size": 3,
        "seeds": document["shuffle"]["seeds"],
        "num_elements": 11,
        "num_read": 8,
        "emitted": 6,
    }
    assert len(document["pending"]) == 2
    (epoch,) = document["further_epochs"]
    assert (epoch["epoch"], epoch["consumed"], epoch["num_examples"]) == (1, 11, 11)
    assert [len(epoch[name]) for name in ("file_seeds", "buffer_seeds")] == [2, 2]


def test_the_digest_of_a_plan_without_instructions_is_that_of_its_fields() -> None:
    document = {"consumed": 3, "spec": "é"}
    text = b'shardctl resume 1\n{"consumed":3,"spec":"\\u00e9"}\n'
    assert digest_of(document) == f"sha256:{hashlib.sha256(text).hexdigest()}"
    # What is made from the plan, the digest itself and where the dataset lies take no part.
    assert digest_of({**document, "proof": {}, "digest": "x"}) == digest_of(document)
    assert digest_of({**document, "refs": ["../big.yaml"]}) == digest_of(document)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumed", 7),
        ("epoch", 1),
        ("mode", "exact"),
        ("spec", "train+test"),
        ("num_pending_instructions", 1),
        ("pending", (3, 4)),
        ("settings", ReadSettings(epochs=3)),
        ("instructions", resume(TOY, "train", ReadSettings(cycle=1), consumed=6).instructions),
    ],
)
def test_the_digest_changes_with_every_field(name: str, value: object) -> None:
    assert (
        resume_document(planned(**{name: value}))["digest"] != resume_document(planned())["digest"]
    )


def test_the_digest_changes_with_names_and_places_of_files() -> None:
    digests = {
        resume_document(replace(resume(toy, "train", consumed=0), dataset=planned().dataset))[
            "digest"
        ]
        for toy in (
            dataset(train=(3, 5, 3), test=(4,)),
            dataset(train=(3, 5, 3, 0), test=(4,)),
            dataset(train=(5, 3, 3), test=(4,)),
            dataset(train=(3, 5, 0, 3), test=(4,)),
        )
    }
    # A fourth file that is empty and last is no instruction.
    assert len(digests) == 3


def test_the_document_is_json_but_for_its_lists_of_instructions() -> None:
    document = resume_document(planned())
    del document["file_instructions"]
    assert json.loads(json.dumps(document)) == document
