"""Bars of all ways to read in a terminal."""

from __future__ import annotations

from math import comb

import pytest

from shardctl.draw.tables import Screen, display_width
from shardctl.verbs.quality.loaders import LoaderComparison, compare_loaders
from shardctl.verbs.quality.view import loaders_table
from tests.draw.pictures.drawn import drawn
from tests.verbs.quality.quality_orders import even_dataset


@pytest.fixture(scope="module")
def plan() -> LoaderComparison:
    return compare_loaders(even_dataset(20_000, 100), "train")


@pytest.mark.parametrize("width", [57, 80, 120])
def test_each_way_has_a_bar_beside_its_number(plan: LoaderComparison, width: int) -> None:
    lines = drawn(plan, width)
    assert max(map(display_width, lines)) <= min(width, 80)
    for way in plan.ways:
        assert way.mixing is not None
        (line,) = (line for line in lines if line.startswith(f"{way.reader} "))
        assert line.endswith(f" {way.mixing.shards:.1f}")
        assert "█" in line or way.mixing.shards < plan.uniform_shards / 4
    uniform = 100 * (1 - comb(19_800, 256) / comb(20_000, 256))  # 200 examples in each of 100
    assert lines[-1].startswith("uniform ")
    assert lines[-1].endswith(f" {uniform:.1f}")


def test_lengths_are_in_proportion(plan: LoaderComparison) -> None:
    lines = drawn(plan)
    full = lines[-1].count("█")
    for way in plan.ways:
        assert way.mixing is not None
        (line,) = (line for line in lines if line.startswith(f"{way.reader} "))
        expected = full * way.mixing.shards / plan.uniform_shards
        assert abs(line.count("█") - expected) <= 1.5


def test_only_a_screen_with_pictures_has_them(plan: LoaderComparison) -> None:
    without = "".join(loaders_table(plan, Screen(width=80)))
    pictured = "".join(loaders_table(plan, Screen(width=80, pictures=True)))
    assert "█" not in without
    bars = "\n".join([*drawn(plan), ""])
    assert pictured.replace(f"{bars}\n", "") == without
