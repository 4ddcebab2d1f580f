"""What the linter found: why it matters, and what helps."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted, first_upper
from shardctl.planning.lint.lint import Finding, Lint
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.report.elements import (
    Section,
    code,
    facts,
    not_shown,
    paragraph,
    plain,
    sentence,
)


def findings_section(report: Report) -> Section:
    """Return what goes wrong, the worst first."""
    lint = report.lint
    body = not_shown(lint) if isinstance(lint, NotShown) else "".join(_body(lint))
    return Section(anchor="findings", title="What goes wrong?", body=body)


def _body(lint: Lint) -> Iterator[str]:
    looked = ", ".join(
        f"{code(read.spec)} (evaluation)" if read.evaluates else code(read.spec)
        for read in lint.context.reads
    )
    num = len(lint.findings)
    found = f"and made {counted(num, 'finding')}" if num else "and found nothing"
    yield paragraph(f"{counted(len(lint.rules), 'rule')} looked at {looked}, {found}.")
    if not lint.findings:
        return
    listed = "".join(_finding(number, one) for number, one in enumerate(lint.findings))
    yield f'<ul class="findings">\n{listed}</ul>\n'
    example = code(f"shardctl lint --explain {lint.findings[0].rule.code}")
    yield paragraph(f"{example} tells the whole story.")


def _finding(number: int, finding: Finding) -> str:
    told = [
        ("why", sentence(finding.why)),
        ("what helps", sentence(finding.fix)),
    ]
    if finding.specs:
        told.append(("in", ", ".join(map(code, finding.specs))))
    title = f"{plain(finding.rule.code)}: {plain(finding.rule.title)}"
    return (
        f'<li class="{finding.severity}" id="finding-{number}">\n'
        f'<h3><span class="severity">{first_upper(finding.severity)}</span> '
        f"{title}</h3>\n{facts(told, 'lines')}</li>\n"
    )
