"""How each of two pipelines shuffles, shares and evaluates, as sections of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shardctl.core.phrase import phrase
from shardctl.core.text import counted, first_upper
from shardctl.planning.eval.evaluation import Evaluation
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.verdict import meaning
from shardctl.planning.quality.what_if import Alternative
from shardctl.planning.report.compare import ReportComparison
from shardctl.planning.report.compared_side import ComparedSide
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.eval import way_cells
from shardctl.rendering.hosts.hosts import measure_cells
from shardctl.rendering.pictures.compared import scores_picture
from shardctl.rendering.pictures.picture import Picture
from shardctl.rendering.pictures.quality.quality import order_picture
from shardctl.rendering.quality.metrics import LABELS
from shardctl.rendering.report.elements import (
    Section,
    figures,
    folded,
    not_shown,
    paragraph,
    plain,
    table,
)
from shardctl.rendering.report.summary import of_unstated_hosts
from shardctl.rendering.text.quantities import counts_between, human_bytes
from shardctl.rendering.text.tables import Column

_Lettered = tuple[str, ComparedSide]


def _lettered(comparison: ReportComparison) -> tuple[_Lettered, _Lettered]:
    return ("A", comparison.a), ("B", comparison.b)


def _columns(first: str, *others: str) -> list[Column]:
    return [Column(heading=first, align="left"), *(Column(heading=text) for text in others)]


def shuffle_section(comparison: ReportComparison) -> Section:
    """Return the scores of both, their pictures side by side, and what would help either."""
    return Section(
        anchor="shuffle", title="How does each shuffle?", body="".join(_shuffle(comparison))
    )


def _shuffle(comparison: ReportComparison) -> Iterator[str]:
    measured: list[tuple[str, Quality]] = []
    maps: list[Picture] = []
    for letter, side in _lettered(comparison):
        quality, shard_map = side.quality, side.shard_map
        if isinstance(quality, NotShown):
            yield _of(letter, quality)
            continue
        measured.append((letter, quality))
        yield paragraph(_verdict(letter, quality), "lead")
        if not isinstance(shard_map, NotShown):
            maps.append(_named(letter, order_picture(quality, shard_map)))
    yield figures(maps)
    if not measured:
        return
    if len(measured) == 2:
        yield figures([scores_picture(measured[0][1], measured[1][1])])
    yield "<h3>What the scores are made of</h3>\n"
    yield _metrics(measured)
    yield from _what_if(measured)


def _named(letter: str, picture: Picture) -> Picture:
    """Return a picture of one of two; no two on a page have one name."""
    title = f"{letter}: {picture.title[:1].lower()}{picture.title[1:]}"
    return replace(picture, name=f"{picture.name}-{letter.lower()}", title=title)


def _of(letter: str, missing: NotShown) -> str:
    return not_shown(NotShown(reason=phrase("{}: {}", letter, missing.reason)))


def _verdict(letter: str, quality: Quality) -> str:
    score = quality.score
    return (
        f"<strong>{letter}: {plain(quality.verdict)}.</strong> "
        f"{first_upper(plain(meaning(quality.verdict, quality.order.settings.loader)))}. "
        f"It scores {score.value:.4f} of 1; a uniform permutation of these examples "
        f"{score.expected:.4f}, give or take {score.spread:.4f}."
    )


def _metrics(measured: Sequence[tuple[str, Quality]]) -> str:
    """Return every metric of both, beside what uniform permutations of their examples show."""
    columns = _columns("metric", *(f"{letter}{word}" for letter, _ in measured for word in _METRIC))
    by_name = [{metric.name: metric for metric in quality.metrics} for _, quality in measured]
    rows = []
    for key in dict.fromkeys(key for found in by_name for key in found):
        row = [LABELS[key]]
        for found in by_name:
            metric = found.get(key)
            if metric is None:
                row += ["-"] * len(_METRIC)
            else:
                row += [_number(metric.value), _number(metric.expected), f"{metric.score:.4f}"]
        rows.append(row)
    totals = ["the score of the order"]
    for _, quality in measured:
        score = quality.score
        totals += [f"{score.value:.4f}", f"{score.expected:.4f}", f"{score.value:.4f}"]
    return table("Each metric beside what a uniform permutation shows", columns, [*rows, totals])


_METRIC = ("", ", uniform", ", score")


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"


def _what_if(measured: Sequence[tuple[str, Quality]]) -> Iterator[str]:
    """Yield what each would score after a change by itself; what one does not have is left open."""
    by_change = [{one.change: one for one in quality.alternatives} for _, quality in measured]
    changes = list(dict.fromkeys(change for found in by_change for change in found))
    if not changes:
        return
    yield "<h3>What other settings would do</h3>\n"
    sized = any(one.num_bytes is not None for found in by_change for one in found.values())
    words = (" scores", ", its buffer") if sized else (" scores",)
    heads = [f"{letter}{word}" for letter, _ in measured for word in words]
    rows = []
    for change in changes:
        row = [change]
        for found in by_change:
            row += _scored(found.get(change))[: len(words)]
        rows.append(row)
    caption = "The score after one change; a change that is none for a pipeline has a dash"
    yield table(caption, _columns("what if", *heads), rows)


def _scored(choice: Alternative | None) -> tuple[str, str]:
    """Return the score after a change, and the size of its buffer where that is known."""
    if choice is None:
        return "-", ""
    size = "" if choice.num_bytes is None else human_bytes(choice.num_bytes)
    return f"{choice.score.value:.4f}", size


def hosts_section(comparison: ReportComparison) -> Section:
    """Return what hosts read under the ways in which the two share, then under all of them."""
    hosts = counted(comparison.num_hosts, "host")
    found = [(letter, side.hosts) for letter, side in _lettered(comparison)]
    body = "".join(_of(letter, plan) for letter, plan in found if isinstance(plan, NotShown))
    plans = [(letter, plan) for letter, plan in found if not isinstance(plan, NotShown)]
    if len(plans) == 2:
        caption = f"What each of {hosts} reads, as each pipeline shares"
        body += _side_by_side(caption, "measure", [_judged(*one) for one in plans])
    for letter, plan in plans:
        columns, rows = measure_cells(plan)
        caption = f"{letter}: the ways to share, among {hosts}"
        body += folded(caption, table(caption, columns, rows))
    unstated = of_unstated_hosts(comparison.num_hosts, said=comparison.hosts_said)
    return Section(anchor="hosts", title=f"What does each host read?{unstated}", body=body)


_Column = tuple[str, dict[str, str]]  # a heading, and a text for each row


def _judged(letter: str, plan: HostsPlan) -> _Column:
    """Return the measures of the way to share that settings choose."""
    columns, rows = measure_cells(plan)
    headings = [column.heading for column in columns]
    at = headings.index(plan.judged) if plan.judged in headings else 1
    return f"{letter}: {headings[at]}", {row[0]: str(row[at]) for row in rows}


def _side_by_side(caption: str, first: str, sides: Sequence[_Column]) -> str:
    """Return a table whose rows are those of any side."""
    names = dict.fromkeys(name for _, cells in sides for name in cells)
    rows = [[name, *(cells.get(name, "-") for _, cells in sides)] for name in names]
    return table(caption, _columns(first, *(heading for heading, _ in sides)), rows)


def evaluation_section(comparison: ReportComparison) -> Section:
    """Return what becomes of the examples of an evaluation, where both have one."""
    found = [(letter, side.evaluation) for letter, side in _lettered(comparison)]
    body = "".join(_of(letter, one) for letter, one in found if isinstance(one, NotShown))
    both = [(letter, one) for letter, one in found if not isinstance(one, NotShown)]
    if len(both) == 2:
        sides = [(letter, _evaluated(one)) for letter, one in both]
        body += _side_by_side("The evaluations, as they are set up", "measure", sides)
    for letter, one in both:
        columns, rows = way_cells(one)
        caption = f"{letter}: what becomes of the examples that fill no batch"
        body += folded(caption, table(caption, columns, rows))
    unstated = of_unstated_hosts(comparison.num_hosts, said=comparison.hosts_said)
    return Section(anchor="evaluation", title=f"Does the evaluation end?{unstated}", body=body)


def _evaluated(evaluation: Evaluation) -> dict[str, str]:
    steps = evaluation.num_steps(evaluation.remainder)
    hang = evaluation.hang(evaluation.remainder)
    return {
        "what is read": evaluation.spec,
        "examples": f"{evaluation.total:,}",
        "hosts": f"{evaluation.num_hosts:,}",
        "batch of a host": f"{evaluation.host_batch:,}",
        "steps of a host": counts_between(int(steps.min()), int(steps.max())),
        "hangs": "no" if hang is None else f"at step {hang.step:,}",
        "examples lost": f"{evaluation.num_lost:,}",
        "lost where remainders are dropped": f"{evaluation.dropped_by_host_batch:,}",
    }
