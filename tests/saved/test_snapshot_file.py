"""Snapshot files: small, fit for a review, read back as they were, or refused in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.saved import snapshot as module
from shardctl.saved.snapshot import MAX_SNAPSHOT_BYTES, Snapshot, checksum
from shardctl.saved.snapshot_file import (
    read_comparable,
    snapshot_document,
    snapshot_json,
    snapshot_yaml,
)
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import check_cases, counted, few_or_many
from tests.saved.any_place import NOWHERE, Place, places_of, with_value
from tests.strategies import damaged, documents, error_line
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


def read(data: bytes | str, tmp_path: Path) -> Snapshot:
    path = tmp_path / "order.yaml"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    found = read_comparable(path)
    assert isinstance(found, Snapshot)
    return found


def refusal(data: bytes | str, tmp_path: Path) -> str:
    return error_line(lambda: read(data, tmp_path)) or ""


def comes_back(pinned: Snapshot, tmp_path: Path) -> None:
    assert read(text_of(pinned), tmp_path) == pinned
    assert read("".join(snapshot_json(pinned)), tmp_path) == pinned


# What is read back.


@few_or_many(25, 100)
def test_a_snapshot_is_read_back_as_it_was(tmp_path: Path, num_cases: int) -> None:
    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        found = pair[0].taken()
        if found is not None:
            comes_back(found.snapshot, tmp_path)

    check_cases(pairs(), check, num_cases)
    for stages in ("skip(9) | batch(4) | take(20)", "test | take(3)", MIXTURE):
        assert of_stages(stages).sources
        comes_back(of_stages(stages), tmp_path)


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
def test_file_names_of_any_kind_are_read_back(
    files: tuple[ShardFiles, ...], tmp_path: Path
) -> None:
    split = Split(name="train", shard_lengths=(7, 7), files=files)
    comes_back(snapshot(Dataset(name="yes", splits=(split,)), "train").snapshot, tmp_path)


def test_what_is_long_is_pinned_as_a_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of({"train": (1,) * 2000})
    names = dataset.splits[0].filenames[::-1]
    pinned = snapshot(dataset, "train", ReadSettings(file_order=names)).snapshot
    assert len(text_of(pinned)) < 50_000
    comes_back(pinned, tmp_path)
    assert read(text_of(pinned), tmp_path).settings() is None
    monkeypatch.setattr(module, "MAX_LAYOUT_CHARS", -1)
    assert taken().splits[0].hashes is not None
    comes_back(taken(), tmp_path)


def test_a_formatter_of_yaml_may_pass(tmp_path: Path) -> None:
    for flow in (None, True, False):
        text = yaml.safe_dump(yaml.safe_load(TEXT), default_flow_style=flow, sort_keys=True)
        assert read(text, tmp_path) == taken()
    assert read("\ufeff# ours\r\n" + TEXT.replace("\n", "\r\n"), tmp_path) == taken()


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
def test_a_torn_file_is_refused_wherever_it_was_torn(tmp_path: Path) -> None:
    data = TEXT.rstrip("\n").encode()
    for cut in [*range(0, len(data), 23), *range(len(data) - 90, len(data))]:
        line = refusal(data[:cut], tmp_path)
        assert line
        after_kind = cut > TEXT.index("kind: snapshot") + len("kind: snapshot")
        assert not after_kind or "cut off" in line, (cut, line)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("block: 3", "block: 4"),
        ("spec: train", "spec: test"),
        ("num_shards: 6", "num_shards: 7"),
        ("1x3", "1x2"),
        ("first_ids: [0, ", "first_ids: [1, "),
        ("ordered: false", "ordered: true"),
        ("loop: python\n", "loop: python\n  more: 1\n"),
        ("loop: python\n", "loop: python\n  1: 1\n"),
        ("  version: 1\n", "  version: 2\n"),
        (re.findall(r"\n    ([0-9a-f]{32})", TEXT)[0], "0" * 32),
    ],
)
def test_an_edited_file_is_refused_and_says_how_to_write_it_anew(
    before: str, after: str, tmp_path: Path
) -> None:
    assert before in TEXT
    line = refusal(TEXT.replace(before, after, 1), tmp_path)
    assert "edited" in line
    assert "shardctl snapshot" in line


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3", "newer shardctl"),
        ("0", "version 0; this"),
        ("'1'", "version '1'; this"),
        ("yes", "tru"),
    ],
)
def test_another_format_version_is_named(version: str, words: str, tmp_path: Path) -> None:
    for before in ("format_version: 1", "tree:\n  version: 2"):
        assert before in TEXT
        line = refusal(TEXT.replace(before, f"{before[:-1]}{version}"), tmp_path)
        assert words in line
        assert "order.yaml" in line


LEVELS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("# nothing\n", "must be a mapping"),
        ("name: d\nsplits: {}\n", "no kind"),
        ("kind: simulate\nformat_version: 1\n", "kind 'simulate' is not compared"),
        ("kind: [1]\n", "no kind"),
        ("kind: plan\nformat_version: 2\n", "format_version 2 of the plan; this shardctl reads 1"),
        ("\x00\x01", "NUL"),
        ("<<<<<<< HEAD\nkind: snapshot\n=======\n>>>>>>> main\n", "merge conflict"),
        ('{"kind": "snapshot", ', "cut off"),
        (f"kind: snapshot\nformat_version: 1\na0: &a0 [x, x]\n{LEVELS}\n", "aliases are not read"),
    ],
)
def test_files_that_hold_something_else_are_refused(text: str, words: str, tmp_path: Path) -> None:
    assert words in refusal(text, tmp_path)
    assert "is a folder" in (error_line(lambda: read_comparable(tmp_path)) or "")
    assert "no such file" in (error_line(lambda: read_comparable(tmp_path / "none")) or "")


def resealed(document: dict[str, Any]) -> str:
    """Return a snapshot with the right checksum over wrong contents."""
    return "".join(yaml.safe_dump({**document, "checksum": checksum(document)}))


def changed(pinned: Snapshot, place: Place | str, value: object) -> str:
    """Return a snapshot with another value at a place, under the right checksum."""
    return resealed(with_value(snapshot_document(pinned), place, value))


SPLIT = "layout splits 0"
SPLITS, SPLITS_AGAIN = (snapshot_document(taken())["layout"]["splits"] for _ in range(2))


# Of train's 6 shards each has a digest; test is not read.
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("shards_per_digest", 0, "6 digests for 6 shards, 0 each"),
        ("shards_per_digest", 2, "6 digests for 6 shards, 2 each"),
        ("num_shards", 5, "6 digests for 5 shards, 1 each"),
        ("num_shards", 7, "6 digests for 7 shards, 1 each"),
        ("shard_digests", ["0" * 23] * 6, "is not 24 hex digits"),
        ("shard_digests", ["0" * 23 + "g"] * 6, "is not 24 hex digits"),
    ],
)
def test_wrong_digests_of_shards_are_refused(
    key: str, value: object, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LAYOUT_CHARS", -1)
    assert words in refusal(changed(taken(), f"{SPLIT} {key}", value), tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("num_examples", 10**18, "leaf_size"),
        ("order", "0" * 32, "order is not the root of the tree"),
        ("first_ids", [-1], "first_ids[0] -1 is negative"),
        ("sources", [{"data": None, "label": "", "title": "d", "ordered": True}], "stages"),
        ("num_examples", 12_000, "2 leaves; 12000 examples have 3"),
        ("tree leaf_size", 1, "leaf_size"),
        ("tree digests", ["0" * 32] * 2, "root"),
        ("tree digests", ["x"], "hex digits"),
        ("layout splits", [], "no splits"),
        ("layout splits", SPLITS + SPLITS_AGAIN, "is there twice"),
        (f"{SPLIT} num_shards", 10**9, "more than 10000000"),
        (f"{SPLIT} shard_lengths", ["3"], "1 shard_lengths for 6 shards"),
        (f"{SPLIT} shard_lengths", ["9x99999999"], "more than the 6 shards"),
        (f"{SPLIT} shard_lengths", ["x"], "not a shard length"),
        (f"{SPLIT} shard_lengths", "even", ""),  # another layout of as many, but a sound one
        (f"{SPLIT} num_examples", 5, "hold 8003, not 5"),
        (f"{SPLIT} files", "../{SHARD_INDEX}", "leaves the dataset's folder"),
        (f"{SPLIT} files", [{"names": ["a"]}], "not one file name a shard"),
        (f"{SPLIT} name", "---", "letter"),
        ("rules version", -1, "negative"),
        ("dataset name", "a\nb", "printed"),
    ],
)
def test_wrong_contents_under_a_right_checksum_are_refused(
    path: str, value: object, words: str, tmp_path: Path
) -> None:
    line = refusal(changed(taken(), path, value), tmp_path)
    assert words in line if words else not line


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("sources", [], "not the datasets that the stages read"),
        ("sources 0 data", "emnist", "not the datasets that the stages read"),
        ("sources 1 data", None, "not the datasets that the stages read"),
        ("sources 0 label", "---", "letter"),
        ("sources 0 label", "emnist", "a split is of none of the sources"),
        ("sources 0 more", 1, "more"),
        ("pipeline stages", None, "sources are not the datasets that the stages read"),
        ("pipeline stages", ["warp"], "stages"),
        ("pipeline stages", [{"take": -9}], "stages"),
    ],
)
def test_wrong_stages_under_a_right_checksum_are_refused(
    path: str, value: object, words: str, tmp_path: Path
) -> None:
    assert words in refusal(changed(of_stages(MIXTURE), path, value), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("pinned", [taken(), of_stages(MIXTURE)])
def test_a_value_of_another_kind_is_refused_anywhere(pinned: Snapshot, tmp_path: Path) -> None:
    for place in counted(list(places_of(snapshot_document(pinned)))):
        # Settings of another version may be of any kind: they are compared as they are.
        if place[0] not in ("pipeline", "checksum"):
            for value in NOWHERE:
                assert refusal(changed(pinned, place, value), tmp_path), place


@pytest.mark.long
def test_damaged_and_invented_files_are_snapshots_or_one_line(tmp_path: Path) -> None:
    def check_bytes(data: bytes) -> None:
        if not refusal(data, tmp_path):
            assert read(data, tmp_path) == taken()

    def check_document(value: Any) -> None:
        document = {**snapshot_document(taken()), **(value if isinstance(value, dict) else {})}
        document |= {"format_version": 1, "kind": "snapshot"}
        try:
            text = resealed({str(key): item for key, item in document.items()})
        except (TypeError, ValueError, yaml.YAMLError):
            return
        refusal(text.encode("utf-8", "replace"), tmp_path)

    check_cases(damaged(TEXT.encode()), check_bytes, 40)
    check_cases(documents(tuple(snapshot_document(taken()))), check_document, 40)
