"""Where two orders part, and their settings, as sections: with both values, nothing left out."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.text import parse_stages
from shardctl.planning.diff.diff import PinnedOrder
from shardctl.planning.report.compare import ReportComparison, compare_sides
from shardctl.planning.report.compared_side import Side
from shardctl.planning.snapshot import snapshot
from shardctl.rendering.report.compared_figures import (
    dataset_line,
    parting_section,
    setting_text,
    settings_section,
)
from tests.planning.diff.diff_cases import dataset_of
from tests.rendering.report.reports import text_of

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def compared(a: dict[str, Any], b: dict[str, Any], specs: str = "train train") -> ReportComparison:
    sides = [
        Side(label=label, dataset=TOY, spec=spec, settings=ReadSettings(**settings))
        for label, spec, settings in zip("ab", specs.split(), (a, b), strict=True)
    ]
    return compare_sides(*sides, hosts=2)


def test_the_first_difference_is_there_by_id_and_by_name() -> None:
    text = text_of(parting_section(compared({"block": 2}, {"block": 3})).body)
    assert "a and b first differ at position 2 of 120." in text
    # Of three files, 3 in turn: 0 1 30 .. in blocks of 2, 0 1 2 .. in blocks of 3.
    expected = "2 30 toy-train.tfrecord-00001-of-00003__0 2 toy-train.tfrecord-00000-of-00003__2"
    assert expected in text
    assert "Why: from A to B block: 2 became 3" in text


def test_equal_orders_name_what_changed_without_effect() -> None:
    text = text_of(parting_section(compared({}, {"batch": 4})).body)
    assert "a and b: the same, the order of 120 examples." in text
    assert "without effect on the order: batch: none became 4" in text


def test_what_both_read_is_said() -> None:
    same = dataset_line(compared({}, {}))
    assert text_of(same) == "Both read train of toy:1.0.0 ."
    other = dataset_line(compared({}, {}, "train test"))
    assert "A reads train of toy:1.0.0" in text_of(other).replace(" ,", ",")


@pytest.mark.long
def test_an_order_that_is_known_to_blocks_alone_says_so() -> None:
    lengths = tuple(n**3 % 997 + 1 for n in range(20_000))  # pinned as hashes
    long = dataset_of({"train": lengths})
    sides = [
        Side(
            label=label,
            pinned=PinnedOrder(
                snapshot=snapshot(long, "train", {"block": block}).snapshot, label=label
            ),
        )
        for label, block in (("a", 2), ("b", 3))
    ]
    text = text_of(parting_section(compare_sides(*sides, hosts=2)).body)
    assert "A pins its layout or its file order as hashes" in text
    assert "blocks were compared, not every position" in text


def test_settings_that_differ_come_first_and_the_others_are_folded() -> None:
    body = settings_section(compared({"cycle": 2}, {"cycle": 3})).body
    shown, _, folded = body.partition("<details>")
    assert text_of(shown) == "Settings in force that are not the same setting A B cycle 2 3"
    assert "block 16 16" in text_of(f"<details>{folded}")
    equal = settings_section(compared({}, {})).body
    assert "Every setting in force has one value on both sides." in equal


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("file_order", ["b", "a"], "b, a"),
        ("host", "1/4", "1/4"),
        ("buffer", -2, "-2"),
        ("reshuffle", False, "false"),
        ("stages", [{"from": "mars"}], "[{from: mars}]"),
    ],
)
def test_values_are_written_as_a_file_has_them(setting: str, value: object, text: str) -> None:
    assert setting_text(setting, value) == text


def test_stages_are_their_line() -> None:
    text = "shuffle(9, seed=1) | cache | batch(4)"
    section = settings_section(compared({"stages": parse_stages(text)}, {"batch": 4}))
    assert text in text_of(section.body)
