"""What the report is made of: stand-ins, the dataset's fingerprint, versions, how to make it again."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.tfds_rules import ORDER_RULES
from shardctl.planning.report.report import Report
from shardctl.rendering.report.elements import Section, code, facts, items, paragraph, plain, sentence


def about_section(report: Report) -> Section:
    """Return what was assumed, of what the report is, and the command that makes it again."""
    return Section(anchor="about", title="About this report", body="".join(_body(report)))


def _body(report: Report) -> Iterator[str]:
    if report.notes:
        yield "<h3>What was assumed</h3>\n"
        yield items(map(sentence, report.notes))
    yield "<h3>Make it again</h3>\n"
    yield f"<pre>{code(report.again)}</pre>\n"
    yield paragraph("The same input makes the same page, byte for byte.", "quiet")
    yield facts(_facts(report))


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    from shardctl import __version__

    yield "fingerprint of the dataset", code(report.dataset.fingerprint)
    yield "shardctl", plain(__version__)
    yield "rules of the order", plain(ORDER_RULES)
