"""A report as one HTML page that needs nothing else: no script, no network, nothing to install.

A section has the tables and pictures that the command of its answer shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from shardctl.base.text import counted, first_upper
from shardctl.base.tfds_rules import ORDER_RULES
from shardctl.draw.picture import SHEET, pictures_of
from shardctl.draw.step_rows import pipeline_record, settings_words
from shardctl.draw.tables import Column
from shardctl.order.order import Order
from shardctl.order.shard_map import Strips
from shardctl.saved.head import own_version
from shardctl.verbs.config.answer import SettingInForce
from shardctl.verbs.config.view import origin_words, value_words
from shardctl.verbs.eval.answer import Evaluation
from shardctl.verbs.eval.view import advice as advice_of_evaluation
from shardctl.verbs.eval.view import call_of, way_cells
from shardctl.verbs.hosts.answer import HostsPlan, advice, problems, reason, spread
from shardctl.verbs.hosts.view import measure_cells
from shardctl.verbs.layout.answer import Layout
from shardctl.verbs.layout.view import LEGEND, split_cells
from shardctl.verbs.lint.answer import Finding, Lint
from shardctl.verbs.lint.rule import SEVERITIES
from shardctl.verbs.quality import view as quality_view
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.loaders import LoaderComparison
from shardctl.verbs.quality.metrics import Verdict, meaning
from shardctl.verbs.quality.picture import order_picture
from shardctl.verbs.report import elements as html
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.elements import name, part
from shardctl.verbs.report.question import NotShown
from shardctl.verbs.simulate.picture import strips_picture

_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "value", "origin"))


def report_page(report: Report) -> Iterator[str]:
    """Yield the page of a report; the same report gives the same bytes."""
    yield html.page(
        title=f"{report.dataset.title}, {report.spec}",
        heading=f"{name(report.dataset.title)}, {name(report.spec)}",
        kind="How this dataset is read, and in which order",
        more=_pipeline(report),
        sections=report_sections(report),
    )


def report_body(report: Report) -> str:
    """Return the page for a notebook."""
    title = f"Report of {report.dataset.title}, {report.spec}"
    return html.in_frame(title, repr(report)[1:-1], "".join(report_page(report)))


def report_sections(report: Report) -> list[html.Section]:
    """Return the sections in the order of a newcomer's questions."""
    loaders = report.loaders
    found = (
        summary_section(report),
        html.Section("data", "What is read, and how", _data(report)),
        html.Section("shuffle", "Is it shuffled?", _shuffle(report)),
        html.Section("open", "Which files are open when?", _open(report)),
        html.Section("hosts", "What does each host read?", part(report.hosts, hosts_body)),
        html.Section(
            "evaluation", "Does the evaluation end?", part(report.evaluation, evaluation_body)
        ),
        None
        if loaders is None
        else html.Section("loaders", "How would other loaders read it?", part(loaders, _loaders)),
        html.Section("findings", "What goes wrong?", part(report.lint, _findings)),
        html.Section("about", "About this report", _about(report)),
    )
    return [section for section in found if section is not None]


def _pipeline(report: Report) -> str:
    """Return what shapes the order, in words."""
    order = report.order
    if isinstance(order, NotShown):
        return ""
    count = counted(order.epoch_size, "example")
    if order.num_examples != order.epoch_size:
        count += f" an epoch, {order.num_examples:,} in all"
    assumed = (f" Assumed: {html.sentence(text)}" for text in order.assumptions)
    return f"{count}: {html.sentence(settings_words(pipeline_record(order)))}{''.join(assumed)}"


def _about(report: Report) -> Iterator[str]:
    yield from stated("What was assumed", report.notes)
    yield from stated("Worth knowing", report.warnings)
    pairs = (
        ("fingerprint of the dataset", html.code(report.dataset.fingerprint)),
        ("shardctl", html.plain(own_version())),
        ("rules of the order", html.plain(ORDER_RULES)),
    )
    yield html.facts(pairs, "lines wide")


def stated(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield sentences under a heading, nothing where there are none."""
    said = html.items(first_upper(html.sentence(line)) for line in lines)
    if said:
        yield f"<h3>{heading}</h3>\n{said}"


def _data(report: Report) -> Iterator[str]:
    dataset = report.dataset
    pairs = (
        ("dataset", name(dataset.title)),
        ("what is read of it", html.code(report.spec)),
        ("file format", html.plain(dataset.file_format)),
        ("known from", name(dataset.data_dir or dataset.origin)),
    )
    yield html.facts(pairs)
    yield from part(report.layout, _layout)
    chosen = [item for item in report.in_force if item.origin.source != "default"]
    others = [item for item in report.in_force if item.origin.source == "default"]
    yield _settings("Settings that somebody chose, and what follows from them", chosen)
    yield _settings(f"{counted(len(others), 'default')}, which nobody changed", others)


def _layout(layout: Layout) -> Iterator[str]:
    yield html.figures(pictures_of(layout))
    yield html.table("Splits, and how evenly their shards share the examples", *split_cells(layout))
    yield html.paragraph(html.plain(LEGEND), "quiet")


def _settings(caption: str, settings: list[SettingInForce]) -> str:
    rows = ((item.name, value_words(item), origin_words(item.origin)) for item in settings)
    return html.table(caption, _SETTINGS, rows, kind="said") if settings else ""


def evaluation_body(evaluation: Evaluation) -> Iterator[str]:
    """Yield the steps of every host, where they end, and what cures a hang."""
    yield html.paragraph(
        f"{html.code(evaluation.spec)}: {counted(evaluation.total, 'example')} on "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"in batches of {evaluation.device_batch:,} a device, {evaluation.host_batch:,} a host.",
        "lead",
    )
    if evaluation.refusal is not None:
        refused = f"<strong>Refused:</strong> {html.sentence(evaluation.refusal)}."
        yield html.paragraph(f"{refused} What follows is what its hosts would do.")
    yield html.figures(pictures_of(evaluation))
    call = call_of(evaluation)
    yield html.items(
        first_upper(html.sentence(line))
        if not line.startswith(call)
        else f"{html.code(call)}{html.sentence(line.removeprefix(call))}"
        for line in advice_of_evaluation(evaluation)
    )
    yield html.table("What becomes of the examples that fill no batch", *way_cells(evaluation))
    yield html.paragraph("* as it is set up here", "quiet")


def hosts_body(plan: HostsPlan) -> Iterator[str]:
    """Yield what hosts read, and which way to share serves best."""
    comparison = plan.comparisons[0]
    best = comparison.recommended
    named = "None" if best is None else html.plain(best.name)
    several = len(comparison.strategies) > 1
    serves = f"<strong>Serves best: {named}.</strong> " if several else ""
    yield html.paragraph(f"{serves}{first_upper(html.sentence(reason(comparison)))}.", "lead")
    if comparison.num_hosts > 1:
        yield html.figures(pictures_of(plan))
        yield html.table("The ways to share, side by side", *measure_cells(plan))
    yield html.items(map(html.sentence, advice(comparison, plan.settings)))


def _findings(lint: Lint) -> Iterator[str]:
    looked = ", ".join(
        f"{html.code(read.spec)} (evaluation)" if read.evaluates else html.code(read.spec)
        for read in lint.context.reads
    )
    num = len(lint.findings)
    found = f"and made {counted(num, 'finding')}" if num else "and found nothing"
    yield html.paragraph(f"{counted(len(lint.rules), 'rule')} looked at {looked}, {found}.")
    if num:
        yield f'<ul class="findings">\n{"".join(map(_finding, lint.findings))}</ul>\n'
        example = html.code(f"shardctl lint --explain {lint.findings[0].rule.code}")
        yield html.paragraph(f"{example} tells the whole story.")


def _finding(finding: Finding) -> str:
    told = [("why", html.sentence(finding.why)), ("what helps", html.sentence(finding.fix))]
    if finding.specs:
        told.append(("in", ", ".join(map(html.code, finding.specs))))
    return (
        f'<li class="{finding.severity}">\n'
        f'<h3><span class="severity">{first_upper(finding.severity)}</span> '
        f"{html.plain(finding.rule.code)}: {html.plain(finding.rule.title)}</h3>\n"
        f"{html.facts(told, 'lines')}</li>\n"
    )


def _loaders(plan: LoaderComparison) -> Iterator[str]:
    hosts = "" if plan.num_hosts == 1 else f", {counted(plan.num_hosts, 'host')}"
    yield html.paragraph(
        f"{counted(plan.num_examples, 'example')} in {counted(plan.num_shards, 'shard')}, "
        f"batches of {plan.batch:,}{hosts}.",
        "lead",
    )
    yield html.figures(pictures_of(plan))
    if any(way.refused is None for way in plan.ways):
        yield html.table("How each way mixes, and how it ends", *quality_view.mixing_cells(plan))
        yield html.paragraph(
            f"{html.plain(first_upper(quality_view.mixing_legend(plan)))}.", "quiet"
        )
        yield html.table(
            "How each way goes on after a stop", *quality_view.going_on_cells(plan), kind="said"
        )


def _shuffle(report: Report) -> Iterator[str]:
    if report.is_open is not None:
        told = "what is shown is one order of many"
        yield html.paragraph(
            f"Nobody can know this order; {told}: {html.sentence(report.is_open)}."
        )
    yield from part(report.quality, quality_body)
    order = report.order
    if isinstance(report.quality, NotShown) and isinstance(order, Order):
        yield from part(report.strips, lambda _: (html.figures([order_picture(order)]),))


def quality_body(quality: Quality) -> Iterator[str]:
    """Yield how close the order is to a uniform permutation, and what would bring it closer."""
    score = quality.score
    error = score.sampling_error
    measured = "" if error is None else f", known to {error:.4f} since stretches are measured"
    yield html.paragraph(
        f"<strong>{html.plain(first_upper(quality.verdict))}:</strong> "
        f"{html.plain(meaning(quality.verdict, quality.order))}. "
        f"The score is {score.value:.4f} of 1{measured}; a uniform permutation of these examples "
        f"scores {score.expected:.4f}, give or take {score.spread:.4f}. The lowest metric is "
        f"{quality_view.label_of(quality.weakest)}.",
        "lead",
    )
    yield html.figures(pictures_of(quality))
    yield html.table(
        "Each metric beside what a uniform permutation shows", *quality_view.metric_cells(quality)
    )
    if any(metric.scale == "shown" for metric in quality.metrics):
        yield html.paragraph("* shown, not in the score", "quiet")
    lines = quality_view.measured_line(quality), quality_view.epochs_line(quality)
    yield html.items(html.plain(first_upper(line)) for line in lines)
    yield html.items(first_upper(html.sentence(x)) for x in quality_view.memory_lines(quality))


def _open(report: Report) -> Iterator[str]:
    """Yield which files are open when, before a buffer where there is one."""
    order = report.order
    reading = order if isinstance(order, NotShown) else order.before_buffer or order
    if isinstance(reading, Order) and reading.has_blocks:
        settings = reading.settings
        files = min(settings.cycle_length(ordered=reading.dataset.ordered), len(reading.reads))
        how = "It is read to its end, before another is opened."
        if files > 1:
            how = f"They take turns, {counted(settings.block, 'example')} each."
        into = "" if reading is order else " A shuffle buffer mixes what is read so."
        lead = f"Examples come from {counted(files, 'file')} at a time. {how}{into}"
        yield html.paragraph(lead, "lead")

    def figure(strips: Strips) -> Iterator[str]:
        assert isinstance(reading, Order)
        yield html.figures([strips_picture(strips, reading, SHEET)])

    yield from part(report.strips, figure)


# What a report comes to, in a few answers with links to what they are made of.

Worth = Literal["good", "warn", "bad", "open"]

_WORTH: dict[Verdict, Worth] = {
    "no shuffle": "bad",
    "weak": "bad",
    "fair": "warn",
    "good": "good",
    "close to uniform": "good",
    "as good as uniform": "good",
    "cannot tell": "warn",
}
_MOST_FINDINGS = 3


class Told(NamedTuple):
    """An answer in a word or two, what it is worth, and more of it, as HTML."""

    answer: str
    worth: Worth
    more: str


def summary_section(report: Report) -> html.Section:
    """Return the answers; a question whose answer is not known says why."""
    body = cards(
        ("Is it shuffled?", "shuffle", _told(report.quality, _shuffled)),
        ("Do the hosts keep step?", "hosts", _told(report.hosts, _in_step)),
        ("Does the evaluation end?", "evaluation", _told(report.evaluation, _ends)),
        ("What goes wrong?", "findings", _faults(report)),
    )
    if report.notes:
        number, rest = ("One", " is") if len(report.notes) == 1 else (len(report.notes), "s are")
        assumed = html.link("about", "assumed")
        body += html.paragraph(f"{number} thing{rest} {assumed} that nobody said.", "quiet")
    return html.Section("summary", "In short", (body,))


def cards(*answers: tuple[str, str, Told]) -> str:
    """Return answers as cards: each a question, the section that tells more, the answer."""
    listed = "".join(
        f'<li class="{told.worth}">\n<h3>{html.link(anchor, question)}</h3>\n'
        f'<p class="answer">{html.plain(told.answer)}</p>\n{told.more}</li>\n'
        for question, anchor, told in answers
    )
    return f'<ul class="answers">\n{listed}</ul>\n'


def _told(part: Any, told: Callable[[Any], Told]) -> Told:
    if isinstance(part, NotShown):
        return Told("Not known", "open", html.paragraph(html.sentence(part.reason)))
    return told(part)


def _shuffled(quality: Quality) -> Told:
    score, verdict = quality.score, quality.verdict
    told = html.paragraph(
        f"Score {score.value:.2f} of 1; a uniform permutation scores {score.expected:.2f}: "
        f"{html.plain(meaning(verdict, quality.order))}."
    )
    better = [one for one in quality.alternatives if one.score.value > score.value + 0.005]
    if better and _WORTH[verdict] != "good":
        best = max(better, key=lambda choice: choice.score.value)
        told += html.paragraph(
            f"Most would help: {html.plain(best.change)} (score {best.score.value:.2f})."
        )
    return Told(first_upper(verdict), _WORTH[verdict], told)


def _in_step(plan: HostsPlan) -> Told:
    comparison = plan.comparisons[0]
    own = comparison.strategy(plan.judged)
    best = comparison.recommended
    other = [] if best is None or best is own else [f"serves best: {best.name}"]
    if own.refusal is not None:
        return Told("Refused", "bad", _said(own.refusal, *other))
    most = own.num_batches or own.num_examples
    unit = "examples" if own.num_batches is None else "batches"
    told = [*problems(comparison, own.name)] or [reason(comparison)]
    if comparison.num_hosts > 1:
        told.insert(0, f"{comparison.num_hosts:,} hosts, {spread(most)} {unit} each")
    if own.is_uneven or own.idle_hosts:
        told += other
        return Told("No", "bad" if own.idle_hosts else "warn", _said(*told))
    return Told("Yes", "good", _said(*told))


def _ends(evaluation: Evaluation) -> Told:
    told = _said(*advice_of_evaluation(evaluation)[: 1 + bool(evaluation.num_lost)])
    if not evaluation.total:
        return Told("Nothing to do", "warn", told)
    if evaluation.refusal is not None:
        return Told("Refused", "bad", _said(evaluation.refusal))
    if evaluation.hang(evaluation.remainder) is not None:
        return Told("No, it hangs", "bad", told)
    steps = int(evaluation.num_steps(evaluation.remainder).max())
    on_all = f"{counted(steps, 'step')} on each of {counted(evaluation.num_hosts, 'host')}"
    return Told("Yes", "warn" if evaluation.num_lost else "good", _said(on_all) + told)


def _said(*lines: str) -> str:
    return "".join(html.paragraph(f"{first_upper(html.sentence(line))}.") for line in lines)


def _faults(report: Report) -> Told:
    """Return what lint finds, and where that is nothing, why there is no order."""
    lint = report.lint
    if isinstance(report.order, NotShown) and isinstance(lint, Lint) and not lint.findings:
        return _told(report.order, _wrong)
    return _told(lint, _wrong)


def _wrong(lint: Lint) -> Told:
    counts = Counter(finding.severity for finding in lint.findings)
    if not counts:
        told = f"{counted(len(lint.rules), 'rule')} looked, and found nothing."
        return Told("Nothing found", "good", html.paragraph(told))
    said = ", ".join(counted(counts[name], name) for name in SEVERITIES if counts[name])
    worth: Worth = "bad" if counts["error"] else "warn"
    few = [html.plain(finding.rule.title) for finding in lint.findings[:_MOST_FINDINGS]]
    more = len(lint.findings) - _MOST_FINDINGS
    return Told(said, worth, html.items([*few, f"{more} more"] if more > 0 else few))
