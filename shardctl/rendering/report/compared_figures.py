"""How each of two pipelines shuffles, shares and evaluates, as sections of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from shardctl.core.phrase import phrase
from shardctl.core.stages.document import pipeline_of
from shardctl.core.stages.text import text_of
from shardctl.core.text import counted, first_upper
from shardctl.errors import ShardctlError
from shardctl.planning.diff.diff import Diff
from shardctl.planning.eval.eval import Evaluation
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.score import meaning
from shardctl.planning.quality.what_if import Alternative
from shardctl.planning.report.compare import ComparedSetting, NamedPosition, ReportComparison
from shardctl.planning.report.compared_side import ComparedSide
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.config import value_text
from shardctl.rendering.diff.diff import cause_line, headline, moved_line, without_effect
from shardctl.rendering.eval import way_cells
from shardctl.rendering.hosts.hosts import measure_cells
from shardctl.rendering.pictures.compared import parting_picture, scores_picture
from shardctl.rendering.pictures.picture import Picture
from shardctl.rendering.pictures.shuffling import order_picture
from shardctl.rendering.quality.metrics import LABELS
from shardctl.rendering.report.elements import (
    Section,
    cells_table,
    code,
    figures,
    folded,
    items,
    name,
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
        f"{first_upper(plain(meaning(quality.verdict, quality.order)))}. "
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


# Where two orders part, why, and the settings of both, as sections of a page.

_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "A", "B"))


def dataset_line(comparison: ReportComparison) -> str:
    """Return what both read, and first of all whether that is the same, as HTML."""
    one, other = comparison.sides
    if not comparison.dataset_changes and one.spec == other.spec:
        return f"Both read {code(one.spec)} of {name(one.head.title)}."
    told = f"A reads {_read(one)}, and B {_read(other)}."
    if not comparison.dataset_changes:
        return told
    return (
        f"<strong>The datasets or their layouts are not the same.</strong> {told} Equal ids need "
        "not be equal examples."
    )


def _read(side: ComparedSide) -> str:
    return f"{code(side.spec)} of {name(side.head.title)}"


def parting_section(comparison: ReportComparison) -> Section:
    """Return where the orders first differ, how much moved, and why."""
    found = comparison.diff
    body = not_shown(found) if isinstance(found, NotShown) else "".join(_parting(comparison, found))
    causes = _causes(comparison)
    return Section(anchor="parting", title="Where do they part?", body=f"{body}{causes}")


def _parting(comparison: ReportComparison, found: Diff) -> Iterator[str]:
    yield paragraph(f"<strong>{plain(headline(found))}.</strong>", "lead")
    if found.first is not None:
        yield paragraph(f"{first_upper(plain(moved_line(found.moved)))}.")
    yield items(plain(first_upper(note)) for note in found.notes)
    if comparison.blocks:
        lengths = [side.snapshot.num_examples for side in (found.expected, found.actual)]
        longer = None if lengths[0] == lengths[1] else "AB"[lengths[1] > lengths[0]]
        things = "ids" if comparison.dataset_changes else "examples"
        strip = parting_picture(comparison.blocks, found.first, longer=longer, things=things)
        yield figures([strip])
    if comparison.neighbours:
        yield _neighbours(comparison.neighbours)


def _neighbours(rows: tuple[NamedPosition, ...]) -> str:
    columns = [Column(heading="position")]
    named = any(one.a_tfds_id or one.b_tfds_id for one in rows)
    for letter in "AB":
        columns.append(Column(heading=f"id in {letter}"))
        if named:
            columns.append(Column(heading=f"tfds_id in {letter}", align="left"))
    cells = []
    for row in rows:
        sides = ((row.a, row.a_tfds_id), (row.b, row.b_tfds_id))
        cells.append(
            [
                _emphasised(f"{row.position:,}", row),
                *(
                    cell
                    for given, tfds_id in sides
                    for cell in ([_id(given), name(tfds_id or "")] if named else [_id(given)])
                ),
            ]
        )
    caption = "The examples around the first difference; positions in bold hold different ones"
    return cells_table(caption, columns, cells)


def _emphasised(html: str, row: NamedPosition) -> str:
    return f"<strong>{html}</strong>" if row.differs else html


def _id(given: int | str | None) -> str:
    return "(end)" if given is None else name(given)


def _causes(comparison: ReportComparison) -> str:
    found = comparison.diff
    if isinstance(found, NotShown):
        told = [plain(cause_line(cause)) for cause in comparison.dataset_changes]
        return f"<h3>What differs of the datasets</h3>\n{items(told)}" if told else ""
    if found.equal:
        told = [plain(line.strip()) for line in without_effect(found)]
        return items(told)
    told = [plain(cause_line(cause)) for cause in found.causes]
    return f"<h3>Why: from A to B</h3>\n{items(told)}"


def settings_section(comparison: ReportComparison) -> Section:
    """Return the settings that differ, with both values, and those that do not."""
    differing = [setting for setting in comparison.settings if setting.differs]
    same = [setting for setting in comparison.settings if not setting.differs]
    body = paragraph("Every setting in force has one value on both sides.")
    if differing:
        caption = "Settings in force that are not the same"
        body = table(caption, _SETTINGS, map(_row, differing), kind="said")
    if same:
        caption = f"{counted(len(same), 'setting')} with one value on both sides"
        body += folded(caption, table(caption, _SETTINGS, map(_row, same), kind="said"))
    return Section(anchor="settings", title="Which settings differ?", body=body)


def _row(setting: ComparedSetting) -> tuple[str, str, str]:
    key = setting.name
    return key, setting_text(key, setting.a), setting_text(key, setting.b)


def setting_text(setting: str, value: Any) -> str:
    """Return a value of a setting as `config` shows it; stages as one line.

    >>> setting_text("cycle", 16), setting_text("shuffle_files", True), setting_text("host", None)
    ('16', 'true', 'none')
    """
    if setting == "stages" and value is not None:
        with suppress(ShardctlError):  # stages of another version
            return text_of(pipeline_of(value))
    return value_text(value)
