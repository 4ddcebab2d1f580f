"""Two pipelines side by side: where they part, as every position says, and what each scores."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError, UsageError
from shardctl.saved.snapshot import Snapshot
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.eval.answer import evaluate
from shardctl.verbs.hosts.answer import hosts
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.report.compare import ReportComparison, Side, compare_sides
from shardctl.verbs.report.shown import NotShown
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


def settings_side(label: str, pipeline: Pipeline) -> Side:
    return Side(
        label=label, dataset=pipeline.dataset, spec=pipeline.spec, settings=pipeline.settings
    )


def pinned_side(label: str, taken: Snapshot) -> Side:
    return Side(label=label, pinned=PinnedOrder(snapshot=through_a_file(taken), label=label))


def check_pair(pair: tuple[Pipeline, Pipeline], *, as_pinned: bool) -> None:
    """Compare a page's figures with a look at every position, and with the verbs alone."""
    taken = [pipeline.taken() for pipeline in pair]
    if None in taken:
        with contextlib.suppress(ShardctlError):  # an answer, or one error
            compare_sides(settings_side("a", pair[0]), settings_side("b", pair[1]), hosts=2)
        return
    one, other = taken
    assert one is not None
    assert other is not None
    a = pinned_side("a", one.snapshot) if as_pinned else settings_side("a", pair[0])
    found = compare_sides(a, settings_side("b", pair[1]), hosts=2)
    before, after = examples(pair[0], one), examples(pair[1], other)
    positions = differing_positions(before, after)
    assert not isinstance(found.diff, NotShown)
    assert found.equal == (not positions)
    if positions:
        assert found.diff.first is not None
        assert found.diff.first.position == positions[0]
        near = next(row for row in found.neighbours if row.differs)
        assert near.position == positions[0]
    check_blocks(found, set(positions), len(before), len(after))
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


def check_blocks(found: ReportComparison, differing: set[int], *lengths: int) -> None:
    stop = 0
    for run in found.blocks:
        assert run.start == stop
        stop = run.stop
        inside = differing & set(range(run.start, run.stop))
        if run.state == "one has ended":
            assert run.start >= min(lengths)
            assert len(inside) == run.stop - run.start
        else:
            assert run.stop <= min(lengths)
            assert bool(inside) == (run.state == "moved")
    assert stop == max(lengths)


@pytest.mark.long
def test_settings_part_where_every_position_says_and_score_as_quality_does() -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=False), 12)


@pytest.mark.long
def test_a_snapshot_and_settings_part_there_and_score_as_quality_does() -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=True), 12)


@pytest.mark.fuzz
def test_settings_and_snapshots_part_where_every_position_says_fuzzed() -> None:
    check_cases(pairs(), lambda pair: check_pair(pair, as_pinned=True), FUZZ, fuzz=True)


def toy_side(label: str, settings: ReadSettings, dataset: Dataset = TOY) -> Side:
    return Side(label=label, dataset=dataset, spec="train", settings=settings)


def test_equal_pipelines_say_so() -> None:
    read = ReadSettings(shuffle_seed=3)
    kept = snapshot(TOY, "train", read).snapshot
    found = compare_sides(pinned_side("kept", kept), toy_side("now", read))
    assert found.equal
    assert [(run.start, run.stop, run.state) for run in found.blocks] == [(0, 120, "same")]
    assert (found.neighbours, found.dataset_changes) == ((), ())
    assert not any(setting.differs for setting in found.settings)
    assert repr(found) == "<ReportComparison kept, now: equal>"


def test_settings_that_differ_have_both_values() -> None:
    found = compare_sides(
        toy_side("a", ReadSettings(cycle=2)), toy_side("b", ReadSettings(cycle=3, batch=8))
    )
    differing = {one.name: (one.a, one.b) for one in found.settings if one.differs}
    assert differing == {"cycle": (2, 3), "batch": (None, 8)}


def test_hosts_and_evaluations_are_those_of_their_verbs() -> None:
    read = ReadSettings(batch=6)
    found = compare_sides(
        toy_side("a", read), toy_side("b", replace(read, host_by="files")), hosts=3, devices=2
    )
    for side, host_by in zip(found.sides, ("even", "files"), strict=True):
        settings = ReadSettings(batch=6, host_by=host_by)  # type: ignore[arg-type]
        assert side.hosts == hosts(TOY, "train", settings, hosts=3)
        assert side.evaluation == evaluate(TOY, None, settings, batch=3, hosts=3, devices=2)


def test_batches_of_an_evaluation_are_those_of_settings_and_stages_else_a_stand_in() -> None:
    stages = ReadSettings(stages=parse_stages("shuffle(9, seed=1) | map | batch(7)"))
    found = compare_sides(toy_side("a", stages), toy_side("b", ReadSettings()), hosts=2)
    sizes = []
    for side in found.sides:
        assert not isinstance(side.evaluation, NotShown)
        sizes.append(side.evaluation.device_batch)
    assert sizes == [7, 256]
    assert found.notes == (
        "nobody said how large a batch of b is: 256 examples are meant in its evaluation",
    )


def test_hosts_are_as_many_as_settings_say_else_a_stand_in_that_is_told() -> None:
    one = ReadSettings(host="1/5")  # type: ignore[arg-type]
    said = compare_sides(toy_side("a", ReadSettings()), toy_side("b", one))
    assert said.num_hosts == 5
    assert not any("hosts" in note for note in said.notes)
    kept = snapshot(TOY, "train", one).snapshot
    assert compare_sides(pinned_side("a", kept), toy_side("b", ReadSettings())).num_hosts == 5
    stand_in = compare_sides(toy_side("a", ReadSettings()), toy_side("b", ReadSettings()))
    assert stand_in.num_hosts == 8
    assert "nobody said" in stand_in.notes[0]


@pytest.mark.parametrize(
    ("numbers", "named"), [({"hosts": 0}, "hosts"), ({"devices": 0}, "devices")]
)
def test_no_hosts_are_refused(numbers: dict[str, int], named: str) -> None:
    side = toy_side("a", ReadSettings())
    with pytest.raises(UsageError, match=f"--{named} '0': a number from 1"):
        compare_sides(side, side, **numbers)  # type: ignore[arg-type]


def test_another_dataset_is_told_though_the_ids_are_the_same() -> None:
    other = replace(TOY, name="other")
    read = ReadSettings(cycle=1)
    found = compare_sides(toy_side("a", read), toy_side("b", read, other))
    assert found.equal
    assert [(cause.name, cause.expected, cause.actual) for cause in found.dataset_changes][:1] == [
        ("name", "toy", "other")
    ]


def test_an_open_order_is_measured_with_a_stand_in_and_not_compared() -> None:
    found = compare_sides(
        toy_side("a.yaml", ReadSettings()), toy_side("b.yaml", ReadSettings(shuffle_files=True))
    )
    assert isinstance(found.diff, NotShown)
    assert found.diff.reason.startswith("b.yaml has no one order: ")
    assert (found.equal, found.blocks, found.neighbours) == (None, (), ())
    assert not isinstance(found.b.quality, NotShown)
    assert dict(found.b.quality.assumed) == {"shuffle_seed": 1}
    assert found.b.spec == "train"
    assert any(text.startswith("b.yaml: ") for text in found.warnings)
