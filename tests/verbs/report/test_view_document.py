"""The document of a report: the head, what it is about, and each part as its command writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import shardctl
from shardctl.draw.setting_origins import NOWHERE
from shardctl.files.documents import to_json, to_yaml
from shardctl.metadata.layouts import dataset_from_layout
from shardctl.verbs.eval.view import eval_document
from shardctl.verbs.hosts.view import hosts_document
from shardctl.verbs.lint.view import lint_document
from shardctl.verbs.quality.view import loaders_document, quality_document
from shardctl.verbs.report.document import origins_of, report_document

TOY = dataset_from_layout(
    {"splits": {"train": {"shard_lengths": [30, 31, 0, 29]}, "test": {"shard_lengths": [20, 21]}}},
    stem="toy",
    folder=Path("/data"),
)
SETTINGS = {"shuffle_seed": 5, "buffer": 16, "buffer_seed": 2, "batch": 8}
KEYS = [
    *("format_version", "kind", "dataset", "spec", "pipeline", "num_examples", "num_hosts"),
    *("num_devices", "predictable", "open", "assumed", "settings", "again", "notes", "warnings"),
    *("layout", "shard_map", "strips", "opened", "quality", "hosts", "eval", "lint", "loaders"),
]


def documents(made: shardctl.Report) -> dict[str, Any]:
    """Return the document as JSON holds it, and YAML too."""
    read: dict[str, Any] = json.loads("".join(to_json(report_document(made))))
    assert yaml.safe_load("".join(to_yaml(report_document(made)))) == read
    return read


def plain(document: Any) -> Any:
    return json.loads("".join(to_json(document)))


@pytest.mark.long
def test_every_part_is_the_document_of_its_command() -> None:
    made = shardctl.report(TOY, None, SETTINGS, hosts=2, loaders=True)
    found = documents(made)
    assert list(found) == KEYS
    order = {**SETTINGS, "host": "0/2"}
    quality = shardctl.quality(TOY, None, order)
    assert found["dataset"] == plain(quality_document(quality))["dataset"]
    assert found["quality"] == plain(quality_document(quality))
    assert found["hosts"] == plain(hosts_document(shardctl.hosts(TOY, None, SETTINGS, hosts=2)))
    evaluation = shardctl.evaluate(TOY, "test", SETTINGS, batch=8, hosts=2)
    assert found["eval"] == plain(eval_document(evaluation))
    lint = shardctl.lint(TOY, None, SETTINGS, usage=shardctl.Usage(hosts=2))
    assert found["lint"] == plain(lint_document(lint, NOWHERE))
    loaders = shardctl.compare_loaders(TOY, None, order)
    assert found["loaders"] == plain(loaders_document(loaders))
    assert (found["kind"], found["spec"], found["num_hosts"]) == ("report", "train", 2)


def test_the_map_counts_every_example_of_the_epoch() -> None:
    found = documents(shardctl.report(TOY, None, SETTINGS))["shard_map"]
    # By hand: the empty shard has no row, and a row has as many examples as its shard.
    assert [row["shards"] for row in found["rows"]] == ["0", "1", "3"]
    assert [sum(row["counts"]) for row in found["rows"]] == [30, 31, 29]
    assert [row["expected"] for row in found["rows"]] == pytest.approx([30 / 90, 31 / 90, 29 / 90])
    assert [column["stop"] - column["start"] for column in found["columns"]] == [
        column["measured"] for column in found["columns"]
    ]
    assert found["sampled"] is None


def test_the_strips_are_the_order_that_is_read() -> None:
    settings = {"cycle": 2, "block": 3}
    found = documents(shardctl.report(TOY, None, settings))["strips"]
    told = [
        number
        for visit in found["visits"]
        for number in range(visit["first_id"], visit["last_id"] + 1)
    ]
    order = shardctl.plan_order(TOY, None, settings).order
    assert np.array_equal(told, order.read(0, found["stop"]))


def test_shards_are_not_listed() -> None:
    (split,) = documents(shardctl.report(TOY))["layout"]["splits"]
    assert split == {
        "name": "train",
        "num_examples": 90,
        "num_shards": 4,
        "num_bytes": None,
        "balance": {"min": 0, "max": 31, "mean": 22.5, "imbalance": 31 / 22.5},
    }


@pytest.mark.long
def test_what_is_not_shown_says_why_in_options() -> None:
    found = documents(shardctl.report(TOY, None, {"loader": "torch", "shuffle": True}))
    assert found["predictable"] is False
    assert found["open"].startswith("--shuffle without a seed has another order in each run; give ")
    seeded = {"loader": "torch", "shuffle": True, "global_seed": 3}
    found = documents(shardctl.report(TOY, None, seeded))
    assert found["predictable"] is True
    assert found["hosts"].keys() == {"not_shown"}
    assert found["hosts"]["not_shown"].startswith("--global-seed means nothing to Distributed")
    refused = documents(shardctl.report(TOY, None, {"host": "0/9", "host_by": "files"}))
    assert refused["predictable"] is None
    assert "--host-by even" in refused["quality"]["not_shown"]


def test_findings_point_at_the_lines_that_decide() -> None:
    made = shardctl.report(TOY, None, SETTINGS)
    assert origins_of(made) == NOWHERE
