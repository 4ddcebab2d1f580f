"""Snapshots as values: what they give back, layouts in a few kilobytes, orders made again."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.sources import reads_spec, resolved_reading, spec_as_given
from shardctl.saved import snapshot as module
from shardctl.saved.snapshot import (
    ShardHashes,
    Snapshot,
    checksum,
    pinned_layout,
    run_lengths,
    shortened,
)
from shardctl.saved.snapshot_file import read_comparable, snapshot_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.stages import Read
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder, diff
from shardctl.verbs.snapshot.answer import TakenSnapshot, snapshot
from tests.cases import check_cases
from tests.golden import assert_evaluated
from tests.pipelines.random_pipelines import RandomPipeline, Sized, pipelines
from tests.strategies import shard_lengths


def toy(name: str = "toy", *, ordered: bool = False, **splits: tuple[int, ...]) -> Dataset:
    made = []
    for split, lengths in splits.items():
        files = (ShardFiles(pattern=f"x/{name}-{split}-\0", num_shards=len(lengths)),)
        made.append(Split(name=split, shard_lengths=lengths, files=files))
    return Dataset(name=name, version="1.0.0", ordered=ordered, splits=tuple(made))


TOY = toy(train=(7, 1, 12, 5, 9), test=(4, 6))


def pinned(spec: str = "train", **settings: Any) -> Snapshot:
    return snapshot(TOY, spec, ReadSettings(**settings)).snapshot


def test_what_a_snapshot_gives_back(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pinned()
    assert found.dataset is not None
    assert [(s.name, s.shard_lengths) for s in found.dataset.splits] == [
        ("train", TOY.splits[0].shard_lengths)
    ]
    assert (found.dataset.title, pinned("test+train").num_examples) == ("toy:1.0.0", 44)
    settings = pinned(shuffle_seed=5, cycle=2, block=3, epochs=2).settings()
    assert settings is not None
    assert (settings.shuffle_seed, settings.cycle, settings.block, settings.epochs) == (5, 2, 3, 2)
    newer = replace(found, pipeline={**found.pipeline, "spin": 1})
    with pytest.raises(UsageError, match=r"the snapshot's pipeline: spin: no such setting"):
        newer.settings()
    monkeypatch.setattr(module, "MAX_LAYOUT_CHARS", -1)
    assert pinned().dataset is None


def test_a_list_of_files_is_a_hash_from_15000_characters_on() -> None:
    # Four characters a name are for what surrounds it in YAML.
    names: Any
    for names in (["x" * 96] * 150, None, []):
        assert shortened({"file_order": names}) == {"file_order": names}
    longer = {"file_order": ["x" * 96] * 151, "block": 16}
    digest = hashlib.sha256(b"\0".join([b"x" * 96] * 151)).hexdigest()
    assert shortened(longer) == {"file_order": f"151 files, sha256:{digest}", "block": 16}
    assert replace(pinned(), pipeline=shortened(longer)).settings() is None


def test_the_checksum_is_over_the_values_whatever_their_order() -> None:
    text = b'{"a":[1,"\\u00e9"],"b":null}'
    expected = f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert checksum({"b": None, "a": [1, "\u00e9"]}) == expected
    more = {"checksum": "any", "refs": ["x"]}
    assert checksum({"a": [1, "\u00e9"], "b": None, **more}) == expected
    assert checksum({"a": [1, "e"], "b": None}) != expected


# Layouts.


def test_run_lengths_say_each_length_in_turn() -> None:
    def check(lengths: tuple[int, ...]) -> None:
        words = [word.partition("x") for word in run_lengths(lengths)]
        said = [int(length) for length, _, count in words for _ in range(int(count or 1))]
        assert tuple(said) == lengths
        assert all(one[0] != other[0] for one, other in pairwise(words))

    check_cases(shard_lengths(12, 2), check, 100)


def test_a_layout_that_fits_is_kept_without_folders_in_the_order_of_the_dataset() -> None:
    test, train = pinned_layout(toy(test=(3, 4), other=(1,), train=(2,)), ["train", "test"])
    assert (test.name, train.name) == ("test", "train")
    files = (ShardFiles(pattern="toy-test-\0", num_shards=2),)
    assert test.split == Split(name="test", shard_lengths=(3, 4), files=files)
    even = Split.even(name="train", num_examples=10**9, num_shards=1_000_000)
    (kept,) = pinned_layout(Dataset(name="d", splits=(even,)), ["train"])
    assert kept.split is not None


@pytest.mark.parametrize(
    ("num_files", "longer", "fits"),
    [(100, 0, True), (1498, 0, True), (1498, 15, True), (1498, 16, False), (2000, 0, False)],
)
def test_names_of_files_take_room(num_files: int, longer: int, fits: bool) -> None:
    # 16 characters each, and quotation marks, a comma and a space; 25 besides. 30,000 fit.
    first, *rest = (f"{n:016}" for n in range(num_files))
    files = ShardFiles(pattern="\0", num_shards=num_files, names=("x" * longer + first, *rest))
    split = Split(name="train", shard_lengths=(5,) * num_files, files=(files,))
    (kept,) = pinned_layout(Dataset(name="d", splits=(split,)), ["train"])
    assert (kept.split is not None) == fits


@pytest.mark.parametrize("at", [0, 99, 100, 250, 511])
def test_a_shard_that_changes_changes_the_digest_of_its_chunk_alone(at: int) -> None:
    def digests(name: str, *lengths: int) -> tuple[str, ...]:
        return ShardHashes.of(toy(name, train=lengths).splits[0], 100).digests

    before = digests("a", *range(512))
    after = digests("a", *range(at), at + 1, *range(at + 1, 512))
    pairs = zip(before, after, strict=True)
    assert [i for i, (one, other) in enumerate(pairs) if one != other] == [at // 100]
    assert not {*before} & {*digests("b", *range(512))}  # the names are part of them


# Readers of stages.


def taken(text: str, spec: str | None = None, dataset: Dataset = TOY) -> TakenSnapshot:
    return snapshot(dataset, spec, ReadSettings(stages=parse_stages(text)))


def through_file(one: TakenSnapshot, folder: Path) -> tuple[PinnedOrder, PlannedOrder]:
    path = folder / "order.yaml"
    path.write_text("".join(snapshot_yaml(one.snapshot)))
    read = read_comparable(path)
    assert read == one.snapshot
    pinned = PinnedOrder(snapshot=one.snapshot, label="then")
    assert pinned.rebuilt is not None
    return pinned, pinned.rebuilt


def ids_of(planned: PlannedOrder) -> list[str]:
    order, splits = planned.order, planned.splits
    which, ids = splits.split_ids(order.read(0, order.num_examples))
    return [f"{splits.names[s]}:{i}" for s, i in zip(which.tolist(), ids.tolist(), strict=True)]


def test_an_order_is_made_again_from_its_snapshot(tmp_path: Path) -> None:
    def made_again(text: str, given: str | None) -> object:
        one = taken(text, given)
        assert ids_of(through_file(one, tmp_path)[1]) == ids_of(one.live)
        return one.snapshot.spec, [source.label for source in one.snapshot.sources]

    assert_evaluated(globals(), "again", made_again)


def test_an_ordered_dataset_is_read_file_by_file_again(tmp_path: Path) -> None:
    one = taken("take(12)", dataset=toy(ordered=True, train=(9, 9), test=(4,)))
    assert [source.ordered for source in one.snapshot.sources] == [True]
    assert through_file(one, tmp_path)[1].order.read(0, 12).tolist() == list(range(12))


def test_without_an_end_there_is_no_snapshot_but_of_a_part() -> None:
    with pytest.raises(UsageError, match=r"without end.*take\(10000\)"):
        taken("map | repeat | batch(2)")
    assert taken("map | repeat | batch(2) | take(50)").snapshot.num_examples == 100


def test_stages_are_pinned_as_written_and_compared_as_what_they_say(tmp_path: Path) -> None:
    one = taken("map | shuffle(5, seed=1) | repeat(2) | batch(3)")
    short = pinned(buffer=5, buffer_seed=1, epochs=2, batch=3)
    assert "stages" not in "".join(snapshot_yaml(short))
    found = diff(through_file(one, tmp_path)[0], PinnedOrder(snapshot=short, label="now"))
    assert found.equal
    changes = [(c.kind, c.name, c.place, c.place_now) for c in found.changes]
    assert changes == [("stage", "map", "stage 1", None)]


def any_source(rng: random.Random) -> Sized:
    spec, count = rng.choice(((None, 34), ("test", 10), ("train[3:20]", 17)))
    return Sized(source=Read(spec=spec), num_examples=count)


def check_again(made: tuple[RandomPipeline, RandomPipeline]) -> int | None:
    """Two pipelines: where they first differ is where their ids first do."""
    sides, ids = [], []
    for one in made:
        settings = ReadSettings(stages=one.pipeline, shuffle_seed=3, cycle=2, block=2)
        try:
            found = snapshot(TOY, "train" if reads_spec(settings) else None, settings)
        except UnpredictableOrderError:  # a later iterator of a pass that is cut
            return None
        sides.append(PinnedOrder(snapshot=found.snapshot, label="a"))
        rebuilt = sides[-1].rebuilt
        assert rebuilt is not None
        ids.append(ids_of(rebuilt))
        assert ids[-1] == ids_of(found.live)
    compared = diff(*sides)
    longer = max(map(len, ids))
    first = next((i for i in range(longer) if ids[0][i : i + 1] != ids[1][i : i + 1]), None)
    assert compared.equal is (first is None)
    if first is not None:
        assert compared.first is not None
        assert (compared.first.position, compared.first.exact) == (first, True)
        assert compared.causes
        assert all(cause.kind != "unknown" for cause in compared.causes)
    return 2


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
        ("zip(train[:4], test) | map", None, False, "train[:4], test"),
        (
            "zip(read(train), read(test, data='mnist')) | take(3)",
            *(None, False, "toy/train, mnist/test"),
        ),
    ],
)
def test_what_is_read_is_the_spec_or_what_stages_say(
    text: str, given: str | None, reads: bool, said: str
) -> None:
    settings = ReadSettings(stages=parse_stages(text))
    assert reads_spec(settings) is reads
    planned = plan_order(TOY, given, settings)
    assert spec_as_given(planned.resolved, settings) == said
    if not reads:  # which may be said, and nothing else
        if "data" not in text or "zip" in text:
            assert plan_order(TOY, said, settings).order == planned.order
        with pytest.raises(UsageError, match="name what they read"):
            plan_order(TOY, "train[:1]", settings)
    if "zip" not in text:
        assert resolved_reading(TOY, said, settings).ranges == planned.ranges
