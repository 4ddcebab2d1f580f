"""Which stages of two pipelines differ, by hand."""

from __future__ import annotations

import random

import pytest

from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.causes import changed_stages

MIX = "sample_from_datasets([train | shuffle({}, seed=1) | repeat, {} | repeat], {}) | batch(8)"

CASES: tuple[tuple[str, str, list[str]], ...] = (
    ("cache | batch(8)", "cache | batch(8)", []),
    (
        "map | shuffle(10, seed=7)",
        "map | shuffle(10, seed=8)",
        ["stage 2/stage 2 changed shuffle: seed 7 became 8"],
    ),
    (
        "shuffle(10, seed=7) | repeat(2) | batch(4)",
        "shuffle(20, seed=7, reshuffle=False) | repeat | batch(4)",
        [
            "stage 1/stage 1 changed shuffle: buffer 10 became 20, reshuffle none became no",
            "stage 2/stage 2 changed repeat: count 2 became none",
        ],
    ),
    (
        "cache | shuffle(10, seed=7)",
        "shuffle(10, seed=7) | cache",
        ["stage 1/stage 2 moved cache: moved from before shuffle to behind it"],
    ),
    (
        "shuffle(10, seed=7) | map | repeat(2)",
        "shuffle(10, seed=7) | repeat(2) | map",
        ["stage 2/stage 3 moved map: moved from before repeat to behind it"],
    ),
    (
        "batch(8) | cache | shuffle(9, seed=1)",
        "cache | batch(8) | shuffle(9, seed=2)",
        [
            "stage 2/stage 1 moved cache: moved from behind batch to before it",
            "stage 3/stage 3 changed shuffle: seed 1 became 2",
        ],
    ),
    (
        "prefetch(2) | shuffle(10, seed=7) | batch(8)",
        "shuffle(10, seed=7) | batch(8) | prefetch(4)",
        [
            "stage 1/stage 3 moved and changed prefetch: moved from before batch to behind it, "
            "size 2 became 4"
        ],
    ),
    ("shuffle(10, seed=7)", "shuffle(10, seed=7, reshuffle=True)", []),
    ("cache", "cache | batch(8)", ["None/stage 2 added batch: was added behind cache"]),
    ("batch(8)", "cache | batch(8)", ["None/stage 1 added cache: was added, the first stage"]),
    ("cache | map | batch(8)", "cache | batch(8)", ["stage 2/None left out map: was left out"]),
    (
        "zip(shared('a', train | cache), shared('a', train | cache) | map)",
        "zip(shared('a', train | map), shared('a', train | map) | map)",
        [
            "stage 1 of shared a/None left out cache: was left out",
            "None/stage 1 of shared a added map: was added, the first stage",
        ],
    ),
    # Two of a kind: the one that is the same keeps its place.
    (
        "shuffle(10, seed=1) | batch(8) | shuffle(5, seed=2)",
        "batch(8) | shuffle(5, seed=2)",
        ["stage 1/None left out shuffle: was left out"],
    ),
    (
        "map | filter",
        "map | flat_map",
        ["stage 2/None left out filter: was left out", "None/stage 2 added flat_map"],
    ),
    ("read(train[:9]) | cache", "read(train[:8]) | cache", ["source/source source read: spec"]),
    (
        "read(train, shuffle_seed=3) | cache",
        "read(train, shuffle_seed=4) | cache",
        ["source/source source read: settings shuffle_seed=3 became shuffle_seed=4"],
    ),
    ("range(9) | cache", "train | cache", ["source/source source range: became train"]),
    (
        MIX.format(10, "test", "seed=4"),
        MIX.format(10, "test", "seed=4, weights=[0.25, 0.75]"),
        ["source/source source sample_from_datasets: weights none became [0.25, 0.75]"],
    ),
    (
        MIX.format(10, "test", "seed=4"),
        MIX.format(20, "test", "seed=4"),
        ["stage 1 of input 0/stage 1 of input 0 changed shuffle: buffer 10 became 20"],
    ),
    (
        "sample_from_datasets([train | repeat, test | repeat], seed=1)",
        "sample_from_datasets([train | repeat, 'train[:9]' | repeat, test | repeat], seed=1)",
        ["None/input 1 added input: was added"],
    ),
    (
        "sample_from_datasets([train | repeat, test | cache | repeat], seed=1)",
        "sample_from_datasets([test | cache | repeat], seed=1)",
        ["input 0/None left out input: was left out"],
    ),
    (
        "choose_from_datasets([train, test], choices=range(2) | repeat(3))",
        "choose_from_datasets([train, test], choices=range(2) | repeat(4))",
        ["stage 1 of choices/stage 1 of choices changed repeat: count 3 became 4"],
    ),
    (
        "cache | concatenate(test | shuffle(10, seed=1))",
        "cache | concatenate(test | shuffle(10, seed=2))",
        [
            "stage 1 of concatenate of stage 2/stage 1 of concatenate of stage 2 changed shuffle: "
            "seed 1 became 2"
        ],
    ),
)


@pytest.mark.parametrize(("before", "after", "expected"), CASES)
def test_what_changed_is_named_by_its_place(before: str, after: str, expected: list[str]) -> None:
    found = [
        f"{one.place}/{one.place_now} {one.change} {one.name}: {one.words}"
        for one in changed_stages(parse_stages(before), parse_stages(after))
    ]
    assert len(found) == len(expected), found
    for said, begins in zip(found, expected, strict=True):
        assert said.startswith(begins), found


STAGES = ("cache", "map", "prefetch(2)", "shuffle(5, seed=1)", "repeat(2)", "batch(3)", "take(9)")


def test_lists_are_the_same_where_nothing_is_found_and_else_something_is() -> None:
    drawn = random.Random(5)
    for _ in range(300):
        one = " | ".join(drawn.choices(STAGES, k=drawn.randint(1, 6)))
        other = " | ".join(drawn.choices(STAGES, k=drawn.randint(1, 6)))
        found = changed_stages(parse_stages(one), parse_stages(other))
        assert bool(found) == (one != other), (one, other)
        # What was added and left out, and what moved, adds up to the two lists.
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
        (found,) = changed_stages(before, parse_stages(" | ".join(without)))
        assert (found.change, found.place) == ("left out", f"stage {index + 1}")
        (found,) = changed_stages(parse_stages(" | ".join(without)), before)
        assert (found.change, found.place_now) == ("added", f"stage {index + 1}")
