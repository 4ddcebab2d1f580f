"""Position files: written and read back, those of an earlier shardctl too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.dataset.identity import DatasetHead, DatasetIdentity
from shardctl.metadata.reference import merge_datasets
from shardctl.saved import position_file as module
from shardctl.saved.head import head, identity_head, read_head, read_identity
from shardctl.saved.position_file import PositionRecord, position_of_text, position_text
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from tests.cases import counted
from tests.golden import assert_evaluated
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import NOWHERE, error_line, places_of, with_value

BEFORE = Path(__file__).parent / "written_before"
TOY = toy_dataset({"train": (3, 4), "test": (2,)})
RECORD = PositionRecord(
    dataset=TOY.identity,
    spec="train",
    settings=ReadSettings(cycle=16, block=16, reshuffle=None),
    consumed=3,
)
SHARED = replace(
    RECORD,
    stretches=(
        RunSegment(consumed=(4, 4, 3, 4), batch=2),
        RunSegment(consumed=(0,), host_by="files", alone=True),
    ),
)
FOLDER: dict[str, Any] = {"path": None, "title": None, "fingerprint": "f"}
FOLDER |= {"num_bytes": None, "splits": []}
SPLITS = identity_head("resume", TOY.identity, format_version=1)["splits"]


def sealed(document: dict[str, Any]) -> bytes:
    """Return a file of other contents under the right digest."""
    content = {key: value for key, value in document.items() if key != "digest"}
    return json.dumps({**content, "digest": module._digest_of(content)}).encode()


def refusal(data: bytes) -> str | None:
    return error_line(lambda: position_of_text(data, source="s"))


@pytest.mark.parametrize("name", sorted(path.name for path in BEFORE.glob("*.position.json")))
def test_a_file_written_before_is_read_and_written_again(name: str, tmp_path: Path) -> None:
    found = module.read_position(BEFORE / name)
    module.write_position(tmp_path / "position", found)
    assert (tmp_path / "position").read_bytes() == (BEFORE / name).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["position"]
    if name == "splits.position.json":
        assert (found.spec, found.consumed) == ("train[2:]+test[:50%]", 3)
        assert (found.dataset.title, found.dataset.ordered) == ("toy:1.0.0", False)
        sizes = [(size.name, size.num_examples, size.num_shards) for size in found.dataset.splits]
        assert sizes == [("train", 17, 4), ("test", 5, 2)]
        host = Host(index=1, count=2)
        settings = ReadSettings(cycle=3, block=1, host=host, host_by="files", reverse=True)
        assert replace(found.settings, shuffle_files=None) == settings


def test_what_hosts_had_consumed_before_is_read_back() -> None:
    text = position_text(SHARED)
    document, found = json.loads(text), position_of_text(text, source="s")
    assert (found.stretches, found.consumed) == (SHARED.stretches, 3)
    assert position_text(found) == text
    assert document["format_version"] == 2
    assert document["stretches"] == [
        {"consumed": [[4, 2], [3, 1], [4, 1]], "batch": 2, "host_by": "even", "alone": False},
        {"consumed": [[0, 1]], "batch": None, "host_by": "files", "alone": True},
    ]
    # A thousand hosts in step take no more room than one.
    one, many = (replace(RECORD, stretches=(RunSegment(consumed=(9,) * n),)) for n in (1, 1024))
    assert len(position_text(many)) - len(position_text(one)) == len("1024") - len("1")


def parsed(data: bytes) -> PositionRecord:
    return position_of_text(data, source="s")


def changed(fields: dict[str, Any]) -> PositionRecord:
    return parsed(sealed({**SHARED.document(), **fields}))


def edited(fields: dict[str, Any]) -> PositionRecord:
    return parsed(json.dumps({**SHARED.document(), **fields}).encode())


def with_head(key: str, value: object) -> DatasetHead:
    document = head("plan", TOY.identity)
    document["dataset"][key] = value
    return read_head(document)


def with_identity(key: str, value: object) -> DatasetIdentity:
    return read_identity({**identity_head("resume", TOY.identity, format_version=1), key: value})


def test_what_is_refused_is_on_file() -> None:
    assert_evaluated(globals(), "refused_positions")


@pytest.mark.long
def test_a_value_of_another_kind_is_refused_anywhere() -> None:
    document = json.loads(position_text(SHARED))
    for place in counted(list(places_of(document))):
        for value in NOWHERE:
            assert place == ("digest",) or refusal(sealed(with_value(document, place, value)))
        hostile: list[Any] = [None, True, -1, 2**64, 1e300, float("inf"), "", "x\0", "\ud800", []]
        for value in hostile:
            refusal(sealed(with_value(document, place, value)))  # one line, or taken


# Every document begins alike, and what it says of its dataset is read back as it was.

NAMED = replace(TOY, config="v", version="1.0.0", ordered=True)


@pytest.mark.parametrize("dataset", [TOY, NAMED, replace(NAMED, data_dir="/d/\udcff")])
def test_what_is_written_of_a_dataset_is_read_back(dataset: Dataset) -> None:
    written = identity_head("resume", dataset.identity, format_version=1)
    sizes = [tuple(split.values()) for split in written["splits"]]
    template = "toy-{}.tfrecord-{{SHARD_INDEX}}-of-{{NUM_SHARDS}}".format
    assert sizes == [("train", 7, 2, template("train")), ("test", 2, 1, template("test"))]
    document = json.loads(json.dumps(written))
    assert read_identity(document) == dataset.identity
    found = read_head(document)
    assert type(found) is DatasetHead
    assert vars(found) == {k: v for k, v in vars(dataset.identity).items() if k in vars(found)}


def test_the_folders_of_a_dataset_are_read_back_in_their_order() -> None:
    several = merge_datasets([replace(NAMED, data_dir="/d/a"), replace(NAMED, data_dir="/d/b")])
    written = identity_head("resume", several.identity, format_version=1)
    folders = written["dataset"]["folders"]
    assert [folder["path"] for folder in folders] == ["a", "b"]
    assert list(folders[0]) == ["path", "title", "fingerprint", "num_bytes", "splits"]
    assert read_identity(json.loads(json.dumps(written))) == several.identity
    pinned = head("snapshot", several.identity.without_folder())["dataset"]
    assert (pinned["data_dir"], pinned["folders"]) == (None, folders)
