"""Snapshot files: small, fit for a review, read back as they were, or refused in one line."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.saved import snapshot as module
from shardctl.saved.snapshot import MAX_SNAPSHOT_BYTES, Snapshot, checksum
from shardctl.saved.snapshot_file import (
    parse_comparable,
    read_comparable,
    snapshot_document,
    snapshot_json,
    snapshot_yaml,
)
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import check_cases, counted, few_or_many
from tests.golden import assert_evaluated
from tests.strategies import NOWHERE, Place, damaged, documents, error_line, places_of, with_value
from tests.verbs.diff.diff_cases import Pipeline, dataset_of, pairs

TOY = dataset_of({"train": (3000, 1, 1, 1, 0, 5000), "test": (4, 4)})
MIXTURE = (
    "choose_from_datasets([read(train) | repeat, read(train, data='mnist')], "
    "choices=range(2) | repeat) | take(50)"
)


def taken(**settings: Any) -> Snapshot:
    return snapshot(TOY, "train", ReadSettings(block=3, **settings)).snapshot


def of_stages(stages: str) -> Snapshot:
    return snapshot(TOY, None, {"stages": stages}).snapshot


def text_of(pinned: Snapshot) -> str:
    return "".join(snapshot_yaml(pinned))


TEXT = text_of(taken())


def parsed(data: bytes | str) -> Snapshot:
    found = parse_comparable(data.encode() if isinstance(data, str) else data, source="order.yaml")
    assert isinstance(found, Snapshot)
    return found


def refusal(data: bytes | str) -> str:
    return error_line(lambda: parsed(data)) or ""


def comes_back(pinned: Snapshot) -> None:
    assert parsed(text_of(pinned)) == pinned
    assert parsed("".join(snapshot_json(pinned))) == pinned


# What is read back.


@few_or_many(25, 100)
def test_a_snapshot_is_read_back_as_it_was(num_cases: int) -> None:
    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        found = pair[0].taken()
        if found is not None:
            comes_back(found.snapshot)

    check_cases(pairs(), check, num_cases)
    for stages in ("skip(9) | batch(4) | take(20)", "test | take(3)", MIXTURE):
        assert of_stages(stages).sources
        comes_back(of_stages(stages))


@pytest.mark.parametrize(
    "files",
    [
        (),
        (ShardFiles(pattern="{x}-\0%", num_shards=2),),
        (ShardFiles(pattern="a-\0", num_shards=1), ShardFiles(pattern="b-\0", num_shards=1)),
        (ShardFiles(num_shards=2, names=("no", "1e3")),),
        (ShardFiles(num_shards=1, names=("x, 'y'",)), ShardFiles(pattern="[\0]", num_shards=1)),
    ],
)
def test_file_names_of_any_kind_are_read_back(files: tuple[ShardFiles, ...]) -> None:
    split = Split(name="train", shard_lengths=(7, 7), files=files)
    comes_back(snapshot(Dataset(name="yes", splits=(split,)), "train").snapshot)


def test_what_is_long_is_pinned_as_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of({"train": (1,) * 2000})
    names = dataset.splits[0].filenames[::-1]
    pinned = snapshot(dataset, "train", ReadSettings(file_order=names)).snapshot
    assert len(text_of(pinned)) < 50_000
    comes_back(pinned)
    assert parsed(text_of(pinned)).settings() is None
    monkeypatch.setattr(module, "MAX_LAYOUT_CHARS", -1)
    assert taken().splits[0].hashes is not None
    comes_back(taken())


def test_a_formatter_of_yaml_may_pass() -> None:
    for flow in (None, True, False):
        text = yaml.safe_dump(yaml.safe_load(TEXT), default_flow_style=flow, sort_keys=True)
        assert parsed(text) == taken()
    assert parsed("\ufeff# ours\r\n" + TEXT.replace("\n", "\r\n")) == taken()


# What is written.


@pytest.mark.long
def test_the_longest_parts_together_take_less_than_100_kb() -> None:
    names = tuple(f"{i:05d}-{'x' * 60}" for i in range(500))
    files = (ShardFiles(num_shards=len(names), names=names),)
    lengths = tuple(i * i % 79 for i in range(500))
    splits = tuple(Split(name=f"s{n:03d}", shard_lengths=lengths, files=files) for n in range(60))
    settings = ReadSettings(shuffle_seed=10**4000)
    text = text_of(snapshot(Dataset(name="d", splits=splits), "all", settings).snapshot)
    assert len(text.encode()) < MAX_SNAPSHOT_BYTES
    assert len(yaml.safe_load(text)["layout"]["splits"]) == 60
    with pytest.raises(UsageError, match="100000 at most"):
        text_of(snapshot(dataset_of({"train": (5,)}), "+".join(["train"] * 20_000)).snapshot)


def test_a_review_sees_settings_and_first_ids_but_no_folder() -> None:
    files = (ShardFiles(data_dir="/secret/place", pattern="sub/d-\0", num_shards=2),)
    train = Split(name="train", shard_lengths=(3, 3), files=files)
    dataset = Dataset(name="d", splits=(train,), data_dir="/secret/place")
    one, other = (
        snapshot(dataset, "train", ReadSettings(batch=batch, block=1)).snapshot for batch in (8, 16)
    )
    assert snapshot_document(one)["first_ids"] == [0, 3, 1, 4, 2, 5]
    assert not re.search("secret|sub/", text_of(one))
    lines = zip(text_of(one).splitlines(), text_of(other).splitlines(), strict=True)
    changed = [old.split(":")[0] for old, new in lines if old != new]
    assert changed == ["  batch", "checksum"]
    assert max(map(len, text_of(one).splitlines())) < 200


# What is refused.


@pytest.mark.long
def test_a_torn_file_is_refused_wherever_it_was_torn() -> None:
    data = TEXT.rstrip("\n").encode()
    for cut in [*range(0, len(data), 23), *range(len(data) - 90, len(data))]:
        line = refusal(data[:cut])
        assert line
        after_kind = cut > TEXT.index("kind: snapshot") + len("kind: snapshot")
        assert not after_kind or "cut off" in line, (cut, line)


def edited(before: str, after: str) -> Snapshot:
    assert before in TEXT
    return parsed(TEXT.replace(before, after, 1))


LEVELS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))
MANY_ALIASES = f"kind: snapshot\nformat_version: 1\na0: &a0 [x, x]\n{LEVELS}\n"


def resealed(document: dict[str, Any]) -> str:
    """Return a snapshot with the right checksum over wrong contents."""
    return "".join(yaml.safe_dump({**document, "checksum": checksum(document)}))


def changed(pinned: Snapshot, place: Place | str, value: object) -> Snapshot:
    """Read a snapshot with another value at a place, under the right checksum."""
    return parsed(resealed(with_value(snapshot_document(pinned), place, value)))


SPLITS, SPLITS_AGAIN = (snapshot_document(taken())["layout"]["splits"] for _ in range(2))
DIGEST = re.findall(r"\n    ([0-9a-f]{32})", TEXT)[0]


def hashed(key: str, value: object) -> Snapshot:
    """Read a snapshot of train as hashes, with another value there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_LAYOUT_CHARS", -1)
        pinned = taken()
    return changed(pinned, f"layout splits 0 {key}", value)


def test_what_is_refused_is_on_file(tmp_path: Path) -> None:
    """One value is another layout of as many examples, but a sound one."""
    assert_evaluated(globals(), "refused_snapshots")
    for name, words in ((".", "is a folder"), ("none", "no such file")):
        with pytest.raises(DatasetError, match=words):
            read_comparable(tmp_path / name)


@pytest.mark.long
@pytest.mark.parametrize("pinned", [taken(), of_stages(MIXTURE)])
def test_a_value_of_another_kind_is_refused_anywhere(pinned: Snapshot) -> None:
    for place in counted(list(places_of(snapshot_document(pinned)))):
        # Settings of another version may be of any kind: they are compared as they are.
        if place[0] not in ("pipeline", "checksum"):
            for value in NOWHERE:
                assert error_line(partial(changed, pinned, place, value)), place


@pytest.mark.long
def test_damaged_and_invented_files_are_snapshots_or_one_line() -> None:
    def check_bytes(data: bytes) -> None:
        if not refusal(data):
            assert parsed(data) == taken()

    def check_document(value: Any) -> None:
        document = {**snapshot_document(taken()), **(value if isinstance(value, dict) else {})}
        document |= {"format_version": 1, "kind": "snapshot"}
        try:
            text = resealed({str(key): item for key, item in document.items()})
        except (TypeError, ValueError, yaml.YAMLError):
            return
        refusal(text.encode("utf-8", "replace"))

    check_cases(damaged(TEXT.encode()), check_bytes, 40)
    check_cases(documents(tuple(snapshot_document(taken()))), check_document, 40)
