"""A report as one HTML page that needs nothing else: no script, no network, nothing to install.

A section has the tables and pictures that the command of its answer shows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

from shardctl.base.columns import picked
from shardctl.base.text import counted, first_upper
from shardctl.base.tfds_rules import ORDER_RULES
from shardctl.draw.picture import SHEET, pictures_of
from shardctl.draw.step_rows import pipeline_record, settings_words
from shardctl.draw.tables import Column
from shardctl.files.documents import Document
from shardctl.metadata.project_file import NOWHERE, SettingOrigins
from shardctl.order.order import Order
from shardctl.order.shard_map import Strips
from shardctl.saved.head import head, own_version
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.config.answer import SettingInForce
from shardctl.verbs.config.view import origin_words, setting_record, value_words
from shardctl.verbs.eval.answer import Evaluation
from shardctl.verbs.eval.view import advice as advice_of_evaluation
from shardctl.verbs.eval.view import call_of, eval_document, way_cells
from shardctl.verbs.hosts.answer import HostsPlan, advice, problems, reason, spread
from shardctl.verbs.hosts.view import hosts_document, measure_cells
from shardctl.verbs.layout.answer import Layout
from shardctl.verbs.layout.view import LEGEND, size_record, split_cells
from shardctl.verbs.lint.answer import Finding, Lint
from shardctl.verbs.lint.rule import SEVERITIES
from shardctl.verbs.lint.view import lint_document
from shardctl.verbs.quality import view as quality_view
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.compare_loaders import LoaderComparison
from shardctl.verbs.quality.metrics import FAIR, MIXED, meaning
from shardctl.verbs.report import elements as html
from shardctl.verbs.report.answer import NotShown, Report, Shown
from shardctl.verbs.simulate.view import strips_picture

_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "value", "source"))


def report_page(report: Report) -> Iterator[str]:
    """Yield the page of a report; the same report gives the same bytes."""
    yield html.page(
        title=f"{report.dataset.title}, {report.spec}",
        heading=f"{html.name(report.dataset.title)}, {html.name(report.spec)}",
        kind="How this dataset is read, and in which order",
        more=_pipeline(report),
        sections=report_sections(report),
    )


def report_body(report: Report) -> str:
    """Return the page for a notebook."""
    title = f"Report of {report.dataset.title}, {report.spec}"
    return html.in_frame(title, repr(report)[1:-1], "".join(report_page(report)))


class Topic(NamedTuple):
    """A question about a pipeline: its section, and its card where it has one.

    answer: None where nothing was asked.
    """

    anchor: str
    question: str
    answer: Any
    body: Callable[[Any], Iterable[str]]
    card: Callable[[Any], Card] | None = None


def report_sections(report: Report) -> list[html.Section]:
    """Return the sections in the order of a newcomer's questions, of what was asked for alone."""
    lint: Any = report.lint
    is_sound = isinstance(lint, Lint) and not lint.findings
    if is_sound and isinstance(report.order, NotShown):
        lint, is_sound = report.order, False  # what has no order is not sound
    in_step = "Do all hosts run the same number of steps?"
    topics = [
        Topic("shuffle", "Is it shuffled?", report.quality, quality_body, _shuffled),
        Topic("files", "Which files are read when?", report.strips, partial(_files, report.order)),
        Topic("hosts", in_step, report.hosts, _hosts, _in_step),
        Topic("evaluation", "Will the evaluation hang?", report.evaluation, _evaluation, _hangs),
        Topic("loaders", "How would other loaders read it?", report.loaders, _loaders),
        Topic("findings", "What does lint find?", lint, _lint, _wrong),
        Topic("data", "Dataset and settings", report, _data),
    ]
    asked = [topic for topic in topics if topic.answer is not None]
    # Where lint finds nothing its card says so, and a section would be empty.
    shown = [topic for topic in asked if not (is_sound and topic.answer is lint)]
    body = cards(
        *(
            # An empty anchor for a card without a section: no link.
            (topic.question, topic.anchor * (topic in shown), _card(topic.answer, topic.card))
            for topic in asked
            if topic.card
        )
    )
    notes = remarks((*report.notes, *report.warnings))
    return [
        html.Section("summary", "In short", (body, notes)),
        *(html.Section(one.anchor, one.question, html.part(one.answer, one.body)) for one in shown),
    ]


def _pipeline(report: Report) -> str:
    """Return what shapes the order, in words."""
    order, said = report.order, ""
    if not isinstance(order, NotShown):
        said = f"{counted(order.epoch_size, 'example')}"
        # Several epochs, or a last batch that is dropped.
        if order.num_examples != order.epoch_size:
            said += f" an epoch, {order.num_examples:,} in all"
        said += f": {settings_words(pipeline_record(order))}"
        said += "".join(f" Assumed: {text}" for text in order.assumptions)
    if report.is_open is not None:
        shown = ". The pictures show one of the possible orders." * bool(said)
        said += f"{'. ' * bool(said)}The order is nondeterministic: {report.is_open}{shown}"
    return html.sentence(said)


def _data(report: Report) -> Iterator[str]:
    dataset = report.dataset
    pairs = (
        ("dataset", html.name(dataset.title)),
        ("split or slice", html.code(report.spec)),
        ("file format", html.plain(dataset.file_format)),
        ("source", html.name(dataset.data_dir or dataset.origin)),
    )
    yield html.facts(pairs)
    yield from html.part(report.layout, _layout)
    chosen = [item for item in report.in_force if item.origin.source != "default"]
    others = [item for item in report.in_force if item.origin.source == "default"]
    yield _settings(f"{counted(len(chosen), 'setting')} you set, or that follow from these", chosen)
    yield _settings(f"{counted(len(others), 'setting')} at their defaults", others)
    versions = f"shardctl {html.plain(own_version())}, order rules {html.plain(ORDER_RULES)}"
    fingerprint = html.code(dataset.fingerprint)
    yield html.paragraph(f"{versions}, dataset fingerprint {fingerprint}", "quiet")


def remarks(lines: Iterable[str]) -> str:
    """Return what is assumed, and warnings, as a list."""
    return html.items((first_upper(html.sentence(line)) for line in lines), "quiet")


def _layout(layout: Layout) -> Iterator[str]:
    """Yield how large shards are; as a picture where one is highlighted."""
    yield html.figures([one for one in pictures_of(layout) if one.warnings])
    yield html.table(
        "Splits, and how many examples a shard has", *split_cells(layout), more=[LEGEND]
    )


def _settings(caption: str, settings: list[SettingInForce]) -> str:
    rows = ((item.name, value_words(item), origin_words(item.origin)) for item in settings)
    return html.table(caption, _SETTINGS, rows, kind="said") if settings else ""


def _evaluation(evaluation: Evaluation) -> Iterator[str]:
    """Yield the steps of every host, and what cures a hang."""
    yield html.paragraph(
        f"{html.code(evaluation.spec)}: {counted(evaluation.total, 'example')} on "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"in batches of {evaluation.device_batch:,} a device, {evaluation.host_batch:,} a host.",
        "lead",
    )
    if evaluation.refusal is not None:
        refused = f"<strong>Refused:</strong> {html.sentence(evaluation.refusal)}."
        yield html.paragraph(f"{refused} The rest shows what the hosts would do.")
    yield html.figures(pictures_of(evaluation))
    # Advice that begins with a call of Python shows it as code.
    call = call_of(evaluation)
    yield html.items(
        first_upper(html.sentence(line))
        if not line.startswith(call)
        else f"{html.code(call)}{html.sentence(line.removeprefix(call))}"
        for line in advice_of_evaluation(evaluation)
    )
    yield html.table("Incomplete batches", *way_cells(evaluation), more=["* as set up here"])


def _hosts(plan: HostsPlan) -> Iterator[str]:
    """Yield what hosts read as it is set up and in the recommended way, and all ways in figures."""
    comparison = plan.comparisons[0]
    best = comparison.recommended
    named = "none" if best is None else html.plain(best.name)
    several = len(comparison.strategies) > 1
    recommended = f"<strong>Recommended: {named}.</strong> " if several else ""
    yield html.paragraph(f"{recommended}{first_upper(html.sentence(reason(comparison)))}.", "lead")
    # A picture of each way, in the same order; a single one where nothing is read.
    pictures = zip(pictures_of(plan), comparison.strategies, strict=False)
    yield html.figures([one for one, way in pictures if way is best or way.name == plan.judged])
    yield html.table("Ways to share the files", *measure_cells(plan))
    yield html.items(map(html.sentence, advice(comparison, plan.settings)))


def _lint(lint: Lint) -> Iterator[str]:
    looked = ", ".join(
        f"{html.code(read.spec)} (evaluation)" if read.evaluates else html.code(read.spec)
        for read in lint.context.reads
    )
    found = counted(len(lint.findings), "finding")
    example = html.code(f"shardctl lint --explain {lint.findings[0].rule.code}")
    yield html.paragraph(f"{counted(len(lint.rules), 'check')} of {looked}: {found}.")
    # With one spec a finding need not name it.
    several = len(lint.context.reads) > 1
    findings = (_finding(one, names_specs=several) for one in lint.findings)
    yield f'<ul class="findings">\n{"".join(findings)}</ul>\n'
    yield html.paragraph(f"{example} explains a finding.")


def _finding(finding: Finding, *, names_specs: bool) -> str:
    lines = [("why", html.sentence(finding.why)), ("fix", html.sentence(finding.fix))]
    if finding.specs and names_specs:
        lines.append(("in", ", ".join(map(html.code, finding.specs))))
    return (
        f'<li class="{finding.severity}">\n'
        f'<h3><span class="severity">{first_upper(finding.severity)}</span> '
        f"{html.plain(finding.rule.code)}: {html.plain(finding.rule.title)}</h3>\n"
        f"{html.facts(lines, 'lines')}</li>\n"
    )


def _loaders(plan: LoaderComparison) -> Iterator[str]:
    hosts = "" if plan.num_hosts == 1 else f", {counted(plan.num_hosts, 'host')}"
    yield html.paragraph(
        f"{counted(plan.num_examples, 'example')} in {counted(plan.num_shards, 'shard')}, "
        f"batches of {plan.batch:,}{hosts}.",
        "lead",
    )
    yield html.figures(pictures_of(plan))
    refused = (way for way in plan.ways if way.refused is not None)
    yield html.items(html.sentence(f"{way.reader}: {way.refused}") for way in refused)
    if any(way.refused is None for way in plan.ways):
        legend = f"{first_upper(quality_view.mixing_legend(plan))}."
        yield html.table(
            "How each mixes, and how it ends", *quality_view.mixing_cells(plan), more=[legend]
        )
        yield html.table("How each resumes", *quality_view.going_on_cells(plan), kind="said")


def quality_body(quality: Quality) -> Iterator[str]:
    """Yield how close the order is to a uniform permutation, and what would bring it closer."""
    score, error = quality.score, quality.score.sampling_error
    measured = "" if error is None else f" ± {error:.4f}"
    yield html.paragraph(
        f"<strong>{html.plain(first_upper(quality.verdict))}:</strong> score {score.value:.4f}"
        f"{measured}. A uniform permutation scores {score.expected:.4f} ± {score.spread:.4f}. "
        f"{html.plain(quality_view.why(quality))}.",
        "lead",
    )
    yield html.figures(pictures_of(quality))
    lines = (
        *(["* not part of the score"] * any(m.scale == "shown" for m in quality.metrics)),
        quality_view.measured_line(quality),
        quality_view.epochs_line(quality),
        *quality_view.memory_lines(quality),
    )
    cells = quality_view.metric_cells(quality)
    yield html.table("How the score is made up", *cells, more=map(first_upper, lines))


def _files(order: Shown[Order], strips: Strips) -> Iterator[str]:
    """Yield which files are read when, before a buffer where there is one."""
    assert isinstance(order, Order)  # of which the strips are
    reading = order.before_buffer or order
    if reading.has_blocks:
        settings = reading.settings
        # No more files are open at a time than there are.
        files = min(settings.cycle_length(ordered=reading.dataset.ordered), len(reading.reads))
        how = "Files are read one after another."
        if files > 1:
            how = f"{files:,} files are read in turn, {counted(settings.block, 'example')} each."
        yield html.paragraph(how + " A shuffle buffer then mixes them." * (reading is not order))
    yield html.figures([strips_picture(strips, reading, SHEET)])


# What a report comes to, in a few answers with links to what they are made of.

Worth = Literal["good", "warn", "bad", "open"]

_MOST_FINDINGS = 3


class Card(NamedTuple):
    """An answer in a word or two, what it is worth, and more of it, as HTML.

    red: the threshold behind an answer in red, which the page names; empty for no red.
    """

    answer: str
    worth: Worth
    more: str
    red: str = ""


def cards(*answers: tuple[str, str, Card]) -> str:
    """Return answers as cards: each a question, the section that has more, the answer."""
    listed = "".join(
        f'<li class="{card.worth}">\n'
        f"<h3>{html.link(anchor, question) if anchor else question}</h3>\n"
        f'<p class="answer">{html.plain(card.answer)}</p>\n{card.more}</li>\n'
        for question, anchor, card in answers
    )
    red = ", ".join(card.red for *_, card in answers if card.red)
    legend = html.paragraph(f"Red means: {red}.", "quiet") if red else ""
    return f'<ul class="answers">\n{listed}</ul>\n{legend}'


def _card(part: Any, card: Callable[[Any], Card]) -> Card:
    if isinstance(part, NotShown):
        return Card("Not known", "open", html.paragraph(html.sentence(part.reason)))
    return card(part)


def _shuffled(quality: Quality) -> Card:
    score, verdict = quality.score, quality.verdict
    said = [f"score {score.value:.2f} of 1: {meaning(verdict, quality.order)}"]
    if verdict not in MIXED and len(quality.alternatives) > 1:
        said.append(quality_view.best_line(quality))
    if verdict in MIXED:
        worth: Worth = "open" if verdict == "cannot tell" else "good"
        return Card(first_upper(verdict), worth, sentences(*said))
    if score.value < FAIR:
        return Card(first_upper(verdict), "bad", sentences(*said), f"a score below {FAIR}")
    return Card(first_upper(verdict), "warn", sentences(*said))


def _in_step(plan: HostsPlan) -> Card:
    comparison = plan.comparisons[0]
    own = comparison.strategy(plan.judged)
    best = comparison.recommended
    other = [] if best is None or best is own else [f"Recommended: {best.name}"]
    if own.refusal is not None:
        return Card("Refused", "bad", sentences(own.refusal, *other), "what TFDS refuses to read")
    # Steps are batches, or without --batch single examples.
    most = own.num_batches or own.num_examples
    unit = "examples" if own.num_batches is None else "batches"
    said = [f"{comparison.num_hosts:,} hosts, {spread(most)} {unit} each"]
    said += problems(comparison, own.name)
    if own.idle_hosts:
        return Card("No", "bad", sentences(*said, *other), "a host without examples")
    return (
        Card("No", "warn", sentences(*said, *other))
        if own.is_uneven
        else Card("Yes", "good", sentences(*said))
    )


def _hangs(evaluation: Evaluation) -> Card:
    said = sentences(*advice_of_evaluation(evaluation)[: 1 + bool(evaluation.num_lost)])
    if not evaluation.total:
        return Card("Nothing to do", "warn", said)
    if evaluation.refusal is not None:
        refused = "an evaluation that TFDS refuses"
        return Card("Refused", "bad", sentences(evaluation.refusal), refused)
    if evaluation.hang(evaluation.remainder) is not None:
        return Card("Yes", "bad", said, "an evaluation that hangs")
    steps = int(evaluation.num_steps(evaluation.remainder).max())
    on_all = f"{counted(steps, 'step')} on each of {counted(evaluation.num_hosts, 'host')}"
    return Card("No", "warn" if evaluation.num_lost else "good", sentences(on_all) + said)


def sentences(*lines: str) -> str:
    """Return each line as a sentence in a paragraph."""
    return "".join(html.paragraph(f"{first_upper(html.sentence(line))}.") for line in lines)


def _wrong(lint: Lint) -> Card:
    counts = Counter(finding.severity for finding in lint.findings)
    if not counts:
        return Card("No problems", "good", sentences(f"{counted(len(lint.rules), 'check')} passed"))
    said = ", ".join(counted(counts[name], name) for name in SEVERITIES if counts[name])
    titles = list(dict.fromkeys(finding.rule.title for finding in lint.findings))
    # Two findings of one rule are one title.
    few, more = titles[:_MOST_FINDINGS], len(titles) - _MOST_FINDINGS
    few += [f"{more} more"] if more > 0 else []
    listed = html.items(html.plain(first_upper(title)) for title in few)
    if counts["error"]:
        return Card(said, "bad", listed, "an error that lint finds")
    return Card(said, "warn", listed)


# A report as a document: what it is about, then each part as its own command writes it.

_STRIPS = "start stop is_cut visits"


def report_document(report: Report) -> Document:
    """Return the document: a part that cannot be shown is `{not_shown: why}`.

    Shards are not listed one by one, which `layout` does.
    """
    quality, order = report.quality, report.order
    assumptions = () if isinstance(order, NotShown) else order.assumptions
    has_no_order = report.is_open is None and isinstance(order, NotShown)
    return {
        **head("report", report.dataset.identity, assumptions=assumptions),
        "spec": report.spec,
        "pipeline": settings_in_force(report.settings, ordered=report.dataset.ordered),
        **picked(report, "num_examples num_hosts num_devices"),
        "predictable": None if has_no_order else report.is_open is None,
        "open": report.is_open,
        "assumed": dict(quality.assumed) if isinstance(quality, Quality) else {},
        "settings": [setting_record(item) for item in report.in_force],
        **picked(report, "notes warnings"),
        "layout": part_document(report.layout, _layout_document),
        "strips": part_document(report.strips, lambda found: picked(found, _STRIPS)),
        "quality": part_document(quality, quality_view.quality_document),
        "hosts": part_document(report.hosts, hosts_document),
        "eval": part_document(report.evaluation, eval_document),
        "lint": part_document(report.lint, lambda lint: lint_document(lint, origins_of(report))),
        "loaders": part_document(report.loaders, quality_view.loaders_document),
    }


def origins_of(report: Report) -> SettingOrigins:
    """Return where shardctl.yaml has the settings that it decides, for those who look at them."""
    decided = [item for item in report.in_force if item.origin.source == "file"]
    lines = {
        item.name.rpartition(".")[2]: item.origin.line
        for item in decided
        if item.origin.line is not None
    }
    file = next((item.origin.file for item in decided), None)
    return NOWHERE if file is None else SettingOrigins(file=os.path.relpath(file), lines=lines)


def part_document(part: Any, document: Callable[[Any], Document]) -> Document | None:
    """Return the document of a part of a report, or why it is not there; None if not asked for."""
    if isinstance(part, NotShown):
        return {"not_shown": part.reason}
    return None if part is None else document(part)


def _layout_document(layout: Layout) -> Document:
    splits = ({**size_record(split), **picked(split, "balance")} for split in layout.splits)
    return {"splits": list(splits)}
