"""The list of guides."""

from __future__ import annotations

from shardctl.guide.guides import guide_questions
from shardctl.rendering.guide.listing import guides_list
from shardctl.rendering.text.tables import PLAIN, Screen

QUESTIONS = {"keras": "Which order does Keras see?", "verify": "Is it so?"}


def test_each_guide_has_its_question() -> None:
    assert "".join(guides_list(QUESTIONS, PLAIN)).splitlines() == [
        "Guides, shown by shardctl help SUBJECT:",
        "  keras   Which order does Keras see?",
        "  verify  Is it so?",
    ]


def test_a_narrow_screen_gets_whole_words() -> None:
    lines = "".join(guides_list(QUESTIONS, Screen(width=30))).splitlines()
    assert lines[2:] == [
        "  keras   Which order does",
        "          Keras see?",
        "  verify  Is it so?",
    ]


def test_the_real_list_fits_forty_columns() -> None:
    text = "".join(guides_list(guide_questions(), Screen(width=40)))
    assert max(map(len, text.splitlines())) <= 40
    assert text.split() == "".join(guides_list(guide_questions(), PLAIN)).split()
