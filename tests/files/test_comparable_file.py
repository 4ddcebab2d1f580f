"""Files that can be compared: each kind is read once, by its own reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl.core.dataset.identity import DatasetIdentity
from shardctl.core.resume.resume_plan import PlanListing
from shardctl.errors import DatasetError
from shardctl.files import comparable_file
from shardctl.files import json_text as json_lists
from shardctl.files import yaml_text as yaml_lists
from shardctl.files.comparable_file import parse_comparable, read_comparable
from shardctl.files.documents import to_json, to_yaml
from shardctl.files.plan.writer import plan_json, plan_yaml
from shardctl.planning.resume.resume import resume
from tests.core.instructions.tfds_splits import toy_dataset
from tests.strategies import error_line

TOY = toy_dataset({"train": (3, 4), "test": (2,)})


@pytest.mark.parametrize("write", [plan_json, plan_yaml])
def test_a_resume_file_is_parsed_once(
    write: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan"
    path.write_text("".join(write(resume(TOY, "train", consumed=2))))  # type: ignore[operator]
    parsed = []
    for name in ("parse_json", "parse_yaml"):
        parse = getattr(comparable_file, name)

        def counted(data: bytes, *, source: str, parse: object = parse, **rest: object) -> object:
            parsed.append(source)
            return parse(data, source=source, **rest)  # type: ignore[operator]

        monkeypatch.setattr(comparable_file, name, counted)
        monkeypatch.setattr(f"shardctl.files.plan.reader.{name}", counted)
    found = read_comparable(path)
    assert isinstance(found, PlanListing)
    assert isinstance(found.dataset, DatasetIdentity)
    assert found.dataset == TOY.identity
    assert len(parsed) == 1


def test_a_plan_that_names_no_dataset_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("format_version: 1\nkind: plan\ndataset: {name: toy}\nplans: []\n")
    line = error_line(lambda: read_comparable(path))
    assert line == f"{path}: file_format must be text, not nothing"


@pytest.mark.parametrize("write", [to_json, to_yaml])
@pytest.mark.parametrize("changed", [None, "", "n" * 256])
def test_instructions_of_a_plan_read_as_columns_are_the_same(
    write: Callable[[dict[str, Any]], Iterator[str]],
    changed: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [
        {"filename": f"d-{k}", "split": "ab"[k % 2], "skip": k, "take": 2, "first_id": 3 * k}
        for k in range(30)
    ]
    if changed is not None:
        records[7]["filename"] = changed
    head = {"name": "d", "file_format": "tfrecord", "fingerprint": "f"}
    plans = [{"spec": "a", "file_instructions": records}]
    document = {"format_version": 1, "kind": "plan", "dataset": head, "plans": plans}
    data = "".join(write(document)).encode()
    found = []
    for num_bytes in (0, 1 << 30):
        monkeypatch.setattr(json_lists, "_LONG", num_bytes)
        monkeypatch.setattr(yaml_lists, "_LONG", num_bytes)
        try:
            listing = parse_comparable(data, source="f")
            assert isinstance(listing, PlanListing)
            reads = listing.plans[0].reads
            splits = [reads.split_names[index] for index in reads.split.tolist()]
            rows = zip(reads.filenames(), splits, reads.skip, reads.take, strict=True)
            found.append([*map(str, rows)])
        except DatasetError as error:
            found.append([str(error)])
    assert found[0] == found[1]
    assert len(found[0]) == (1 if changed is not None else 30)
