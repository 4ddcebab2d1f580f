"""Where two orders part, and the sections of both: as the commands say, nothing left out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardctl.draw.picture import Rise
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.answer import PinnedOrder
from shardctl.verbs.report.compare import ReportComparison, Side, compare_sides
from shardctl.verbs.report.compared import (
    comparison_page,
    comparison_sections,
    parting_picture,
    setting_text,
)
from shardctl.verbs.report.shown import NotShown
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import dataset_of
from tests.verbs.report.reports import text_of

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def compared(a: dict[str, Any], b: dict[str, Any], specs: str = "train train") -> ReportComparison:
    sides = [
        Side(label=label, dataset=TOY, spec=spec, settings=ReadSettings(**settings))
        for label, spec, settings in zip("ab", specs.split(), (a, b), strict=True)
    ]
    return compare_sides(*sides, hosts=2)


def section(found: ReportComparison, anchor: str) -> str:
    sections = comparison_sections(found)
    return text_of(next("".join(one.body) for one in sections if one.anchor == anchor))


def test_the_answer_of_diff_is_there() -> None:
    text = section(compared({"block": 2}, {"block": 3}), "parting")
    assert "a and b first differ at position 2 of 120" in text
    # Of three files, 3 in turn: 0 1 30 .. in blocks of 2, 0 1 2 .. in blocks of 3.
    assert "> 2 30 2" in text
    assert "because: block: 2 became 3" in text


def test_equal_orders_name_what_changed_without_effect() -> None:
    text = section(compared({}, {"batch": 4}), "parting")
    assert "a and b: the same, the order of 120 examples" in text
    assert "without effect on the order: batch: none became 4" in text


def test_what_both_read_is_said() -> None:
    assert "Both read " in "".join(comparison_page(compared({}, {})))
    assert "A reads <code" in "".join(comparison_page(compared({}, {}, "train test")))


@pytest.mark.long
def test_an_order_that_is_known_to_blocks_alone_says_so() -> None:
    lengths = tuple(n**3 % 997 + 1 for n in range(20_000))  # pinned as hashes
    long = dataset_of({"train": lengths})
    taken = [snapshot(long, "train", {"block": block}).snapshot for block in (2, 3)]
    sides = [
        Side(label=label, pinned=PinnedOrder(snapshot=kept, label=label))
        for label, kept in zip("ab", taken, strict=True)
    ]
    found = compare_sides(*sides, hosts=2)
    text = section(found, "parting")
    assert "a pins its layout or its file order as hashes" in text
    assert "blocks were compared, not every position" in text
    assert "as hashes" in section(found, "hosts")


def test_a_strip_is_as_high_as_what_is_there() -> None:
    long = dataset_of({"train": (9_000, 9_000)})
    specs = ("train[:4100]+train[5000:]", "train[:4100]+train[5001:]")
    sides = [
        Side(label=spec, dataset=long, spec=spec, settings=ReadSettings(cycle=1)) for spec in specs
    ]
    picture = parting_picture(compare_sides(*sides, hosts=2))
    rise = picture.marks[0]
    assert isinstance(rise, Rise)
    # 4,096 of 17,100 positions are the same, all but one of the others are in blocks that differ.
    same = 4096 * len(rise.values) // 17_100
    assert rise.values == (0.25,) * same + (1.0,) * (len(rise.values) - same)
    assert picture.note == (
        "4,096 positions lie in blocks that hold the same examples, 13,003 in blocks with at least "
        "one difference, 1 are of one order alone."
    )


def test_settings_that_differ_come_first() -> None:
    text = section(compared({"cycle": 2}, {"cycle": 3}), "settings")
    assert text.startswith("cycle . Settings that are not the same setting A B cycle 2 3")
    assert "block 16 16" in text
    equal = section(compared({}, {}), "settings")
    assert equal.startswith("Every setting has one value on both sides.")


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
    assert text in section(compared({"stages": parse_stages(text)}, {"batch": 4}), "settings")


def test_scores_hosts_and_evaluations_are_those_of_each() -> None:
    found = compared({"batch": 4}, {"buffer": 10, "buffer_seed": 1, "batch": 20})
    text = section(found, "shuffle")
    for side in found.sides:
        assert not isinstance(side.quality, NotShown)
        assert f"The score is {side.quality.score.value:.4f} of 1" in text
    assert text.count("What other settings would score") == 2
    # Of 17 examples on 2 hosts 9 and 8: in batches of 4 the first makes 3 steps, the other 2.
    text = section(found, "evaluation")
    assert re.findall(r"Hangs at step (\d)", text) == ["2"]
    # Even splits give 60 and 60; whole files 30 + 50 and 40.
    assert "examples/ host 60 40–80" in section(found, "hosts").replace("s/host", "s/ host")


def test_what_one_of_them_lacks_says_why() -> None:
    found = compared({}, {"loader": "torch", "host": "0/2"})
    for anchor in ("shuffle", "hosts", "evaluation"):
        section(found, anchor)
    sides = [
        Side(label=label, dataset=data, spec="train", settings=ReadSettings())
        for label, data in (("a", dataset_of({"train": (1,)})), ("b", TOY))
    ]
    text = section(compare_sides(*sides, hosts=2), "shuffle")
    assert "A: a Not shown: the quality of an order needs 2 examples at least" in text
    assert "B: b No shuffle:" in text
