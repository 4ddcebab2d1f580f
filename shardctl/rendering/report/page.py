"""A report as one HTML page that needs nothing else: no script, no network, nothing to install."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from shardctl.core.order.order import Order
from shardctl.core.text import counted, first_upper
from shardctl.core.tfds_rules import ORDER_RULES
from shardctl.files.head import own_version
from shardctl.planning.config import SettingInForce
from shardctl.planning.eval.advice import advice, call_of
from shardctl.planning.eval.eval import Evaluation
from shardctl.planning.lint.lint import Finding, Lint
from shardctl.planning.quality.loaders.compare import LoaderComparison
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.score import meaning
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.config import origin_words, value_words
from shardctl.rendering.eval import way_cells
from shardctl.rendering.layout import LEGEND, split_cells
from shardctl.rendering.pictures.eval import eval_pictures
from shardctl.rendering.pictures.layout import layout_pictures
from shardctl.rendering.pictures.loaders import loaders_pictures
from shardctl.rendering.pictures.palette import css
from shardctl.rendering.pictures.picture import Picture
from shardctl.rendering.pictures.shard_map import shard_map_picture
from shardctl.rendering.pictures.shuffling import order_picture, score_picture
from shardctl.rendering.pictures.simulate import strips_picture
from shardctl.rendering.pictures.what_if import what_if_picture
from shardctl.rendering.quality.loaders import going_on_cells, mixing_cells, mixing_legend
from shardctl.rendering.quality.memory import memory_lines
from shardctl.rendering.quality.metrics import LABELS, metric_cells
from shardctl.rendering.quality.quality import best_line, epochs_line, hosts_line, measured_line
from shardctl.rendering.report.document import again
from shardctl.rendering.report.elements import (
    OPTION,
    Section,
    code,
    command,
    facts,
    figures,
    folded,
    items,
    link,
    name,
    not_shown,
    paragraph,
    plain,
    sentence,
    table,
)
from shardctl.rendering.report.hosts import hosts_section
from shardctl.rendering.report.summary import summary_section
from shardctl.rendering.text.step_rows import pipeline_record, settings_words
from shardctl.rendering.text.tables import Column

# Nothing is loaded or sent, and no script runs, whatever stands in a page.
STYLE = Path(__file__).with_name("page.css").read_text("utf-8") + css(".picture")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_page(report: Report) -> Iterator[str]:
    """Yield the page of a report, section by section; the same report gives the same bytes."""
    sections = [section for section in report_sections(report) if section is not None]
    yield from page(
        title=f"{report.dataset.title}, {report.spec}",
        heading=f"{name(report.dataset.title)}, {name(report.spec)}",
        kind="How this dataset is read, and in which order",
        more=_pipeline(report),
        sections=sections,
    )


def report_body(report: Report) -> str:
    """Return the page for a notebook: in a frame, so that neither styles the other."""
    title = f"Report of {report.dataset.title}, {report.spec}"
    return in_frame(title, repr(report)[1:-1], report_page(report))


def in_frame(title: str, told: str, html: Iterable[str]) -> str:
    """Return a page in a frame of its own, below what it is; both are text."""
    style = "width:100%;height:46rem;border:1px solid #8888;border-radius:8px"
    return (
        f"<p>{plain(told)}. <code>to_html()</code> is this page.</p>\n"
        f'<iframe title="{plain(title)}" sandbox style="{style}" '
        f'srcdoc="{escape("".join(html))}"></iframe>\n'
    )


def report_sections(report: Report) -> Iterator[Section | None]:
    """Yield the sections in the order of a newcomer's questions."""
    yield summary_section(report)
    yield dataset_section(report)
    yield shuffle_section(report)
    yield open_section(report)
    yield hosts_section(report)
    yield evaluation_section(report)
    yield loaders_section(report)
    yield findings_section(report)
    yield about_section(report)


def _pipeline(report: Report) -> str:
    """Return what shapes the order, in words."""
    order = report.order
    if isinstance(order, NotShown):
        return ""
    count = counted(order.epoch_size, "example")
    if order.num_examples != order.epoch_size:
        count += f" an epoch, {order.num_examples:,} in all"
    assumed = (f" Assumed: {sentence(text)}" for text in order.assumptions)
    return f"{count}: {sentence(settings_words(pipeline_record(order)))}{''.join(assumed)}"


def page(
    *, title: str, heading: str, kind: str, more: str = "", sections: Sequence[Section]
) -> Iterator[str]:
    """Yield a page: its title and kind are text, its heading, and more of it, HTML."""
    yield (
        '<!DOCTYPE html>\n<html lang="en" dir="ltr">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="robots" content="noindex">\n<meta name="generator" content="shardctl">\n'
        f"<title>{plain(title)} – shardctl report</title>\n<style>{STYLE}</style>\n</head>\n"
    )
    contents = "".join(f"<li>{link(part.anchor, part.title)}</li>\n" for part in sections)
    yield (
        f'<body>\n<div class="page">\n<header>\n<p class="kind">{plain(kind)}</p>\n'
        f"<h1>{heading}</h1>\n{paragraph(more)}</header>\n"
        '<div class="columns">\n<nav class="contents" aria-labelledby="contents">\n'
        f'<h2 id="contents">On this page</h2>\n<ol>\n{contents}</ol>\n</nav>\n<main>\n'
    )
    for part in sections:
        yield (
            f'<section aria-labelledby="{part.anchor}">\n'
            f'<h2 id="{part.anchor}">{part.title}</h2>\n{part.body}</section>\n'
        )
    yield "</main>\n</div>\n</div>\n</body>\n</html>\n"


# What a report stands on: stand-ins, fingerprint, versions, and how to make it again.


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


# What is read, and how: the dataset, its shards, every setting with who says so.

_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "value", "origin"))


def dataset_section(report: Report) -> Section:
    """Return what the dataset is and how it is read."""
    return Section(
        anchor="data", title="What is read, and how", body="".join(_body_dataset(report))
    )


def _body_dataset(report: Report) -> Iterator[str]:
    yield facts(_facts_dataset(report))
    layout = report.layout
    if isinstance(layout, NotShown):
        yield not_shown(layout)
    else:
        yield table("Splits, and how evenly their shards share the examples", *split_cells(layout))
        yield paragraph(plain(LEGEND), "quiet")
        yield figures(layout_pictures(layout))
    yield "<h3>Every setting in force</h3>\n"
    stated = [item for item in report.in_force if item.origin.source != "default"]
    others = [item for item in report.in_force if item.origin.source == "default"]
    if stated:
        yield _settings("Settings that somebody chose, and what follows from them", stated)
    else:
        yield paragraph("Nobody chose a setting: all of them are defaults.")
    if others:
        caption = f"{counted(len(others), 'default')}, which nobody changed"
        yield folded(caption, _settings(caption, others))


def _facts_dataset(report: Report) -> Iterator[tuple[str, str]]:
    dataset = report.dataset
    yield "dataset", name(dataset.title)
    yield "what is read of it", code(report.spec)
    yield "file format", plain(dataset.file_format)
    yield "known from", name(dataset.data_dir or dataset.origin)


def _settings(caption: str, settings: Sequence[SettingInForce]) -> str:
    rows = ((item.name, value_words(item), origin_words(item.origin)) for item in settings)
    return table(caption, _SETTINGS, rows, kind="said")


# Whether the evaluation ends on every host, and what it loses or pads.


def evaluation_section(report: Report) -> Section:
    """Return the steps of every host, where they end, and what cures a hang."""
    body = "".join(_body_evaluation(report.evaluation))
    return Section(anchor="evaluation", title="Does the evaluation end?", body=body)


def _body_evaluation(evaluation: Evaluation | NotShown) -> Iterator[str]:
    if isinstance(evaluation, NotShown):
        yield not_shown(evaluation)
        return
    yield paragraph(
        f"{code(evaluation.spec)}: {counted(evaluation.total, 'example')} on "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"in batches of {evaluation.device_batch:,} a device, {evaluation.host_batch:,} a host.",
        "lead",
    )
    if evaluation.refusal is not None:
        refused = f"<strong>Refused:</strong> {sentence(evaluation.refusal)}."
        yield paragraph(f"{refused} What follows is what its hosts would do.")
    yield figures(eval_pictures(evaluation))
    yield "<h3>What to know, and what helps</h3>\n"
    yield items(_advice(evaluation))
    yield table("What becomes of the examples that fill no batch", *way_cells(evaluation))
    yield paragraph("* as it is set up here", "quiet")


def _advice(evaluation: Evaluation) -> Iterator[str]:
    call = call_of(evaluation)
    for line in advice(evaluation):
        rest = line.removeprefix(call)
        yield first_upper(sentence(line)) if rest == line else f"{code(call)}{sentence(rest)}"


# What the linter found: why it matters, and what helps.


def findings_section(report: Report) -> Section:
    """Return what goes wrong, the worst first."""
    lint = report.lint
    body = not_shown(lint) if isinstance(lint, NotShown) else "".join(_body_findings(lint))
    return Section(anchor="findings", title="What goes wrong?", body=body)


def _body_findings(lint: Lint) -> Iterator[str]:
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


# The same dataset through every loader that people use.


def loaders_section(report: Report) -> Section | None:
    """Return the loaders side by side, None where they were not asked for."""
    loaders = report.loaders
    if loaders is None:
        return None
    body = not_shown(loaders) if isinstance(loaders, NotShown) else "".join(_body_loaders(loaders))
    return Section(anchor="loaders", title="How would other loaders read it?", body=body)


def _body_loaders(plan: LoaderComparison) -> Iterator[str]:
    hosts = "" if plan.num_hosts == 1 else f", {counted(plan.num_hosts, 'host')}"
    yield paragraph(
        f"{counted(plan.num_examples, 'example')} in {counted(plan.num_shards, 'shard')}, "
        f"batches of {plan.batch:,}{hosts}.",
        "lead",
    )
    yield figures(loaders_pictures(plan))
    if any(way.refused is None for way in plan.ways):
        yield table("How each way mixes, and how it ends", *mixing_cells(plan))
        yield paragraph(f"{plain(first_upper(mixing_legend(plan)))}.", "quiet")
        yield table("How each way goes on after a stop", *going_on_cells(plan), kind="said")
    refused = [way for way in plan.ways if way.refused is not None]
    if refused:
        yield "<h3>Not read so</h3>\n"
        yield items(f"{name(way.reader)}: {sentence(way.refused)}" for way in refused)


# Is it shuffled, how well, what would help; and which files are open when.


def shuffle_section(report: Report) -> Section:
    """Return how close the order is to a uniform permutation, and what would bring it closer."""
    return Section(anchor="shuffle", title="Is it shuffled?", body="".join(_shuffle(report)))


def _shuffle(report: Report) -> Iterator[str]:
    quality, shard_map = report.quality, report.shard_map
    shown: list[Picture] = []
    if isinstance(quality, NotShown):
        yield not_shown(quality)
    else:
        yield paragraph(_verdict(quality), "lead")
    if report.is_open is not None:
        told = "what is shown is one order of many"
        yield paragraph(f"Nobody can know this order; {told}: {sentence(report.is_open)}.")
    if not isinstance(shard_map, NotShown) and not isinstance(quality, NotShown):
        shown.append(order_picture(quality, shard_map))
    elif not isinstance(shard_map, NotShown):
        shown.append(shard_map_picture(shard_map))
    elif not isinstance(quality, NotShown):
        yield not_shown(shard_map)
    if isinstance(quality, NotShown):
        yield figures(shown)
        return
    yield figures([*shown, score_picture(quality)])
    yield "<h3>What the score is made of</h3>\n"
    yield from _metrics(quality)
    if quality.alternatives:
        yield "<h3>What other settings would do</h3>\n"
        yield paragraph(f"{plain(first_upper(best_line(quality)))}.")
        yield figures([what_if_picture(quality)])
    yield items(map(_memory, memory_lines(quality)))


def _memory(line: str) -> str:
    """Return what is said of the buffer's memory, and where the option in it belongs."""
    said = first_upper(sentence(line))
    asked = OPTION.search(line)
    return f"{said} (an option of {code('shardctl quality')})" if asked else said


def _verdict(quality: Quality) -> str:
    score = quality.score
    error = score.sampling_error
    measured = "" if error is None else f", known to {error:.4f} since stretches are measured"
    return (
        f"<strong>{plain(first_upper(quality.verdict))}:</strong> "
        f"{plain(meaning(quality.verdict, quality.order))}. "
        f"The score is {score.value:.4f} of 1{measured}; a uniform permutation of these examples "
        f"scores {score.expected:.4f}, give or take {score.spread:.4f}."
    )


def _metrics(quality: Quality) -> Iterator[str]:
    yield paragraph(
        f"The lowest of them is {LABELS[quality.weakest.name]}. "
        f"{plain(first_upper(measured_line(quality)))}."
    )
    columns, rows = metric_cells(quality)
    yield table("Each metric beside what a uniform permutation shows", columns, rows)
    if any(metric.scale == "shown" for metric in quality.metrics):
        yield paragraph("* shown, not in the score", "quiet")
    lines = (epochs_line(quality), hosts_line(quality))
    yield items(plain(first_upper(line)) for line in lines if line)


def open_section(report: Report) -> Section:
    """Return which files are open when, and what slots read of them."""
    strips, order = report.strips, report.order
    if isinstance(strips, NotShown):
        body = not_shown(strips)
    elif isinstance(order, NotShown):
        body = not_shown(order)
    else:
        body = "".join(_open(report, strips_picture(strips, order)))
    return Section(anchor="open", title="Which files are open when?", body=body)


def _open(report: Report, handed_out: Picture) -> Iterator[str]:
    """Yield what slots read, and behind a buffer what it hands out besides."""
    reading = report.before_buffer or report.order
    if isinstance(reading, Order) and reading.has_blocks:
        settings = reading.settings
        files = min(settings.cycle_length(ordered=reading.dataset.ordered), len(reading.reads))
        taking_turns = (
            f"Each has a slot, and the slots take turns: {counted(settings.block, 'example')} of "
            "the file in the slot, then the next slot. A file that is read to its end leaves its "
            "slot to another."
        )
        alone = "It is read to its end, and there is no other."
        if len(reading.reads) > 1:
            alone = "It is read to its end before the next is opened."
        how = taking_turns if files > 1 else alone
        yield paragraph(f"Examples come from {counted(files, 'file')} at a time. {how}", "lead")
    if report.before_buffer is None or report.opened is None:
        yield figures([handed_out])
        return
    opened = strips_picture(report.opened, report.before_buffer)
    yield figures(
        [
            replace(opened, name="opened", title="What is read of the files, into the buffer"),
            replace(handed_out, title="What the shuffle buffer hands out"),
        ]
    )
