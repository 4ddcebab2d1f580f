"""An inspection as a table, a document and rows."""

from __future__ import annotations

from typing import Any

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.inspect.answer import InspectedStage, Inspection, OpenStage, SourceLine
from shardctl.verbs.inspect.view import (
    inspect_document,
    inspect_rows,
    inspect_table,
)

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(3, 4)),))
READ = InspectedStage(call="read(train)", operation="PrefetchDataset", effect="reads", level=1)
FILTER = InspectedStage(
    call="filter",
    operation="FilterDataset",
    effect="drops",
    reason="by what is in them",
    line=SourceLine(file="train.py", line=7, text="return ds.filter(keep)"),
)


def _inspection(**more: Any) -> Inspection:
    given: dict[str, Any] = {
        "stages": (READ,),
        "settings": ReadSettings(),
        "dataset": TOY,
        "spec": "train",
    }
    return Inspection(**(given | more))


OPEN = _inspection(stages=(READ, FILTER), open=(OpenStage(stage=FILTER, reason="by data"),))


def test_the_table_tells_stages_effects_and_lines() -> None:
    text = "".join(inspect_table((OPEN,), "train.py:make", PLAIN))
    assert "train.py:make: train of toy\n" in text
    assert "leaves the order open: by what is in them" in text
    assert "filter leaves the order open at train.py:7: return ds.filter(keep)" in text
    fixed = "".join(inspect_table((_inspection(name="a"), _inspection()), "f", PLAIN))
    assert "f [a]: train of toy" in fixed
    assert "The order is fixed" in fixed


def test_the_document() -> None:
    document = inspect_document((OPEN,), "train.py:make")
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert (document["kind"], document["predictable"]) == ("inspect", False)
    assert document["dataset"]["name"] == "toy"
    (pipeline,) = document["pipelines"]
    assert pipeline["open"] == [
        {
            "stage": "filter",
            "reason": "by data",
            "file": "train.py",
            "line": 7,
            "code": "return ds.filter(keep)",
        }
    ]
    assert [stage["call"] for stage in pipeline["stages"]] == ["read(train)", "filter"]
    assert pipeline["pipeline"]["cycle"] == 16


def test_rows_are_as_wide_as_their_header() -> None:
    rows = list(inspect_rows((OPEN, _inspection(name="b"))).rows())
    assert [tuple(row[:4]) for row in rows] == [
        ("", 1, 1, "read(train)"),
        ("", 2, 0, "filter"),
        ("b", 1, 1, "read(train)"),
    ]
