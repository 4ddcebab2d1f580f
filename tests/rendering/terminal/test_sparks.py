"""Sparks: a block for each number."""

from __future__ import annotations

from shardctl.rendering.terminal.quality import sparks


def test_the_eight_blocks_are_the_eighths_of_one() -> None:
    assert sparks([number / 8 + 0.01 for number in range(8)]) == "▁▂▃▄▅▆▇█"
    assert [ord(spark) - 0x2581 for spark in sparks([0.0, 0.49, 0.51, 1.0])] == [0, 3, 4, 7]


def test_what_is_beyond_the_ends_is_at_them() -> None:
    assert sparks([-0.5, 1.5]) == "▁█"


def test_each_number_is_as_wide_as_asked() -> None:
    assert sparks([1.0, 0.0], 3) == "███▁▁▁"
    assert sparks([]) == ""
