"""Findings: why and what helps, the worst first; options in them are code."""

from __future__ import annotations

from dataclasses import replace

from shardctl.planning.lint.lint import Lint, lint
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.report.page import findings_section
from tests.rendering.report.reports import mnist, shared, text_of


def test_every_finding_says_why_and_what_helps() -> None:
    made = shared()
    assert isinstance(made.lint, Lint)
    assert made.lint.findings
    html = findings_section(made).body
    for number, finding in enumerate(made.lint.findings):
        assert f'class="{finding.severity}" id="finding-{number}"' in html
        assert finding.rule.code in html
        for words in (finding.why, finding.fix):
            assert "".join(words.split()) in "".join(text_of(html).split())
    assert f"shardctl lint --explain {made.lint.findings[0].rule.code}" in html


def test_findings_are_counted() -> None:
    made = replace(mnist(), lint=lint("mnist", "train", {"shuffle_seed": 1}, select=["SC004"]))
    text = text_of(findings_section(made).body)
    assert text.startswith("1 rule looked at train , and made 1 finding. ")


def test_nothing_found() -> None:
    made = replace(mnist(), lint=lint("mnist", "train", {"shuffle_seed": 1}, select=["SC041"]))
    assert text_of(findings_section(made).body) == "1 rule looked at train , and found nothing."


def test_lint_that_is_not_shown() -> None:
    made = replace(mnist(), lint=NotShown(reason="two numbers of hosts"))
    assert text_of(findings_section(made).body) == "Not shown: two numbers of hosts"
