"""How another loader than TFDS's goes on: a table for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shardctl.core.columns import Cell, RecordStream, rows_on_demand
from shardctl.core.instructions.reads import Reads
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import assumed, identity_head
from shardctl.files.plan.writer import CSV_HEADER
from shardctl.planning.resume.resume_loader import LoaderPlan
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.step_rows import order_heading, pipeline_record
from shardctl.rendering.text.tables import Column, Screen, paragraph, table_pieces

__all__ = ["CSV_HEADER", "resume_document", "resume_rows", "resume_table"]

_ROWS = 10  # file instructions on a terminal
_FIELDS = ("filename", "split", "skip", "take", "examples_in_shard")
_COLUMNS = (
    Column(heading="file", align="left", names_files=True),
    Column(heading="skip"),
    Column(heading="take"),
    Column(heading="of"),
)


def resume_table(plan: LoaderPlan, screen: Screen) -> Iterator[str]:
    """Yield where the loader stopped, what is left, and what to call."""
    yield from order_heading(plan.spec, plan.order, screen, "bold")
    stop = plan.stop
    where = f"stopped: after {counted(plan.consumed, 'example')}, in epoch {stop.epoch}"
    if stop.steps is not None:
        where += f", {counted(stop.steps, 'batch', 'batches')}"
    if stop.in_batch:
        where += f" and {counted(stop.in_batch, 'example')}"
    yield paragraph(where, screen)
    left = f"left: {counted(plan.remaining, 'example')} of epoch {stop.epoch}"
    if plan.remaining_total != plan.remaining:
        left += f", {plan.remaining_total:,} in all"
    yield paragraph(left, screen)
    reads = plan.instructions
    num_runs = 0 if reads is None else len(reads)
    if num_runs > len(plan.order.reads):
        yield paragraph(
            f"they are {num_runs:,} runs of neighbours; --format json lists them", screen
        )
    elif reads is not None and num_runs:
        yield from table_pieces(_COLUMNS, _rows(reads), screen, keep=_ROWS)
    yield paragraph("exact: the order continues id by id.", screen)
    said = [
        f"{call.call}({', '.join(f'{name}={value}' for name, value in call.arguments.items())})"
        for call in plan.after_read
    ]
    yield paragraph(f"go on with: {', then '.join(said)}", screen)
    for line in plan.advice:
        yield paragraph(f"- {as_options(line)}", screen)
    yield paragraph("in Python: --format python writes the code that reads what is left", screen)


def _rows(reads: Reads) -> Sequence[Sequence[Any]]:
    def columns(start: int, stop: int) -> Sequence[Cell]:
        piece = reads.select(slice(start, stop))
        numbers = (piece.skip, piece.take, piece.examples_in_shard)
        texts = ([f"{value:,}" for value in values.tolist()] for values in numbers)
        return [piece.filenames(), *texts]

    return rows_on_demand(len(reads), columns)


def resume_document(plan: LoaderPlan) -> Document:
    """Return the document: `file_instructions` is None where they are too many to list."""
    stop = plan.stop
    return {
        **identity_head("resume", plan.order.dataset.identity, format_version=1),
        **assumed(map(as_options, plan.order.assumptions)),
        "spec": plan.spec,
        "pipeline": pipeline_record(plan.order),
        "consumed": plan.consumed,
        "epoch": stop.epoch,
        "remaining": plan.remaining,
        "remaining_total": plan.remaining_total,
        "file_instructions": (
            None if plan.instructions is None else plan.instructions.records(_FIELDS)
        ),
        "read_config": None,
        "after_read": [{"call": one.call, **one.arguments} for one in plan.after_read],
        "mode": "exact",
        "exact": True,
        "num_further_epochs": plan.order.settings.epochs - 1 - stop.epoch if plan.remaining else 0,
        "advice": list(map(as_options, plan.advice)),
    }


def resume_rows(plan: LoaderPlan) -> RecordStream:
    """Return a CSV row for each file instruction, without a host."""
    reads = plan.instructions
    return RecordStream(
        CSV_HEADER,
        lambda: (
            (count, [None, *cells])
            for count, cells in (() if reads is None else reads.records(_FIELDS).pieces())
        ),
    )
