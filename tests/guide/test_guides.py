"""Every guide asks its question, keeps to its size, and leads to guides that are there."""

from __future__ import annotations

import re

import pytest

from shardctl.base.text import inert
from shardctl.guide.guides import guide_questions, read_guide

each_guide = pytest.mark.parametrize("subject", guide_questions())
_MAIN_SUBJECTS = {
    "subsplits", "orders", "shuffling", "resume", "keras", "hosts", "evaluation",
    "snapshots-in-ci", "verify", "python",
}  # fmt: skip


def test_the_subjects_are_there_in_order() -> None:
    subjects = list(guide_questions())
    assert subjects == sorted(subjects)
    assert set(subjects) >= _MAIN_SUBJECTS


@each_guide
def test_a_guide_begins_with_its_question(subject: str) -> None:
    guide = read_guide(subject)
    first, second, third = guide.text.split("\n")[:3]
    assert first == f"# {guide.question}"
    assert guide.question.endswith("?")
    assert len(guide.question) <= 72
    assert second == ""
    assert third[:1].isalpha() or third[:1] == "`"  # words before the first section
    assert guide.text.endswith("\n")
    assert guide.question == guide_questions()[subject]


@each_guide
def test_a_guide_is_read_in_one_go(subject: str) -> None:
    text = read_guide(subject).text
    assert 1_500 < len(text.encode()) < 12_000
    prose = re.sub(r"```.*?```", "", text, flags=re.S).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []


@each_guide
def test_its_links_lead_to_guides(subject: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", read_guide(subject).text)
    guides = [link for link in links if not link.startswith("https://")]
    assert [link for link in guides if link.removesuffix(".md") not in guide_questions()] == []


@each_guide
def test_no_line_is_a_command_to_a_runner_of_ci(subject: str) -> None:
    text = read_guide(subject).text
    assert inert(text) == text
