"""What a report stands on: stand-ins, warnings, fingerprint, versions, the command."""

from __future__ import annotations

from dataclasses import replace

import shardctl
from tests.verbs.report.reports import mnist, section, shared, text_of


def test_what_was_assumed_and_how_to_make_it_again() -> None:
    made = replace(mnist(), warnings=("that is odd",))
    html = section(made, "about")
    text = text_of(html)
    assert "Nobody said how many hosts read: 8 are shown side by side" in text
    assert "That is odd" in text
    assert "shardctl report -d mnist:3.0.1 -o report.html" in text
    assert made.dataset.fingerprint in text
    rules = "rules of the order 1 (TensorFlow 2.16 to 2.21, TFDS 4.9.4 to 4.9.10)"
    assert f"shardctl {shardctl.__version__} {rules}" in text


def test_nothing_assumed_is_not_mentioned() -> None:
    made = replace(shared(), notes=(), warnings=())
    assert "assumed" not in section(made, "about")
