"""What hosts read: the three ways side by side, which serves best, what TFDS refuses."""

from __future__ import annotations

from dataclasses import replace

from shardctl.verbs.report.shown import NotShown
from tests.verbs.report.reports import lacking, section, shared, text_of


def test_the_ways_to_share_side_by_side() -> None:
    text = text_of(section(shared(), "hosts"))
    # 36 examples are 18 and 18; of files in turn 20 and 16, which are 5 and 4 batches of 4.
    assert "measure even files examples" in text
    assert "examples/ host 18 16–20 18" in text.replace("examples/host", "examples/ host")
    assert "batches/ host 5 4–5 5" in text.replace("batches/host", "batches/ host")
    assert "Serves best: even." in text


def test_a_refusal_is_told() -> None:
    assert "even: TFDS refuses" in text_of(section(lacking(), "hosts"))


def test_hosts_that_are_not_shown() -> None:
    made = replace(shared(), hosts=NotShown(reason="stages share"))
    assert text_of(section(made, "hosts")) == "Not shown: stages share"
