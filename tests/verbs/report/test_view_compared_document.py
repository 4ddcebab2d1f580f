"""The document of two pipelines: the documents of the commands, and where they part."""

from __future__ import annotations

import json
from typing import Any

from shardctl.files.documents import to_json, to_yaml
from shardctl.files.parse import parse_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.quality.view import quality_document
from shardctl.verbs.report.compare import Side, compare_sides
from shardctl.verbs.report.compared import comparison_document
from tests.verbs.diff.diff_cases import dataset_of

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def document(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    sides = [
        Side(label=label, dataset=TOY, spec="train", settings=ReadSettings(**settings))
        for label, settings in zip("ab", (a, b), strict=True)
    ]
    return comparison_document(compare_sides(*sides, hosts=2))


def test_both_are_as_the_commands_write_them() -> None:
    found = document({"block": 2}, {"block": 3, "stages": None})
    assert (found["format_version"], found["kind"]) == (1, "report")
    both = found["compared"]
    assert both["equal"] is False
    assert both["diff"]["first_difference"]["position"] == 2
    assert both["b"]["quality"] == quality_document(quality(TOY, "train", {"block": 3}))
    assert both["a"]["is_snapshot"] is False
    assert both["a"]["num_examples"] == 120
    differing = [one for one in both["settings"] if one["differs"]]
    assert differing == [{"name": "block", "a": 2, "b": 3, "differs": True}]
    assert both["blocks"] == [{"start": 0, "stop": 120, "state": "moved"}]


def test_what_cannot_be_had_says_why() -> None:
    both = document({}, {"shuffle_files": True})["compared"]
    assert both["equal"] is None
    assert "--shuffle-seed" in both["diff"]["not_shown"]
    assert both["b"]["num_examples"] is None


def test_json_and_yaml_say_the_same() -> None:
    found = document({"block": 2}, {"batch": 7, "shuffle_seed": 3})
    read = json.loads("".join(to_json(found)))
    assert read == parse_yaml("".join(to_yaml(found)).encode(), source="document")
    assert read["compared"]["a"]["pipeline"]["block"] == 2
