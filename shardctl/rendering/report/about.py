"""What a report stands on: stand-ins, fingerprint, versions, and how to make it again."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import first_upper
from shardctl.core.tfds_rules import ORDER_RULES
from shardctl.files.head import own_version
from shardctl.planning.report.report import Report
from shardctl.rendering.report.again import again
from shardctl.rendering.report.elements import (
    Section,
    code,
    command,
    facts,
    items,
    paragraph,
    plain,
    sentence,
)


def about_section(report: Report) -> Section:
    """Return what was assumed, of what the report is, and the command that makes it again."""
    return Section(anchor="about", title="About this report", body="".join(_body(report)))


def _body(report: Report) -> Iterator[str]:
    if report.notes:
        yield "<h3>What was assumed</h3>\n"
        yield items(first_upper(sentence(note)) for note in report.notes)
    if report.warnings:
        yield "<h3>Worth knowing</h3>\n"
        yield items(first_upper(sentence(warning)) for warning in report.warnings)
    yield "<h3>Make it again</h3>\n"
    yield command(again(report.question))
    yield paragraph("The same input makes the same page, byte for byte.", "quiet")
    yield facts(_facts(report), "lines wide")


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "fingerprint of the dataset", code(report.dataset.fingerprint)
    yield "shardctl", plain(own_version())
    yield "rules of the order", plain(ORDER_RULES)
