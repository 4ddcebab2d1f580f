"""What other settings would do, as a table, a line and records."""

from __future__ import annotations

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from shardctl.planning.quality.quality import quality
from shardctl.planning.quality.score import Metric, score_of
from shardctl.planning.quality.what_if import Alternative, BufferForTarget
from shardctl.rendering.quality.quality import (
    quality_table,
)
from shardctl.rendering.quality.what_if import (
    alternative_record,
    target_line,
    target_record,
    what_if_table,
)
from shardctl.rendering.text.screen import PLAIN
from tests.planning.quality.quality_orders import even_dataset


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (0.0001, "buffer for a score of 0.0001: none is needed, without one it is 0.0"),
        (1.0, "buffer for a score of 1: none, one of the whole epoch scores 0.9"),
        (0.5, " as stored (decoded examples take more); it scores 0.5"),
    ],
)
def test_the_buffer_for_a_target_is_a_line(target: float, words: str) -> None:
    plan = quality(even_dataset(4000, 20), "train", target=target, what_if=False)
    assert words in "".join(quality_table(plan, PLAIN))


def choice(change: str, value: float, num_bytes: int | None = None) -> Alternative:
    metric = Metric(name="x", value=1 - value, expected=0, spread=0, fault="above", reach=1)
    return Alternative(change=change, score=score_of([metric]), num_bytes=num_bytes)


def test_the_change_that_does_most_is_named_and_the_best_without_a_buffer() -> None:
    choices = (choice("as it is", 0.25), choice("block 1", 0.5), choice("buffer 9", 0.75, 2048))
    plan: Any = SimpleNamespace(alternatives=choices)
    assert "".join(what_if_table(plan, PLAIN)) == (
        "what if    score  error   buffer\n"
        "as it is  0.2500      -\n"
        "block 1   0.5000      -\n"
        "buffer 9  0.7500      -  2.0 KiB\n"
        "does most: buffer 9; without a larger buffer: block 1\n"
    )
    plan.alternatives = choices[:2]
    assert "".join(what_if_table(plan, PLAIN)).endswith("does most: block 1\n")


def test_a_change_is_a_record() -> None:
    assert alternative_record(choice("buffer 9", 0.75, 2048)) == {
        "change": "buffer 9",
        "score": 0.75,
        "sampling_error": None,
        "buffer_bytes": 2048,
    }


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (None, ""),
        (
            BufferForTarget(target=0.5, buffer=1000, score=0.51, num_bytes=None),
            "buffer for a score of 0.5: 1,000 examples, of unknown size as stored (decoded "
            "examples take more); it scores 0.5100",
        ),
        (
            BufferForTarget(target=0.5, buffer=1000, score=0.51, num_bytes=3 * 2**20),
            "buffer for a score of 0.5: 1,000 examples, 3.0 MiB as stored (decoded examples take "
            "more); it scores 0.5100",
        ),
        (
            BufferForTarget(target=1.0, buffer=None, score=0.999, num_bytes=None),
            "buffer for a score of 1: none, one of the whole epoch scores 0.9990",
        ),
        (
            BufferForTarget(target=0.25, buffer=0, score=0.3, num_bytes=0),
            "buffer for a score of 0.25: none is needed, without one it is 0.3000",
        ),
    ],
)
def test_a_target_is_a_line_and_a_record(found: BufferForTarget | None, line: str) -> None:
    plan: Any = SimpleNamespace(buffer_for_target=found)
    assert target_line(plan) == line
    assert target_record(plan) == (None if found is None else asdict(found))
