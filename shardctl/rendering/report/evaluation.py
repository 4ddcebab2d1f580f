"""Whether the evaluation ends on every host, and what it loses or pads."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted, first_upper
from shardctl.planning.eval.advice import advice, call_of
from shardctl.planning.eval.evaluation import Evaluation
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
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
    body = "".join(_body(report.evaluation))
    return Section(anchor="evaluation", title="Does the evaluation end?", body=body)


def _body(evaluation: Evaluation | NotShown) -> Iterator[str]:
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
