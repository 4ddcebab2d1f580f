"""Snapshot files: read back as they were, or refused in one line that says why."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import ShardctlError
from shardctl.saved import snapshot as pinned_layout
from shardctl.saved.snapshot import Snapshot, checksum
from shardctl.saved.snapshot_file import (
    read_comparable,
    snapshot_document,
    snapshot_json,
    snapshot_yaml,
)
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import check_cases, few_or_many
from tests.strategies import damaged, documents, error_line
from tests.verbs.diff.diff_cases import Pipeline, dataset_of, pairs


def taken(**settings: Any) -> Snapshot:
    dataset = dataset_of({"train": (3000, 1, 1, 1, 0, 5000), "test": (4, 4)})
    return snapshot(dataset, "train", ReadSettings(block=3, **settings)).snapshot


TEXT = "".join(snapshot_yaml(taken()))


def read(data: bytes | str, tmp_path: Path) -> Snapshot:
    path = tmp_path / "order.yaml"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    found = read_comparable(path)
    assert isinstance(found, Snapshot)
    return found


@few_or_many(25, 100)
def test_a_snapshot_is_read_back_as_it_was(tmp_path: Path, num_cases: int) -> None:
    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        found = pair[0].taken()
        if found is not None:
            pinned = found.snapshot
            assert read("".join(snapshot_yaml(pinned)), tmp_path) == pinned
            assert read("".join(snapshot_json(pinned)), tmp_path) == pinned

    check_cases(pairs(), check, num_cases)


def test_a_hashed_layout_is_read_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)
    pinned = taken()
    assert pinned.splits[0].hashes is not None
    assert read("".join(snapshot_yaml(pinned)), tmp_path) == pinned


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
    pinned = snapshot(Dataset(name="yes", splits=(split,)), "train").snapshot
    assert read("".join(snapshot_yaml(pinned)), tmp_path) == pinned


def test_a_long_list_of_files_is_pinned_as_a_hash(tmp_path: Path) -> None:
    lengths = tuple([1] * 2000)
    dataset = dataset_of({"train": lengths})
    names = dataset.splits[0].filenames[::-1]
    pinned = snapshot(dataset, "train", ReadSettings(file_order=names)).snapshot
    text = "".join(snapshot_yaml(pinned))
    assert len(text) < 50_000
    found = read(text, tmp_path)
    assert found == pinned
    assert found.settings() is None


def test_a_formatter_of_yaml_may_pass(tmp_path: Path) -> None:
    for flow in (None, True, False):
        text = yaml.safe_dump(yaml.safe_load(TEXT), default_flow_style=flow, sort_keys=True)
        assert read(text, tmp_path) == taken()
    assert read("\ufeff# ours\r\n" + TEXT.replace("\n", "\r\n"), tmp_path) == taken()


def refusal(data: bytes | str, tmp_path: Path) -> str | None:
    return error_line(lambda: read(data, tmp_path))


@pytest.mark.long
def test_a_torn_file_is_refused_wherever_it_was_torn(tmp_path: Path) -> None:
    data = TEXT.rstrip("\n").encode()
    cuts = [*range(0, len(data), 7), *range(len(data) - 90, len(data))]
    for cut in cuts:
        line = refusal(data[:cut], tmp_path)
        assert line is not None
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
    ],
)
def test_an_edited_file_is_refused_and_says_how_to_write_it_anew(
    before: str, after: str, tmp_path: Path
) -> None:
    assert before in TEXT
    line = refusal(TEXT.replace(before, after, 1), tmp_path)
    assert line is not None
    assert "edited" in line
    assert "shardctl snapshot" in line


def test_a_digest_that_changed_is_an_edit(tmp_path: Path) -> None:
    digits = re.findall(r"\n    ([0-9a-f]{32})", TEXT)
    assert digits
    changed = digits[0].translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    line = refusal(TEXT.replace(digits[0], changed), tmp_path)
    assert line is not None
    assert "edited" in line


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3", "newer shardctl"),
        ("0", "version 0; this"),
        ("'1'", "version '1'; this"),
        ("true", "true"),
    ],
)
def test_another_format_version_is_named(version: str, words: str, tmp_path: Path) -> None:
    for before in ("format_version: 1", "tree:\n  version: 2"):
        assert before in TEXT
        line = refusal(TEXT.replace(before, f"{before[:-1]}{version}"), tmp_path)
        assert line is not None
        assert words in line
        assert "order.yaml" in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("# nothing\n", "must be a mapping"),
        ("name: d\nsplits: {}\n", "no kind"),
        ("kind: simulate\nformat_version: 1\n", "kind 'simulate' is not compared"),
        ("kind: [1]\n", "no kind"),
        ("\x00\x01", "NUL"),
        ("<<<<<<< HEAD\nkind: snapshot\n=======\n>>>>>>> main\n", "merge conflict"),
        ('{"kind": "snapshot", ', "cut off"),
    ],
)
def test_files_that_hold_something_else_are_refused(text: str, words: str, tmp_path: Path) -> None:
    line = refusal(text, tmp_path)
    assert line is not None
    assert words in line


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "is a folder" in (error_line(lambda: read_comparable(tmp_path)) or "")
    assert "no such file" in (error_line(lambda: read_comparable(tmp_path / "none")) or "")


def test_yaml_bombs_are_refused_at_once(tmp_path: Path) -> None:
    levels = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))
    bomb = f"kind: snapshot\nformat_version: 1\na0: &a0 [x, x]\n{levels}\n"
    line = refusal(bomb, tmp_path)
    assert line is not None
    assert "values" in line


def resealed(document: dict[str, Any]) -> str:
    """Return a snapshot with the right checksum over wrong contents."""
    return "".join(yaml.safe_dump({**document, "checksum": checksum(document)}))


def with_value(document: dict[str, Any], path: tuple[Any, ...], value: object) -> dict[str, Any]:
    """Return a document with another value at a place."""
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


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
        ("shard_digests", [24] * 6, "24 is not 24 hex digits"),
    ],
)
def test_wrong_digests_of_shards_are_refused(
    key: str, value: object, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)
    document = with_value(snapshot_document(taken()), ("layout", "splits", 0, key), value)
    line = refusal(resealed(document), tmp_path)
    assert line is not None
    assert words in line


def test_a_split_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    document = snapshot_document(taken())
    document["layout"]["splits"] *= 2
    assert "split 'train' is there twice" in (refusal(resealed(document), tmp_path) or "")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("num_examples",), 10**18, "leaf_size"),
        (("order",), "0" * 32, "order is not the root of the tree"),
        (("first_ids",), [-1], "first_ids[0] -1 is negative"),
        (("sources",), [{"data": None, "label": "", "title": "d", "ordered": True}], "stages"),
        (("layout", "splits", 0, "shard_lengths"), ["3"], "1 shard_lengths for 6 shards"),
        (("num_examples",), 12_000, "2 leaves; 12000 examples have 3"),
        (("tree", "leaf_size"), 1, "leaf_size"),
        (("tree", "digests"), ["0" * 32] * 2, "root"),
        (("tree", "digests"), ["x"], "hex digits"),
        (("tree",), None, "tree must be a mapping"),
        (("spec",), 3, "spec must be text"),
        (("pipeline",), [], "pipeline must be a mapping"),
        (("layout", "splits"), [], "no splits"),
        (("layout", "splits"), ["train"], "a split must be a mapping, not 'train'"),
        (("layout", "splits", 0, "num_shards"), 10**9, "more than 10000000"),
        (("layout", "splits", 0, "shard_lengths"), ["9x99999999"], "more than the 6 shards"),
        (("layout", "splits", 0, "shard_lengths"), ["x"], "not a shard length"),
        (("layout", "splits", 0, "shard_lengths"), "even", "file"),
        (("layout", "splits", 0, "num_examples"), 5, "hold 8003, not 5"),
        (("layout", "splits", 0, "files"), "../{SHARD_INDEX}", "leaves the dataset's folder"),
        (("layout", "splits", 0, "files"), [{"names": ["a"]}], "not one file name a shard"),
        (("layout", "splits", 0, "name"), "---", "letter"),
        (("rules", "version"), -1, "negative"),
        (("dataset", "name"), "a\nb", "printed"),
    ],
)
def test_wrong_contents_under_a_right_checksum_are_refused(
    path: tuple[Any, ...], value: object, words: str, tmp_path: Path
) -> None:
    line = refusal(resealed(with_value(snapshot_document(taken()), path, value)), tmp_path)
    if words == "file":
        assert line is None  # as many examples, evenly: another layout, but a sound one
    else:
        assert line is not None
        assert words in line


MIXTURE = (
    "choose_from_datasets([read(train) | repeat, read(train, data='mnist')], "
    "choices=range(2) | repeat) | take(50)"
)


@pytest.mark.parametrize("stages", ["skip(9) | batch(4) | take(20)", "test | take(3)", MIXTURE])
def test_a_snapshot_of_stages_is_read_back_as_it_was(stages: str, tmp_path: Path) -> None:
    dataset = dataset_of({"train": (3000, 1, 1, 1, 0, 5000), "test": (4, 4)})
    pinned = snapshot(dataset, None, {"stages": stages}).snapshot
    assert pinned.sources
    assert read("".join(snapshot_yaml(pinned)), tmp_path) == pinned
    assert read("".join(snapshot_json(pinned)), tmp_path) == pinned


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("sources",), [], "not the datasets that the stages read"),
        (("sources",), 3, "sources must be a list"),
        (("sources", 0), 3, "sources[0] must be a mapping"),
        (("sources", 0, "data"), "emnist", "not the datasets that the stages read"),
        (("sources", 0, "data"), 5, "sources[0].data must be text"),
        (("sources", 1, "data"), None, "not the datasets that the stages read"),
        (("sources", 0, "label"), "---", "letter"),
        (("sources", 0, "label"), "emnist", "a split is of none of the sources"),
        (("sources", 0, "title"), None, "sources[0].title must be text"),
        (("sources", 0, "ordered"), "no", "sources[0].ordered must be true or false"),
        (("sources", 0, "more"), 1, "more"),
        (("pipeline", "stages"), None, "sources are not the datasets that the stages read"),
        (("pipeline", "stages"), ["warp"], "stages"),
        (("pipeline", "stages"), 3, "stages"),
        (("pipeline", "stages"), [{"take": -9}], "stages"),
    ],
)
def test_wrong_stages_under_a_right_checksum_are_refused(
    path: tuple[Any, ...], value: object, words: str, tmp_path: Path
) -> None:
    dataset = dataset_of({"train": (3000, 1, 1, 1, 0, 5000), "test": (4, 4)})
    document = snapshot_document(snapshot(dataset, None, {"stages": MIXTURE}).snapshot)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    line = refusal(resealed(document), tmp_path)
    assert line is not None
    assert words in line


@pytest.mark.long
def test_damaged_and_invented_files_are_snapshots_or_one_line(tmp_path: Path) -> None:
    keys = tuple(snapshot_document(taken()))

    def check_bytes(data: bytes) -> None:
        path = tmp_path / "order.yaml"
        path.write_bytes(data)
        if error_line(lambda: read_comparable(path)) is None:
            assert read(data, tmp_path) == taken()

    def check_document(value: Any) -> None:
        document = {"format_version": 1, "kind": "snapshot"}
        if isinstance(value, dict):
            document = {**snapshot_document(taken()), **value, **document}
        try:
            text = resealed({str(key): item for key, item in document.items()})
        except (TypeError, ValueError, yaml.YAMLError):
            return
        error_line(lambda: read(text.encode("utf-8", "replace"), tmp_path))

    check_cases(damaged(TEXT.encode()), check_bytes, 50)
    check_cases(documents(keys), check_document, 50)


def test_settings_of_a_newer_shardctl_are_named() -> None:
    newer = replace(taken(), pipeline={**taken().pipeline, "warp": 9})
    with pytest.raises(ShardctlError, match=r"pipeline: warp: no such setting"):
        newer.settings()
