"""Findings as text for people, a document, rows or GitHub annotations; rules and their stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from shardctl.base.columns import RecordStream, picked, records_of, stream_of
from shardctl.base.text import counted
from shardctl.draw import tables
from shardctl.files.documents import Document
from shardctl.metadata.project_file import NOWHERE, SettingOrigins
from shardctl.saved.head import head, kind_head
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.lint.answer import Finding, Lint
from shardctl.verbs.lint.rule import SEVERITIES, Rule

_RULE = "code name severity title"


def lint_table(
    lint: Lint, origins: SettingOrigins, screen: tables.Screen, *, fix: str = ""
) -> Iterator[str]:
    """Yield what was looked at, then each finding: what it is, why it matters, what helps.

    fix: the command that changes what has one right answer, where there is such a finding.
    """
    yield tables.paragraph(_title(lint), screen, style="bold")
    for finding in lint.findings:
        # The line of shardctl.yaml that sets it, if one does.
        place = origins.in_words(finding.settings)
        yield "\n"
        headline = f"{finding.rule.code} {finding.severity}: {finding.rule.title}{place}"
        yield tables.paragraph(headline, screen, style=finding.severity)
        yield from tables.indented(f"why: {finding.why}", screen)
        yield from tables.indented(f"fix: {finding.fix}", screen)
    if lint.findings:
        code = lint.findings[0].rule.code
        yield "\n"
        yield from tables.to_paste(f"{code} in detail", f"shardctl lint --explain {code}", screen)
    if fix:
        yield from tables.to_paste("change what has one right answer in shardctl.yaml", fix, screen)


def _title(lint: Lint) -> str:
    context = lint.context
    specs = ", ".join(
        f"{read.spec} (evaluation)" if read.evaluates else read.spec for read in context.reads
    )
    looked_at = f"{specs} in {context.dataset.title}"
    if not lint.findings:
        return f"{looked_at}: {counted(len(lint.rules), 'check')} passed"
    counts = Counter(finding.severity for finding in lint.findings)
    said = ", ".join(counted(counts[name], name) for name in SEVERITIES if counts[name])
    return f"{looked_at}: {said}"


def lint_document(lint: Lint, origins: SettingOrigins = NOWHERE) -> Document:
    """Return what was looked at, the rules that looked, and what they found."""
    context = lint.context
    return {
        **head("lint", context.dataset.identity),
        "specs": [picked(read, "spec evaluates num_examples") for read in context.reads],
        "pipeline": settings_in_force(context.as_written, ordered=context.dataset.ordered),
        "usage": context.usage_in_force(),
        "rules": [rule.code for rule in lint.rules],
        "findings": [_finding_record(finding, origins) for finding in lint.findings],
    }


def _finding_record(finding: Finding, origins: SettingOrigins) -> Document:
    file, line = origins.place(finding.settings)
    rule = "code=rule.code name=rule.name severity title=rule.title"
    return {**picked(finding, f"{rule} specs why fix settings"), "file": file, "line": line}


def lint_rows(lint: Lint, origins: SettingOrigins = NOWHERE) -> RecordStream:
    """Return a row a finding; the specs are one cell, blanks between."""
    fields = "code severity title specs why fix file line"
    records = [_finding_record(finding, origins) for finding in lint.findings]
    rows = [{**record, "specs": " ".join(record["specs"])} for record in records]
    return stream_of(fields, list(map(itemgetter(*fields.split()), rows)))


def lint_annotations(lint: Lint, origins: SettingOrigins) -> Iterator[str]:
    """Yield an annotation for GitHub a finding, at the line of the setting it is about."""
    for finding in lint.findings:
        file, line = origins.place(finding.settings)
        rule, text = finding.rule, f"{finding.rule.title}: {finding.why}\nfix: {finding.fix}"
        yield tables.annotation(finding.severity, text, title=rule.code, file=file, line=line)


def rules_table(
    rules: Sequence[Rule], screen: tables.Screen, *, stories: bool = False
) -> Iterator[str]:
    """Yield a line a rule, or its whole text."""
    if stories:
        for rule in rules:
            yield from story_text(rule, screen)
        return
    shown = tables.columns("<code <severity <finding")
    rows = [(rule.code, tables.Cell(rule.severity, rule.severity), rule.title) for rule in rules]
    yield tables.table(shown, rows, screen)


def rules_document(rules: Sequence[Rule]) -> Document:
    """Return rules and their stories."""
    return {
        **kind_head("lint"),
        "rules": [{**picked(rule, _RULE), **vars(rule.story)} for rule in rules],
    }


def rules_rows(rules: Sequence[Rule]) -> RecordStream:
    """Return a row a rule."""
    return records_of(_RULE, rules)


def story_text(rule: Rule, screen: tables.Screen) -> Iterator[str]:
    """Yield the text of a rule: what happens and why, what helps, where it was seen."""
    headline = f"{rule.code} {rule.name} ({rule.severity}): {rule.title}"
    yield tables.paragraph(headline, screen, style=rule.severity)
    for text in rule.story.happens.split("\n\n"):
        yield "\n"
        yield tables.paragraph(text, screen)
    for heading, text in (
        ("What helps", rule.story.fix),
        ("Where it was seen", rule.story.source),
        ("Example", ""),
    ):
        yield "\n"
        yield tables.paragraph(f"{heading}:", screen, style="bold")
        yield from tables.indented(text, screen) if text else [f"  {rule.story.example}\n"]
