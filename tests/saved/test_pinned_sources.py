"""Orders of stages that are pinned are made again of what was pinned, whatever is there today."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.order.sources import reads_spec, resolved_reading, spec_as_given
from shardctl.saved.snapshot import Snapshot
from shardctl.saved.snapshot_file import read_comparable, snapshot_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.stages import Read
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder, diff
from shardctl.verbs.snapshot.answer import TakenSnapshot, snapshot
from tests.cases import check_cases
from tests.pipelines.random_pipelines import RandomPipeline, Sized, pipelines


def toy(name: str = "toy", *, ordered: bool = False, **splits: tuple[int, ...]) -> Dataset:
    return Dataset(
        name=name,
        version="1.0.0",
        ordered=ordered,
        splits=tuple(
            Split(
                name=split,
                shard_lengths=lengths,
                files=(ShardFiles(pattern=f"{name}-{split}-\0", num_shards=len(lengths)),),
            )
            for split, lengths in splits.items()
        ),
    )


TOY = toy(train=(7, 1, 12, 5, 9), test=(4, 6))


def taken(text: str, spec: str | None = None, dataset: Dataset = TOY) -> TakenSnapshot:
    return snapshot(dataset, spec, ReadSettings(stages=parse_stages(text)))


def through_file(one: TakenSnapshot, folder: Path) -> PinnedOrder:
    path = folder / "order.yaml"
    path.write_text("".join(snapshot_yaml(one.snapshot)))
    read = read_comparable(path)
    assert isinstance(read, Snapshot)
    assert read == one.snapshot
    return PinnedOrder(snapshot=read, label="then")


@pytest.mark.parametrize(
    ("text", "given", "spec", "labels"),
    [
        ("skip(2) | take(9)", None, "train", [""]),
        ("skip(2) | take(9)", "test", "test", [""]),
        ("test | skip(2) | take(5)", None, "test", [""]),
        ("concatenate(test) | take(40)", "train[:7]", "train[:7]", [""]),
        ("zip(train, test) | skip(2)", None, "train, test", [""]),
        (
            "zip(read(train), read(test, data='mnist')) | take(3)",
            None,
            "toy/train, mnist/test",
            ["toy", "mnist"],
        ),
        ("read(data='mnist') | take(3)", None, "train", [""]),
    ],
)
def test_an_order_is_made_again_from_its_snapshot(
    text: str, given: str | None, spec: str, labels: list[str], tmp_path: Path
) -> None:
    one = taken(text, given)
    assert one.snapshot.spec == spec
    assert [source.label for source in one.snapshot.sources] == labels
    pinned = through_file(one, tmp_path)
    assert pinned.rebuilt is not None
    order, live = pinned.rebuilt.order, one.live.order
    assert order.num_examples == live.num_examples
    count = live.num_examples
    assert np.array_equal(
        [str(i) for i in order.codes.ids(order.read(0, count))],
        [str(i) for i in live.codes.ids(live.read(0, count))],
    )


def test_every_reader_keeps_whether_its_dataset_is_ordered(tmp_path: Path) -> None:
    ordered = toy(ordered=True, train=(9, 9), test=(4,))
    one = taken("take(12)", dataset=ordered)
    assert [source.ordered for source in one.snapshot.sources] == [True]
    rebuilt = through_file(one, tmp_path).rebuilt
    assert rebuilt is not None
    # An ordered dataset is read file by file.
    assert rebuilt.order.read(0, 12).tolist() == list(range(12))


def test_without_an_end_there_is_no_snapshot_but_of_a_part() -> None:
    with pytest.raises(UsageError, match=r"no end.*take\(10000\)"):
        taken("map | repeat | batch(2)")
    assert taken("map | repeat | batch(2) | take(50)").snapshot.num_examples == 100


def test_stages_are_pinned_as_they_were_written_and_compared_as_what_they_say(
    tmp_path: Path,
) -> None:
    one = taken("map | shuffle(5, seed=1) | repeat(2) | batch(3)")
    short = snapshot(TOY, None, ReadSettings(buffer=5, buffer_seed=1, epochs=2, batch=3))
    assert "stages" not in "".join(snapshot_yaml(short.snapshot))
    pinned = through_file(one, tmp_path)
    assert pinned.rebuilt is not None
    found = diff(pinned, PinnedOrder(snapshot=short.snapshot, label="now"))
    assert found.equal
    assert [(c.kind, c.name, c.stage and c.stage.change) for c in found.changes] == [
        ("stage", "map", "left out")
    ]


def any_source(rng: random.Random) -> Sized:
    spec, count = rng.choice(((None, 34), ("test", 10), ("train[3:20]", 17)))
    return Sized(source=Read(spec=spec), num_examples=count)


def check_again(made: tuple[RandomPipeline, RandomPipeline]) -> int | None:
    """Two pipelines: where they first differ is where their ids first do."""
    sides = []
    for one in made:
        settings = ReadSettings(stages=one.pipeline, shuffle_seed=3, cycle=2, block=2)
        try:
            one_taken = snapshot(TOY, "train" if reads_spec(settings) else None, settings)
        except UnpredictableOrderError:  # a later iterator of a pass that is cut
            return None
        sides.append(PinnedOrder(snapshot=one_taken.snapshot, label="a"))
        live = one_taken.live.order
        rebuilt = sides[-1].rebuilt
        assert rebuilt is not None
        assert np.array_equal(
            rebuilt.order.read(0, live.num_examples), live.read(0, live.num_examples)
        )
    ids = [
        [str(i) for i in _named(side, side.rebuilt.order.num_examples)]  # type: ignore[union-attr]
        for side in sides
    ]
    found = diff(sides[0], sides[1])
    longer = max(map(len, ids))
    first = next((i for i in range(longer) if ids[0][i : i + 1] != ids[1][i : i + 1]), None)
    if first is None:
        assert found.equal
        return 2
    assert found.first is not None
    assert (found.first.position, found.first.exact) == (first, True)
    assert found.causes
    assert all(cause.kind != "unknown" for cause in found.causes)
    return 2


def _named(side: PinnedOrder, count: int) -> list[str]:
    assert side.rebuilt is not None
    splits = side.rebuilt.splits
    which, ids = splits.split_ids(side.rebuilt.order.read(0, count))
    return [f"{splits.names[s]}:{i}" for s, i in zip(which.tolist(), ids.tolist(), strict=True)]


@pytest.mark.long
def test_random_pipelines_are_pinned_and_compared() -> None:
    both = st.tuples(pipelines(any_source), pipelines(any_source))
    check_cases(both, check_again, 12)


@pytest.mark.parametrize(
    ("text", "given", "reads", "said"),
    [
        ("take(3)", None, True, "train"),
        ("take(3)", "test", True, "test"),
        ("test | take(3)", None, False, "test"),
        ("read(data='mnist') | take(3)", None, False, "train"),
        ("concatenate(test)", "train[:3]", True, "train[:3]"),
    ],
)
def test_what_is_read_is_the_spec_or_what_stages_say(
    text: str, given: str | None, reads: bool, said: str
) -> None:
    settings = ReadSettings(stages=parse_stages(text))
    assert reads_spec(settings) is reads
    planned = plan_order(TOY, given, settings)
    assert spec_as_given(planned.resolved, settings) == said
    again = resolved_reading(TOY, said, settings)
    assert again.ranges == planned.ranges


def test_what_stages_read_may_be_said_as_answers_say_it() -> None:
    for stages, said in (
        ("test | take(3)", "test"),
        ("zip(train[:4], test) | map", "train[:4], test"),
        ("zip(read(train), read(test, data='mnist')) | take(3)", "toy/train, mnist/test"),
    ):
        settings = ReadSettings(stages=parse_stages(stages))
        assert plan_order(TOY, said, settings).order == plan_order(TOY, None, settings).order
        with pytest.raises(UsageError, match="the stages say what is read"):
            plan_order(TOY, "train", settings)
