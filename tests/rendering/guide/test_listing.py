"""The list of guides."""

from __future__ import annotations

from shardctl.rendering.guide.listing import guides_table
from shardctl.rendering.text.tables import PLAIN, Screen

QUESTIONS = {"keras": "Which order does Keras see?", "verify": "Is it so?"}


def test_each_guide_has_its_question() -> None:
    assert "".join(guides_table(QUESTIONS, PLAIN)).splitlines() == [
        "Guides; shardctl help SUBJECT shows one:",
        "subject  question",
        "keras    Which order does Keras see?",
        "verify   Is it so?",
    ]


def test_it_fits_a_narrow_screen() -> None:
    text = "".join(guides_table(QUESTIONS, Screen(width=30)))
    assert max(map(len, text.splitlines())) <= 30
