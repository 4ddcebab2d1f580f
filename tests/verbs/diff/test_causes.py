"""Why two orders differ: what became of their shards, settings and stages."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.saved import snapshot as pinned_layout
from shardctl.saved.snapshot import Snapshot
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.causes import Cause, causes, stage_causes
from shardctl.verbs.diff.view import cause_line
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import check_cases
from tests.golden import assert_answers
from tests.verbs.diff.diff_cases import dataset_of


def of_files(**lengths: int) -> Snapshot:
    """Return a snapshot of a split whose shards have these names and lengths."""
    names = tuple(lengths)
    train = Split(
        name="train",
        shard_lengths=tuple(lengths.values()),
        files=(ShardFiles(num_shards=len(names), names=names),),
    )
    return snapshot(Dataset(name="d", splits=(train,)), "train").snapshot


def changes(found: tuple[Cause, ...]) -> list[tuple[str | None, list[tuple[str, object, object]]]]:
    return [
        (cause.change, [(s.filename, s.expected, s.actual) for s in cause.shards])
        for cause in found
    ]


def test_shards_appear_vanish_and_change_their_length_by_name() -> None:
    files = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=1)

    def check(case: tuple[dict[str, int], dict[str, int]]) -> None:
        before, after = case
        if not before.keys() & after.keys():
            return
        found = dict(changes(causes(of_files(**before), of_files(**after))))
        found.pop("renamed", None)
        gone = [(name, before[name], None) for name in before if name not in after]
        new = [(name, None, after[name]) for name in after if name not in before]
        other = [
            (name, before[name], after[name])
            for name in before
            if name in after and before[name] != after[name]
        ]
        expected = {"vanished": gone, "appeared": new, "length": other}
        assert found == {change: shards for change, shards in expected.items() if shards}

    check_cases(st.tuples(files, files), check, 70)


def pinned(*lengths: int) -> Snapshot:
    return snapshot(dataset_of({"train": lengths}), "train").snapshot


def test_a_new_number_of_shards_is_no_list_of_vanished_ones() -> None:
    found = causes(pinned(3, 3, 3), pinned(3, 3, 3, 4))
    assert [cause.change for cause in found] == ["renamed", "appeared"]
    assert changes(found)[1] == ("appeared", [("toy-train.tfrecord-00003-of-00004", None, 4)])


def test_a_split_that_is_read_no_more_is_said() -> None:
    dataset = dataset_of({"train": (3,), "test": (4,)})
    one, other = (snapshot(dataset, spec).snapshot for spec in ("train+test", "train"))
    kinds = [(c.kind, c.name, c.expected, c.actual) for c in causes(one, other)]
    assert kinds == [("spec", "spec", "train+test", "train"), ("split", "test", 4, None)]


def test_another_dataset_is_said_by_what_differs_of_its_name() -> None:
    one = pinned(3, 3)
    found = causes(one, replace(one, head=replace(one.head, version="2.0.0"), ordered=True))
    assert [(c.kind, c.name) for c in found] == [("dataset", "version"), ("dataset", "ordered")]


def test_hashed_layouts_name_the_first_shards_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)
    lengths = [3] * 1000
    one = pinned(*lengths)
    lengths[600] = 4
    (cause,) = causes(one, pinned(*lengths))
    # 1,000 shards in at most 256 chunks: four a chunk.
    assert "from shard 600 to 603" in cause_line(cause)


def test_a_hashed_layout_and_one_kept_as_it_is_are_compared(monkeypatch: Any) -> None:
    exact = pinned(3, 3, 4)
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)
    hashed = pinned(3, 3, 4)
    assert causes(exact, hashed) == ()
    (cause,) = causes(hashed, replace(exact, splits=exact.splits[:0] + pinned(3, 4, 4).splits))
    assert cause.change == "hashed"


def test_another_version_of_a_loader_says_what_changed_in_between() -> None:
    def of_version(version: str, **settings: int) -> Snapshot:
        read = {"loader": "hf", "loader_version": version, "shuffle_seed": 3, **settings}
        toy = Dataset(name="d", splits=(Split(name="train", shard_lengths=(40,) * 12),))
        return snapshot(toy, "train", read).snapshot

    old, new = (of_version(version, buffer=16) for version in ("4.8.5", "5.2.0"))
    (cause,) = causes(old, new)
    assert (cause.name, cause.expected, cause.actual) == ("loader_version", "4.8.5", "5.2.0")
    line = cause_line(cause)
    assert "the order of a stream changed at 5.0.0 (" in line
    assert ") and 5.1.0 (" in line
    (cause,) = causes(of_version("4.8.5"), of_version("5.2.0"))
    assert cause_line(cause) == "loader_version: 4.8.5 became 5.2.0"  # by index nothing changed


# Stages of two pipelines, by hand.


def test_what_changed_is_named_by_its_place() -> None:
    def named(pair: str) -> str:
        before, after = map(parse_stages, pair.split(" -> "))
        found = dict.fromkeys(stage_causes(before, after))
        return "\n".join(f"{c.place}/{c.place_now} {c.name}: {cause_line(c)}" for c in found)

    assert_answers(Path(__file__).parent / "golden" / "changed_stages.txt", named)


STAGES = ("cache", "map", "prefetch(2)", "shuffle(5, seed=1)", "repeat(2)", "batch(3)", "take(9)")


def test_lists_are_the_same_where_nothing_is_found_and_else_something_is() -> None:
    drawn = random.Random(5)
    for _ in range(300):
        one = " | ".join(drawn.choices(STAGES, k=drawn.randint(1, 6)))
        other = " | ".join(drawn.choices(STAGES, k=drawn.randint(1, 6)))
        found = list(stage_causes(parse_stages(one), parse_stages(other)))
        assert bool(found) == (one != other), (one, other)
        # What was added and left out adds up to the two lists.
        added = sum(change.change == "added" for change in found)
        left = sum(change.change == "left out" for change in found)
        assert added - left == other.count("|") - one.count("|")


def test_one_stage_taken_out_or_changed_is_the_one_that_is_named() -> None:
    drawn = random.Random(6)
    for _ in range(300):
        stages = drawn.sample(STAGES, k=drawn.randint(2, 7))
        index = drawn.randrange(len(stages))
        before = parse_stages(" | ".join(stages))
        without = stages[:index] + stages[index + 1 :]
        (found,) = stage_causes(before, parse_stages(" | ".join(without)))
        assert (found.change, found.place) == ("left out", f"stage {index + 1}")
        (found,) = stage_causes(parse_stages(" | ".join(without)), before)
        assert (found.change, found.place_now) == ("added", f"stage {index + 1}")
