"""Two pipelines side by side: where they part, what each scores, what a snapshot alone tells."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.tfds_rules import ORDER_RULES, RuleSet
from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.order.plan_order import PlannedOrder
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.eval.answer import evaluate
from shardctl.verbs.hosts.answer import hosts
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.report import compare as module
from shardctl.verbs.report.compare import ComparedSide, Side, compare_sides, compared, proven
from shardctl.verbs.report.question import NotShown
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
            compare_sides(a, b, hosts=2)
        return
    found = compare_sides(pinned_side("a", one.snapshot) if as_pinned else a, b, hosts=2)
    positions = differing_positions(examples(pair[0], one), examples(pair[1], other))
    assert not isinstance(found.diff, NotShown)
    assert found.equal == (not positions)
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
def test_orders_part_where_every_position_says_and_score_as_quality_does(as_pinned: bool) -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=as_pinned), 10)


@pytest.mark.fuzz
def test_settings_and_snapshots_part_where_every_position_says_fuzzed() -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=True), FUZZ, fuzz=True)


def toy_side(label: str, dataset: Dataset = TOY, **settings: Any) -> Side:
    return Side(label=label, dataset=dataset, spec="train", settings=ReadSettings(**settings))


def test_equal_pipelines_say_so() -> None:
    kept = snapshot(TOY, "train", {"shuffle_seed": 3}).snapshot
    found = compare_sides(pinned_side("kept", kept), toy_side("now", shuffle_seed=3))
    assert found.equal
    assert found.dataset_changes == ()
    assert not any(setting.differs for setting in found.settings)
    assert repr(found) == "<ReportComparison kept, now: equal>"


def test_settings_that_differ_have_both_values() -> None:
    found = compare_sides(toy_side("a", cycle=2), toy_side("b", cycle=3, batch=8))
    differing = {one.name: (one.a, one.b) for one in found.settings if one.differs}
    assert differing == {"cycle": (2, 3), "batch": (None, 8)}


def test_hosts_and_evaluations_are_those_of_their_verbs() -> None:
    sides = (toy_side("a", batch=6), toy_side("b", batch=6, host_by="files", drop_remainder=True))
    found = compare_sides(*sides, hosts=3, devices=2)
    for side, remainder in zip(found.sides, ("ragged", "drop"), strict=True):
        settings = ReadSettings(batch=6, host_by=side.settings["host_by"])
        read = replace(settings, drop_remainder=remainder == "drop")
        assert side.hosts == hosts(TOY, "train", read, hosts=3)
        numbers = {"batch": 3, "hosts": 3, "devices": 2}
        alone = evaluate(TOY, None, settings, remainder=remainder, **numbers)  # type: ignore[arg-type]
        assert side.evaluation == alone


def test_batches_of_an_evaluation_are_those_of_settings_and_stages_else_a_stand_in() -> None:
    stages = parse_stages("shuffle(9, seed=1) | map | batch(7)")
    found = compare_sides(toy_side("a", stages=stages), toy_side("b"), hosts=2)
    sizes = [getattr(side.evaluation, "device_batch", None) for side in found.sides]
    assert sizes == [7, 256]
    assert found.notes == (
        "nobody said how large a batch of b is: 256 examples are meant in its evaluation",
    )


def test_hosts_are_as_many_as_settings_say_else_a_stand_in_that_is_told() -> None:
    said = compare_sides(toy_side("a"), toy_side("b", host="1/5"))
    assert said.num_hosts == 5
    assert not any("hosts" in note for note in said.notes)
    kept = snapshot(TOY, "train", {"host": "1/5"}).snapshot
    assert compare_sides(pinned_side("a", kept), toy_side("b")).num_hosts == 5
    stand_in = compare_sides(toy_side("a"), toy_side("b"))
    assert stand_in.num_hosts == 8
    assert "nobody said" in stand_in.notes[0]


@pytest.mark.parametrize("name", ["hosts", "devices"])
def test_no_hosts_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--{name} '0': a number from 1"):
        compare_sides(toy_side("a"), toy_side("b"), **{name: 0})  # type: ignore[arg-type]


def test_another_dataset_is_told_though_the_ids_are_the_same() -> None:
    other = replace(TOY, name="other")
    found = compare_sides(toy_side("a", cycle=1), toy_side("b", other, cycle=1))
    assert found.equal
    cause = found.dataset_changes[0]
    assert (cause.name, cause.expected, cause.actual) == ("name", "toy", "other")


def test_an_open_order_is_measured_with_a_stand_in_and_not_compared() -> None:
    found = compare_sides(toy_side("a.yaml"), toy_side("b.yaml", shuffle_files=True))
    assert isinstance(found.diff, NotShown)
    assert found.diff.reason.startswith("b.yaml has no one order: ")
    assert found.equal is None
    assert not isinstance(found.b.quality, NotShown)
    assert dict(found.b.quality.assumed) == {"shuffle_seed": 1}
    assert found.b.spec == "train"
    assert any(text.startswith("b.yaml: ") for text in found.warnings)


# What a snapshot alone still tells, and why it does not tell the rest.


def of_snapshot(kept: Snapshot, evaluated: str | None = None) -> ComparedSide:
    side = pinned_side("kept", kept)
    return compared(side, hosts=2, devices=1, evaluated=evaluated, watch=None)


def test_a_snapshot_tells_all_but_the_evaluation_without_its_dataset() -> None:
    read = ReadSettings(shuffle_seed=1, buffer=20, buffer_seed=2)
    kept = snapshot(TOY, "train", read).snapshot
    side = of_snapshot(kept)
    assert not isinstance(side.quality, NotShown)
    assert side.quality.score == quality(TOY, "train", read).score
    assert not isinstance(side.hosts, NotShown)
    reason = "a snapshot pins what its order reads, train; nothing else"
    assert side.evaluation == NotShown(reason=reason)
    assert getattr(of_snapshot(kept, "train").evaluation, "total", None) == 120


def test_a_layout_that_is_pinned_as_hashes_says_so() -> None:
    lengths = tuple(n**3 % 997 + 1 for n in range(20_000))  # too many for a snapshot
    side = of_snapshot(snapshot(dataset_of({"train": lengths}), "train", {}).snapshot)
    for part in (side.quality, side.hosts):
        assert isinstance(part, NotShown)
        assert "as hashes" in part.reason
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
    assert isinstance(side.hosts, NotShown)


OLDER = RuleSet(version=0, tensorflow="2.0", tensorflow_datasets="4.0")
LONG = dataset_of({"train": (9_000, 9_000)})


def pinned(*, tree_of: int, rules: RuleSet = ORDER_RULES) -> PinnedOrder:
    kept = snapshot(LONG, "train", {"cycle": 1}).snapshot
    other = snapshot(LONG, "train", {"cycle": tree_of}).snapshot
    return PinnedOrder(snapshot=replace(kept, tree=other.tree, rules=rules), label="kept")


@pytest.mark.parametrize("rules", [ORDER_RULES, OLDER])
def test_an_order_that_is_made_again_is_the_pinned_one_or_is_not_shown(rules: RuleSet) -> None:
    found = proven(pinned(tree_of=1, rules=rules))
    assert isinstance(found, PlannedOrder)
    assert found.order.num_examples == 18_000
    another = proven(pinned(tree_of=2, rules=rules))
    assert isinstance(another, NotShown)
    assert "another order today" in another.reason
    assert f"TensorFlow {rules.tensorflow}" in another.reason


def test_an_order_of_other_rules_that_is_too_long_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_ALL", 17_999)
    found = proven(pinned(tree_of=1, rules=OLDER))
    assert isinstance(found, NotShown)
    assert "18,000 positions are too many" in found.reason
    assert isinstance(proven(pinned(tree_of=1)), PlannedOrder)


def test_what_is_known_needs_no_proof() -> None:
    taken = snapshot(LONG, "train", {"cycle": 1})
    known = PinnedOrder(snapshot=taken.snapshot, label="kept", live=taken.live)
    assert proven(known) is taken.live
