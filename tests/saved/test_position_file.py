"""Position files: written and read back, those of an earlier shardctl too."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.saved.position_file import (
    PositionRecord,
    _digest_of,
    position_of_text,
    position_text,
    read_position,
    write_position,
)
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import error_line

BEFORE = Path(__file__).parent / "written_before"
RECORD = PositionRecord(
    dataset=toy_dataset({"train": (3, 4), "test": (2,)}).identity,
    spec="train",
    settings=ReadSettings(cycle=16, block=16, reshuffle=None),
    consumed=3,
)


@pytest.mark.parametrize("name", sorted(path.name for path in BEFORE.glob("*.position.json")))
def test_a_file_written_before_is_read_and_written_again_to_the_byte(
    name: str, tmp_path: Path
) -> None:
    write_position(tmp_path / "position", read_position(BEFORE / name))
    assert (tmp_path / "position").read_bytes() == (BEFORE / name).read_bytes()


def test_what_a_file_written_before_says_is_known() -> None:
    found = read_position(BEFORE / "splits.position.json")
    assert (found.spec, found.consumed) == ("train[2:]+test[:50%]", 3)
    assert (found.dataset.title, found.dataset.ordered) == ("toy:1.0.0", False)
    sizes = [(size.name, size.num_examples, size.num_shards) for size in found.dataset.splits]
    assert sizes == [("train", 17, 4), ("test", 5, 2)]
    host = Host(index=1, count=2)
    settings = ReadSettings(cycle=3, block=1, host=host, host_by="files", reverse=True)
    assert replace(found.settings, shuffle_files=None) == replace(settings, shuffle_files=None)


def test_a_position_is_read_back_as_it_was(tmp_path: Path) -> None:
    write_position(tmp_path / "position", RECORD)
    found = read_position(tmp_path / "position")
    assert (found.dataset, found.spec, found.consumed) == (RECORD.dataset, "train", 3)
    assert [path.name for path in tmp_path.iterdir()] == ["position"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("dataset", None, "dataset must be a mapping"),
        ("splits", {}, "splits must be a list"),
        ("ordered", None, "ordered must be true or false"),
        ("spec", 3, "spec must be text"),
        ("pipeline", [], "pipeline must be a mapping"),
        ("consumed", "3", "consumed must be a whole number"),
        ("consumed", -1, "negative"),
        ("consumed", True, "whole number"),
    ],
)
def test_wrong_fields_under_a_right_digest_are_one_line(
    key: str, value: object, words: str, tmp_path: Path
) -> None:
    document = {**RECORD.document(), key: value}
    del document["digest"]
    path = tmp_path / "position"
    path.write_text(json.dumps({**document, "digest": _digest_of(document)}))
    line = error_line(lambda: read_position(path))
    assert line is not None
    assert words in line
    assert line.startswith(f"{path}: ")


SHARED = replace(
    RECORD,
    stretches=(
        RunSegment(consumed=(4, 4, 3, 4), batch=2),
        RunSegment(consumed=(0,), host_by="files", alone=True),
    ),
)


def test_what_hosts_had_consumed_before_is_read_back() -> None:
    text = position_text(SHARED)
    document = json.loads(text)
    found = position_of_text(text, source="s")
    assert (found.stretches, found.consumed) == (SHARED.stretches, 3)
    assert position_text(found) == text
    assert document["format_version"] == 2
    assert document["stretches"] == [
        {"consumed": [[4, 2], [3, 1], [4, 1]], "batch": 2, "host_by": "even", "alone": False},
        {"consumed": [[0, 1]], "batch": None, "host_by": "files", "alone": True},
    ]


def test_a_thousand_hosts_in_step_take_no_more_room_than_one() -> None:
    sizes = [
        len(position_text(replace(RECORD, stretches=(RunSegment(consumed=(999,) * count),))))
        for count in (1, 1024)
    ]
    assert sizes[1] - sizes[0] == len("1024") - len("1")


@pytest.mark.parametrize(
    ("stretches", "words"),
    [
        (None, "stretches must be a list"),
        ([], "a position of version 2 has at least one"),
        ([{}], r"stretches[0].consumed must be a list"),
        ([{"consumed": [[1]], "batch": None, "alone": False}], "[count, hosts] is needed"),
        ([{"consumed": [], "host_by": "even", "alone": False}], "hosts are needed"),
        ([{"consumed": [[1, 2]], "host_by": "even", "alone": True}], "one alone is one"),
        ([{"consumed": [[1, 2]], "alone": 1}], "stretches[0].alone must be true or false"),
        ([{"consumed": [[1, 2]], "host_by": "all"}], "stretches[0].host_by 'all': there are even"),
        ([{"consumed": [[1, 2]], "host_by": None}], "stretches[0].host_by nothing: there are"),
        (
            [{"consumed": [[1, 2]], "batch": "x", "host_by": "even", "alone": False}],
            "batch must be a whole number",
        ),
        ([{"consumed": [[1, 10**12]], "batch": 1, "alone": False}], "100000 hosts at most"),
        ([{"consumed": [[-1, 2]], "batch": 1, "alone": False}], "negative"),
    ],
)
def test_stretches_that_are_none_are_one_line(stretches: object, words: str) -> None:
    document = {**SHARED.document(), "stretches": stretches}
    del document["digest"]
    text = json.dumps({**document, "digest": _digest_of(document)}).encode()
    line = error_line(lambda: position_of_text(text, source="s"))
    assert line is not None
    assert words in line


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every mapping or list within a value, with each of its keys."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


@pytest.mark.long
def test_any_field_that_is_gone_or_of_another_kind_is_a_line_or_taken(tmp_path: Path) -> None:
    """Sealed anew, so that what is wrong is the field and not the digest."""
    others: tuple[Any, ...] = (
        None,
        True,
        -1,
        1.5,
        2**64,
        1e300,
        float("inf"),
        "",
        "x\0",
        "\ud800",
        [],
        {},
        [{}],
    )
    num_places = len(list(_places(RECORD.document())))
    num_refused = 0
    for place, other in itertools.product(range(num_places), ("gone", *others)):
        document = RECORD.document()
        holder, key = list(_places(document))[place]
        if other == "gone":
            del holder[key]
        else:
            holder[key] = other
        content = {key: value for key, value in document.items() if key != "digest"}
        sealed = {**content, "digest": _digest_of(content)}
        (tmp_path / "position").write_text(json.dumps(sealed))
        num_refused += error_line(lambda: read_position(tmp_path / "position")) is not None
    assert num_refused > num_places * len(others) / 2
