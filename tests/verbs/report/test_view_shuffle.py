"""Is it shuffled: the verdict with its figures, all metrics, and why a part is not there."""

from __future__ import annotations

from dataclasses import replace

from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.view import LABELS
from shardctl.verbs.report.shown import NotShown
from tests.verbs.report.reports import lacking, mnist, section, shared, text_of


def test_the_verdict_and_every_metric_are_there() -> None:
    made = shared()
    assert isinstance(made.quality, Quality)
    text = text_of(section(made, "shuffle"))
    assert f"The score is {made.quality.score.value:.4f} of 1;" in text
    for metric in made.quality.metrics:
        assert LABELS[metric.name] in text
        assert f"{metric.spread:.5f}" in text
    assert "Does most:" in text


def test_an_option_that_report_has_not_is_said_to_be_that_of_quality() -> None:
    text = text_of(section(mnist(), "shuffle"))
    assert "--example-bytes N says what it is (an option of shardctl quality )" in text
    assert text.count("an option of shardctl quality") == 1


def test_an_order_that_nobody_can_know_says_so() -> None:
    made = replace(mnist(), is_open="TensorFlow draws a seed")
    text = text_of(section(made, "shuffle"))
    assert "Nobody can know this order; what is shown is one order of many: TensorFlow" in text


def test_a_part_that_is_not_shown_says_why_once() -> None:
    text = text_of(section(lacking(), "shuffle"))
    assert text.count("Not shown: the quality of an order needs 2 examples") == 1
    made = replace(shared(), quality=NotShown(reason="none"), shard_map=NotShown(reason="no map"))
    assert text_of(section(made, "shuffle")) == "Not shown: none Not shown: no map"
    alone = section(replace(shared(), quality=NotShown(reason="none")), "shuffle")
    assert alone.count("<svg") == 1


def test_which_files_are_open() -> None:
    assert "<svg" in section(shared(), "open")
    made = replace(shared(), strips=NotShown(reason="nothing is read"))
    assert text_of(section(made, "open")).endswith("Not shown: nothing is read")


def test_what_slots_read_is_there_behind_a_buffer_too() -> None:
    made = shared()
    assert made.before_buffer is not None
    assert made.opened is not None
    html = section(made, "open")
    assert "What is read of the files, into the buffer" in html
    assert "What the shuffle buffer hands out" in html
    assert "Examples come from 2 files at a time." in text_of(html)  # of the two of host 0
    alone = section(mnist(), "open")
    assert "buffer" not in alone
    assert "Examples come from 1 file at a time. It is read to its end, before" in text_of(alone)
    assert "turns" not in alone
