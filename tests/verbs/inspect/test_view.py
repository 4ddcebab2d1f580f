"""An inspection as a table, a document, rows, and the shardctl.yaml of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN
from shardctl.errors import UsageError
from shardctl.files.documents import to_csv
from shardctl.settings.read_settings import ReadSettings, as_settings, settings_of_document
from shardctl.verbs.inspect.answer import InspectedStage, Inspection, OpenStage, SourceLine
from shardctl.verbs.inspect.view import (
    inspect_document,
    inspect_rows,
    inspect_table,
    layout_name,
    project_yaml,
    references,
)
from tests.golden import assert_golden

TOY = Dataset(
    name="toy",
    data_dir="/data/toy/1.0.0",
    splits=(Split(name="train", shard_lengths=(3, 4)), Split(name="test", shard_lengths=(2,))),
)
READ = InspectedStage(call="read(train)", operation="PrefetchDataset", effect="reads", level=1)
FILTER = InspectedStage(
    call="filter",
    operation="FilterDataset",
    effect="nondeterministic: by what is in them",
    reason="by what is in them",
    line=SourceLine(file="train.py", line=7, text="return ds.filter(keep)"),
)
FIXED = Inspection(stages=(READ,), settings=ReadSettings(), dataset=TOY, spec="train")
OPEN = replace(
    FIXED, stages=(READ, FILTER), open=(OpenStage(stage=FILTER, reason="by data"),), name="eval"
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("fixed", (FIXED,)),
        ("open", (replace(OPEN, name=""),)),
        ("two", (FIXED, OPEN)),
        ("refused", (replace(FIXED, refused="because", dataset=None, spec=None),)),
    ],
)
def test_inspections_are_written_in_every_format(name: str, found: tuple[Inspection, ...]) -> None:
    function = "train.py:make"
    parts = (
        "".join(inspect_table(found, function, PLAIN)),
        json.dumps(inspect_document(found, function), indent=1),
        "".join(to_csv(inspect_rows(found))),
    )
    assert_golden(Path(__file__).parent / "golden" / f"{name}.txt", "\n".join(parts) + "\n")


def _read(inspection: Inspection) -> Any:
    return yaml.safe_load("".join(project_yaml((inspection,), "train.py:make")))


def test_settings_are_those_of_a_shardctl_yaml() -> None:
    settings = ReadSettings(shuffle_seed=3, buffer=5, buffer_seed=0, epochs=2, loop="keras-fit")
    document = _read(replace(FIXED, settings=settings))
    assert document["dataset"] == "/data/toy/1.0.0"
    assert settings_of_document(document["read"], "read") == settings
    staged = as_settings({"stages": "cache | shuffle(5, seed=1)"})
    shuffle = {"shuffle": {"buffer": 5, "seed": 1}}
    assert _read(replace(FIXED, settings=staged, spec="test"))["read"] == {
        "stages": [{"read": "test"}, "cache", shuffle]
    }
    # Where files repeat TFDS caches nothing beside the stages.
    repeated = _read(replace(FIXED, settings=ReadSettings(repeat_files=True)))
    assert repeated["lint"] == {"autocache": False}
    assert "lint" not in _read(FIXED)
    text = "".join(project_yaml((OPEN,), "train.py:make"))
    assert "# filter (train.py:7) makes the order nondeterministic: by data\n" in text


def test_record_files_are_told_by_a_layout_file() -> None:
    plain = Dataset(name="part", splits=TOY.splits[:1], origin="record files")
    assert references(plain) == [layout_name(plain)] == ["part.layout.yaml"]


def test_what_no_shardctl_yaml_says_is_refused() -> None:
    with pytest.raises(UsageError, match="reads no dataset"):
        _read(replace(FIXED, dataset=None, spec=None))
    both = (replace(FIXED, name="a"), replace(FIXED, name="b"))
    with pytest.raises(UsageError, match="--only NAME: a, b"):
        "".join(project_yaml(both, "f"))
