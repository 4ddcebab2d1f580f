"""A report as one HTML page that needs nothing else: no script, no network, nothing to install."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from shardctl.core.text import counted
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.report.about import about_section
from shardctl.rendering.report.dataset import dataset_section
from shardctl.rendering.report.elements import Section, link, name, paragraph, plain, sentence
from shardctl.rendering.report.evaluation import evaluation_section
from shardctl.rendering.report.findings import findings_section
from shardctl.rendering.report.hosts import hosts_section
from shardctl.rendering.report.loaders import loaders_section
from shardctl.rendering.report.shuffle import open_section, shuffle_section
from shardctl.rendering.report.style import STYLE
from shardctl.rendering.report.summary import summary_section
from shardctl.rendering.text.orders.order_records import pipeline_record, settings_words

# Nothing is loaded or sent, and no script runs, whatever stands in a page.
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
