"""Whether the evaluation ends on every host, and what it loses or pads."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted
from shardctl.planning.eval.advice import advice
from shardctl.planning.eval.evaluation import Evaluation
from shardctl.planning.report.shown import NotShown
from shardctl.planning.report.report import Report
from shardctl.rendering.eval import way_cells
from shardctl.rendering.pictures.eval import eval_pictures
from shardctl.rendering.report.elements import (
    Section,
    code,
    figures,
    items,
    not_shown,
    paragraph,
    sentence,
    table,
)


def evaluation_section(report: Report) -> Section:
    """Return the steps of every host, where they end, and what cures a hang."""
    evaluation = report.evaluation
    if isinstance(evaluation, NotShown):
        body = not_shown(evaluation)
    else:
        body = "".join(_body(evaluation))
    return Section(anchor="evaluation", title="Does the evaluation end?", body=body)


def _body(evaluation: Evaluation) -> Iterator[str]:
    yield paragraph(
        f"{code(evaluation.spec)}: {counted(evaluation.total, 'example')} on "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"in batches of {evaluation.device_batch:,} a device, {evaluation.host_batch:,} a host.",
        "lead",
    )
    yield items(map(sentence, advice(evaluation)), "advice")
    yield figures(eval_pictures(evaluation))
    yield table("What becomes of the examples that fill no batch", *way_cells(evaluation))
    yield paragraph("* as it is set up here", "quiet")
