"""Is it shuffled, how well, what would help; and which files are open when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shardctl.core.order.order import Order
from shardctl.core.phrase import Argument, phrase
from shardctl.core.text import counted, first_upper
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.score import meaning
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.pictures.picture import Picture
from shardctl.rendering.pictures.quality.quality import order_picture, score_picture
from shardctl.rendering.pictures.quality.shard_map import shard_map_picture
from shardctl.rendering.pictures.quality.what_if import what_if_picture
from shardctl.rendering.pictures.simulate import strips_picture
from shardctl.rendering.quality.memory import memory_lines
from shardctl.rendering.quality.metrics import LABELS, metric_cells
from shardctl.rendering.quality.quality import best_line, epochs_line, hosts_line, measured_line
from shardctl.rendering.report.elements import (
    Section,
    code,
    figures,
    items,
    not_shown,
    paragraph,
    plain,
    sentence,
    table,
)


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
    asked = any(isinstance(part, Argument) for part in phrase("{}", line).parts)
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
