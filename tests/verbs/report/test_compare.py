"""Two pipelines side by side: where they differ, what each scores, what a snapshot alone tells."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.tfds_rules import ORDER_RULES, RuleSet
from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError
from shardctl.order.plan_order import PlannedOrder
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.report.answer import NotShown
from shardctl.verbs.report.compare import ComparedSide, Side, compare_sides, compared, proven
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import FUZZ, check_cases
from tests.verbs.diff.diff_cases import (
    Pipeline,
    dataset_of,
    differing_positions,
    examples,
    pairs,
    through_a_file,
)

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def pinned_side(label: str, taken: Snapshot) -> Side:
    return Side(label=label, pinned=PinnedOrder(snapshot=through_a_file(taken), label=label))


def check_pair(pair: tuple[Pipeline, Pipeline], *, as_pinned: bool) -> None:
    """Compare a page's figures with a look at every position, and with the verbs alone."""
    taken = [pipeline.taken() for pipeline in pair]
    a, b = (
        Side(label=label, dataset=one.dataset, spec=one.spec, settings=one.settings)
        for label, one in zip("ab", pair, strict=True)
    )
    one, other = taken
    if one is None or other is None:
        with contextlib.suppress(ShardctlError):  # an answer, or one error
            compare_sides(a, b)
        return
    found = compare_sides(pinned_side("a", one.snapshot) if as_pinned else a, b)
    positions = differing_positions(examples(pair[0], one), examples(pair[1], other))
    assert not isinstance(found.diff, NotShown)
    assert found.equal == (not positions)
    assert found.to_html().endswith("</html>\n")
    if positions:
        assert found.diff.first is not None
        assert found.diff.first.position == positions[0]
    for side, pipeline in zip(found.sides, pair, strict=True):
        try:
            alone = quality(pipeline.dataset, pipeline.spec, pipeline.settings)
        except ShardctlError:
            assert isinstance(side.quality, NotShown)
            continue
        assert not isinstance(side.quality, NotShown)
        assert side.quality.score == alone.score
        assert side.quality.by_position == alone.by_position
        assert side.quality.alternatives == alone.alternatives


@pytest.mark.long
@pytest.mark.parametrize("as_pinned", [False, True])
def test_orders_differ_and_score_as_single_positions_say(as_pinned: bool) -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=as_pinned), 10)


@pytest.mark.fuzz
def test_settings_and_snapshots_differ_as_positions_say_fuzzed() -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=True), FUZZ)


def toy_side(label: str, dataset: Dataset = TOY, **settings: Any) -> Side:
    return Side(label=label, dataset=dataset, spec="train", settings=ReadSettings(**settings))


def test_equal_pipelines_say_so() -> None:
    kept = snapshot(TOY, "train", {"shuffle_seed": 3}).snapshot
    found = compare_sides(pinned_side("kept", kept), toy_side("now", shuffle_seed=3))
    assert found.equal
    assert found.dataset_changes == ()
    assert not any(setting.differs for setting in found.settings)
    assert repr(found) == "<ReportComparison kept, now: equal>"


def test_another_dataset_is_told_though_the_ids_are_the_same() -> None:
    other = replace(TOY, name="other")
    found = compare_sides(toy_side("a", cycle=1), toy_side("b", other, cycle=1))
    assert found.equal
    cause = found.dataset_changes[0]
    assert (cause.name, cause.expected, cause.actual) == ("name", "toy", "other")


def test_a_nondeterministic_order_is_measured_and_not_compared() -> None:
    found = compare_sides(toy_side("a.yaml"), toy_side("b.yaml", shuffle_files=True))
    assert isinstance(found.diff, NotShown)
    assert found.diff.reason.startswith("the order of b.yaml is not known: ")
    assert found.equal is None
    assert not isinstance(found.b.quality, NotShown)
    assert dict(found.b.quality.assumed) == {"shuffle_seed": 1}
    assert found.b.spec == "train"
    assert any(text.startswith("b.yaml: ") for text in found.warnings)


# What a snapshot alone still tells, and why it does not tell the rest.


def of_snapshot(kept: Snapshot) -> ComparedSide:
    return compared(pinned_side("kept", kept))


def test_a_snapshot_is_measured_without_its_dataset() -> None:
    read = ReadSettings(shuffle_seed=1, buffer=20, buffer_seed=2)
    kept = snapshot(TOY, "train", read).snapshot
    side = of_snapshot(kept)
    assert not isinstance(side.quality, NotShown)
    assert side.quality.score == quality(TOY, "train", read).score


def test_a_layout_that_is_pinned_as_hashes_says_so() -> None:
    lengths = tuple(n**3 % 997 + 1 for n in range(20_000))  # too many for a snapshot
    side = of_snapshot(snapshot(dataset_of({"train": lengths}), "train", {}).snapshot)
    assert isinstance(side.quality, NotShown)
    assert "as hashes" in side.quality.reason
    assert not isinstance(side.order, NotShown)
    assert side.settings["cycle"] == 16


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
    kept, alone = snapshot(str(files[0]), None, read).snapshot, quality(str(files[0]), None, read)
    for file in files:
        file.unlink()
    side = of_snapshot(kept)
    assert not isinstance(side.quality, NotShown)
    assert side.quality.score == alone.score
    assert side.quality.alternatives == alone.alternatives


OLDER = RuleSet(version=0, tensorflow="2.0", tensorflow_datasets="4.0")
LONG = dataset_of({"train": (9_000, 9_000)})


def pinned(*, tree_of: int, rules: RuleSet = ORDER_RULES) -> PinnedOrder:
    kept = snapshot(LONG, "train", {"cycle": 1}).snapshot
    other = snapshot(LONG, "train", {"cycle": tree_of}).snapshot
    return PinnedOrder(snapshot=replace(kept, tree=other.tree, rules=rules), label="kept")


def test_an_order_that_is_made_again_is_the_pinned_one_or_is_not_shown() -> None:
    found = proven(pinned(tree_of=1))
    assert isinstance(found, PlannedOrder)
    assert found.order.num_examples == 18_000
    for other, words in (
        (pinned(tree_of=2), "gives another order today"),
        (pinned(tree_of=1, rules=OLDER), "may give another order today; it was written with rules"),
    ):
        another = proven(other)
        assert isinstance(another, NotShown)
        assert words in another.reason


def test_what_is_known_needs_no_proof() -> None:
    taken = snapshot(LONG, "train", {"cycle": 1})
    known = PinnedOrder(snapshot=taken.snapshot, label="kept", live=taken.live)
    assert proven(known) is taken.live
