"""Snapshots as values: what they can give back, and the checksum over what they say."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.saved import snapshot as pinned_layout
from shardctl.saved.snapshot import Snapshot, checksum, shortened
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import snapshot

SPLITS = (Split(name="train", shard_lengths=(3, 4)), Split(name="test", shard_lengths=(2,)))
TOY = Dataset(name="toy", config="small", version="1.2.3", splits=SPLITS)


def pinned(spec: str = "train", settings: ReadSettings | None = None) -> Snapshot:
    return snapshot(TOY, spec, ReadSettings() if settings is None else settings).snapshot


@pytest.mark.parametrize(
    ("config", "version", "title"),
    [
        (None, None, "toy"),
        ("small", None, "toy/small"),
        (None, "1.2.3", "toy:1.2.3"),
        ("small", "1.2.3", "toy/small:1.2.3"),
    ],
)
def test_the_title_is_written_as_tfds_writes_names(
    config: str | None, version: str | None, title: str
) -> None:
    snapshot = pinned()
    head = replace(snapshot.head, config=config, version=version)
    assert replace(snapshot, head=head).title == title


def test_the_dataset_given_back_has_the_splits_that_are_read() -> None:
    found = pinned("train").dataset
    assert found is not None
    assert found.title == "toy/small:1.2.3"
    assert [(split.name, split.shard_lengths) for split in found.splits] == [("train", (3, 4))]
    assert pinned("test+train").num_examples == 9


def test_no_dataset_is_given_back_where_a_layout_is_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)
    assert pinned().dataset is None


def test_the_settings_given_back_fix_the_order_that_was_pinned() -> None:
    settings = ReadSettings(shuffle_seed=5, cycle=2, block=3, epochs=2)
    found = pinned(settings=settings).settings()
    assert found is not None
    assert (found.shuffle_seed, found.cycle, found.block, found.epochs) == (5, 2, 3, 2)


def test_settings_of_another_version_are_refused_by_name() -> None:
    newer = pinned()
    newer = replace(newer, pipeline={**newer.pipeline, "spin": 1})
    with pytest.raises(UsageError, match=r"the snapshot's pipeline: spin: no such setting"):
        newer.settings()


def test_a_list_of_files_is_a_hash_from_15000_characters_on() -> None:
    # Four characters a name are for what surrounds it in YAML.
    fits = {"file_order": ["x" * 96] * 150, "block": 16}
    assert shortened(fits) == fits
    longer = {"file_order": ["x" * 96] * 151, "block": 16}
    digest = hashlib.sha256(b"\0".join([b"x" * 96] * 151)).hexdigest()
    assert shortened(longer) == {"file_order": f"151 files, sha256:{digest}", "block": 16}
    assert replace(pinned(), pipeline=shortened(longer)).settings() is None


@pytest.mark.parametrize("names", [None, []])
def test_settings_without_a_list_of_files_stay_as_they_are(names: list[str] | None) -> None:
    assert shortened({"file_order": names}) == {"file_order": names}


def test_the_checksum_is_over_the_values_whatever_their_order() -> None:
    text = b'{"a":[1,"\\u00e9"],"b":null}'
    expected = f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert checksum({"b": None, "a": [1, "\u00e9"]}) == expected
    assert checksum({"a": [1, "\u00e9"], "b": None, "checksum": "any"}) == expected
    assert checksum({"a": [1, "e"], "b": None}) != expected
