"""One of two pipelines: what a snapshot alone still tells, and why it does not tell the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.base.tfds_rules import RuleSet
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.report.compare import ComparedSide, Side, compared
from shardctl.verbs.report.shown import NotShown
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import dataset_of, through_a_file

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def of_snapshot(kept: Snapshot, evaluated: str | None = None) -> ComparedSide:
    pinned = PinnedOrder(snapshot=through_a_file(kept), label="kept")
    side = Side(label="kept", pinned=pinned)
    return compared(side, hosts=2, devices=1, evaluated=evaluated, watch=None)


def test_a_snapshot_tells_all_but_the_evaluation_without_its_dataset() -> None:
    read = ReadSettings(shuffle_seed=1, buffer=20, buffer_seed=2)
    side = of_snapshot(snapshot(TOY, "train", read).snapshot)
    assert not isinstance(side.quality, NotShown)
    assert side.quality.score == quality(TOY, "train", read).score
    assert not isinstance(side.shard_map, NotShown)
    assert side.shard_map.counts.sum() == 120
    assert not isinstance(side.hosts, NotShown)
    assert side.evaluation == NotShown(
        reason="a snapshot pins what its order reads, train; nothing else"
    )


def test_an_evaluation_of_what_is_pinned_is_counted() -> None:
    side = of_snapshot(snapshot(TOY, "train", {}).snapshot, "train")
    assert not isinstance(side.evaluation, NotShown)
    assert side.evaluation.total == 120


def test_a_layout_that_is_pinned_as_hashes_says_so() -> None:
    lengths = tuple(n**3 % 997 + 1 for n in range(20_000))  # too many for a snapshot
    side = of_snapshot(snapshot(dataset_of({"train": lengths}), "train", {}).snapshot)
    for part in (side.quality, side.shard_map, side.hosts):
        assert isinstance(part, NotShown)
        assert "as hashes" in part.reason
    assert not isinstance(side.order, NotShown)
    assert side.settings["cycle"] == 16


def test_an_order_that_todays_rules_make_another_is_not_measured() -> None:
    kept = snapshot(TOY, "train", {}).snapshot
    other = snapshot(TOY, "train", {"cycle": 2}).snapshot
    older = RuleSet(version=0, tensorflow="2.0", tensorflow_datasets="4.0")
    side = of_snapshot(replace(kept, tree=other.tree, rules=older))
    assert isinstance(side.quality, NotShown)
    assert "another order today" in side.quality.reason
    assert "TensorFlow 2.0" in side.quality.reason


@pytest.mark.long
@pytest.mark.parametrize(
    "stages",
    [
        "sample_from_datasets([read(train, data='{0}'), read(train, data='{1}')], seed=3)",
        "read(train, data='{0}') | shuffle(20, seed=3)",
    ],
)
def test_a_mixture_is_measured_where_its_datasets_are_not_there(
    stages: str, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("one.yaml", "two.yaml")]
    for number, file in enumerate(files):
        lengths = [20 + number, 30]
        file.write_text(f"name: d{number}\nsplits: {{train: {{shard_lengths: {lengths}}}}}\n")
    read = ReadSettings(stages=parse_stages(stages.format(*files)))
    kept = snapshot(str(files[0]), None, read).snapshot
    alone = quality(str(files[0]), None, read)
    for file in files:
        file.unlink()
    side = of_snapshot(kept)
    assert not isinstance(side.quality, NotShown)
    assert side.quality.score == alone.score
    assert side.quality.alternatives == alone.alternatives
    assert isinstance(side.hosts, NotShown)
