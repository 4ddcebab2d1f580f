"""Findings: why and what helps, the worst first; options in them are code."""

from __future__ import annotations

from dataclasses import replace

from shardctl.verbs.lint.answer import Lint, lint
from shardctl.verbs.report.shown import NotShown
from tests.verbs.report.reports import mnist, section, shared, text_of


def test_every_finding_says_why_and_what_helps() -> None:
    made = shared()
    assert isinstance(made.lint, Lint)
    assert made.lint.findings
    html = section(made, "findings")
    for finding in made.lint.findings:
        assert f'<li class="{finding.severity}">' in html
        assert finding.rule.code in html
        for words in (finding.why, finding.fix):
            assert "".join(words.split()) in "".join(text_of(html).split())
    assert f"shardctl lint --explain {made.lint.findings[0].rule.code}" in html


def test_findings_are_counted() -> None:
    made = replace(mnist(), lint=lint("mnist", "train", {"shuffle_seed": 1}, select=["SC004"]))
    text = text_of(section(made, "findings"))
    assert text.startswith("1 rule looked at train , and made 1 finding. ")


def test_nothing_found() -> None:
    made = replace(mnist(), lint=lint("mnist", "train", {"shuffle_seed": 1}, select=["SC041"]))
    assert text_of(section(made, "findings")) == "1 rule looked at train , and found nothing."


def test_lint_that_is_not_shown() -> None:
    made = replace(mnist(), lint=NotShown(reason="two numbers of hosts"))
    assert text_of(section(made, "findings")) == "Not shown: two numbers of hosts"
