"""How a loader goes on, for people and programs."""

from __future__ import annotations

import json
import re

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.tables import Screen
from shardctl.files.documents import to_json
from shardctl.verbs.resume.answer import resume_loader
from shardctl.verbs.resume.view import resume_document, resume_rows, resume_table

FILES = (ShardFiles(pattern="toy-train-\0", num_shards=4),)
TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 4, 0, 6), files=FILES),))
PLAN = resume_loader(TOY, "train", {"loader": "torch", "batch": 4, "epochs": 2}, consumed=6)


def test_people_read_where_it_stopped_what_is_left_and_what_to_call() -> None:
    text = "".join(resume_table(PLAN, None, Screen()))
    assert "stopped: after 6 examples, in epoch 0, 1 batch and 2 examples\n" in text
    assert "left: 7 examples of epoch 0, 20 in all\n" in text
    assert re.search(r"toy-train-\S+ +0 +6 +6\n", text)
    assert "go on with: skip(batches=1), then skip_in_batch(" in text


def test_runs_of_a_shuffle_are_counted_and_not_shown() -> None:
    settings = {"loader": "torch", "batch": 4, "shuffle_seed": 1}
    plan = resume_loader(TOY, "train", settings, consumed=0)
    text = "".join(resume_table(plan, None, Screen()))
    assert f"they are {len(plan.instructions)} runs of neighbours; --format json" in text
    assert "toy-train-" not in text


def test_programs_read_the_same() -> None:
    document = json.loads("".join(to_json(resume_document(PLAN, None))))
    assert list(document)[:2] == ["format_version", "kind"]
    assert document["kind"] == "resume"
    assert document["pipeline"]["loader"] == "torch"
    assert (document["consumed"], document["epoch"]) == (6, 0)
    assert (document["remaining"], document["remaining_total"]) == (7, 20)
    assert [(one["skip"], one["take"]) for one in document["file_instructions"]] == [(3, 1), (0, 6)]
    assert document["after_read"][-1] == {"call": "skip_in_batch", "examples": 2}
    assert document["exact"] is True


def test_rows_are_those_of_any_plan() -> None:
    rows = list(resume_rows(PLAN, None).rows())
    assert [row[3:] for row in rows] == [(3, 1, 4), (0, 6, 6)]


def test_what_is_not_listed_is_none() -> None:
    settings = {"loader": "torch", "shuffle_seed": 1}
    plan = resume_loader("imagenet2012", "train[:200_000]", settings, consumed=0)
    assert json.loads("".join(to_json(resume_document(plan, None))))["file_instructions"] is None
    assert list(resume_rows(plan, None).rows()) == []
