"""Files that can be compared: each kind is read once, by its own reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.dataset.identity import DatasetIdentity
from shardctl.files.parse import parse_document
from shardctl.saved import snapshot_file as comparable_file
from shardctl.saved.plan_file import plan_json, plan_yaml
from shardctl.saved.resume_plan import PlanListing
from shardctl.saved.snapshot_file import read_comparable
from shardctl.verbs.resume.answer import resume
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import error_line

TOY = toy_dataset({"train": (3, 4), "test": (2,)})


@pytest.mark.parametrize("write", [plan_json, plan_yaml])
def test_a_resume_file_is_parsed_once(
    write: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan"
    path.write_text("".join(write(resume(TOY, "train", consumed=2))))  # type: ignore[operator]
    parsed = []
    parse = parse_document

    def counted(data: bytes, *, source: str) -> object:
        parsed.append(source)
        return parse(data, source=source)

    monkeypatch.setattr(comparable_file, "parse_document", counted)
    monkeypatch.setattr("shardctl.saved.plan_file.parse_document", counted)
    found = read_comparable(path)
    assert isinstance(found, PlanListing)
    assert isinstance(found.dataset, DatasetIdentity)
    assert found.dataset == TOY.identity
    assert len(parsed) == 1


def test_a_plan_that_names_no_dataset_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("format_version: 1\nkind: plan\ndataset: {name: toy}\nplans: []\n")
    line = error_line(lambda: read_comparable(path))
    assert line == f"{path}: dataset has no config"
