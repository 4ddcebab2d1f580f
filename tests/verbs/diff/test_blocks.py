"""Two orders, block by block: where each block differs first, and at how many positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.diff.answer import PinnedOrder, Scan, TwoOrders
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import (
    Example,
    Pipeline,
    differing_positions,
    examples,
)

BLOCK = 4096
LENGTHS: dict[str, tuple[int, ...]] = {"train": (4000, 6000), "test": (2500, 500)}


def pipeline(
    spec: str = "train", lengths: dict[str, tuple[int, ...]] = LENGTHS, **settings: Any
) -> Pipeline:
    return Pipeline(
        lengths=tuple(lengths.items()), spec=spec, settings=ReadSettings(cycle=2, **settings)
    )


def side(pipeline: Pipeline) -> tuple[PinnedOrder, list[Example]]:
    """Return a side as its file pins it, and what is at each of its positions."""
    taken = snapshot(pipeline.dataset, pipeline.spec, pipeline.settings)
    return PinnedOrder(snapshot=taken.snapshot, label="a.yaml"), examples(pipeline, taken)


def compared(one: Pipeline, other: Pipeline) -> TwoOrders:
    (expected, before), (actual, after) = side(one), side(other)
    positions = max(len(before), len(after))
    return TwoOrders(expected=expected, actual=actual, size=BLOCK, positions=positions)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pipeline(), pipeline(block=15), id="another block length"),
        pytest.param(pipeline(), pipeline(), id="the same"),
        pytest.param(pipeline(), pipeline(epochs=2), id="more epochs"),
        pytest.param(pipeline(), pipeline(lengths={"train": (4000, 1000)}), id="fewer examples"),
        pytest.param(pipeline(), pipeline(lengths={"train": (4001, 5999)}), id="other lengths"),
        pytest.param(pipeline("test"), pipeline("train"), id="another split"),
        pytest.param(
            pipeline("train+test"),
            pipeline("train+test", {"test": (2500, 500), "train": (4000, 6000)}),
            id="splits in another order",
        ),
    ],
)
def test_a_scan_finds_what_comparing_every_position_finds(one: Pipeline, other: Pipeline) -> None:
    two = compared(one, other)
    differing = differing_positions(side(one)[1], side(other)[1])
    for block in range(-(-two.positions // BLOCK)):
        start, stop = two.span(block)
        assert (start, stop) == (block * BLOCK, min(start + BLOCK, two.positions))
        here = [position for position in differing if start <= position < stop]
        # A block that does not differ is not asked for; its first position is then its end.
        assert two.scan(block) == Scan(here[0] if here else stop, len(here))
        assert two.not_reproduced == []


def test_ids_carry_their_split_where_the_two_read_several() -> None:
    two = compared(pipeline("test"), pipeline("train"))
    assert two.ids(two.actual, 0, 1) == ["train:0"]
    # Of the last file there are 2,000 examples left when the other ends; past the end is none.
    assert two.ids(two.expected, 2998, 3002) == ["test:2498", "test:2499", None, None]


def test_ids_are_numbers_where_both_read_one_split() -> None:
    two = compared(pipeline(), pipeline(block=15))
    assert two.ids(two.expected, 14, 18) == [14, 15, 4000, 4001]
    assert two.ids(two.actual, 14, 18) == [14, 4000, 4001, 4002]


def test_a_side_whose_digests_are_others_is_strange_and_shows_no_ids() -> None:
    two = compared(pipeline(), pipeline(block=15))
    # The digests of blocks of 16 under the name of blocks of 15.
    wrong = replace(two.expected.snapshot, pipeline=two.actual.snapshot.pipeline)
    two.expected = PinnedOrder(snapshot=wrong, label="a.yaml")
    assert two.scan(0) is None
    assert two.not_reproduced == [two.expected]
    assert two.ids(two.expected, 0, 3) == [None, None, None]
    assert two.ids(two.actual, 0, 3) == [0, 1, 2]


def test_a_side_that_cannot_be_made_again_is_strange() -> None:
    two = compared(pipeline(), pipeline(block=15))
    hashed = {**two.expected.snapshot.pipeline, "file_order": "2 files, sha256:0"}
    lost = replace(two.expected.snapshot, pipeline=hashed)
    two.expected = PinnedOrder(snapshot=lost, label="a.yaml")
    assert two.scan(0) is None
    assert two.not_reproduced == [two.expected]


def test_ids_pinned_for_people_are_compared_where_both_read_the_same_splits() -> None:
    one, other = pipeline(), pipeline(block=15)
    before, after = side(one)[1], side(other)[1]
    pairs = [(position, before[position][1], after[position][1]) for position in range(32)]
    assert list(compared(one, other).first_ids()) == pairs
    assert list(compared(pipeline("test"), pipeline("train")).first_ids()) == []
