"""How an evaluation fills its batches, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.base.columns import Cell as RowsCell
from shardctl.base.columns import Records, picked
from shardctl.base.text import counted
from shardctl.draw.quantities import counts_between
from shardctl.draw.tables import (
    Cell,
    Column,
    Screen,
    columns,
    grouped,
    paragraph,
    paragraphs,
    table,
    table_pieces,
)
from shardctl.files.documents import Document
from shardctl.saved.head import head
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.eval.advice import advice, cures
from shardctl.verbs.eval.answer import REMAINDERS, Evaluation, Remainder

_ROWS = 8  # hosts shown on a terminal
WAYS: dict[Remainder, str] = {"ragged": "left ragged", "drop": "dropped", "pad": "padded"}
_COLUMNS = columns("index=host num_examples=examples num_batches=batches remainder padding")
_COLUMNS += columns("padding_batches")
_FIELDS = [column.field for column in _COLUMNS]


def eval_table(evaluation: Evaluation, screen: Screen) -> Iterator[str]:
    """Yield what each host gets, what becomes of remainders, and what to do about it."""
    batch = f"{evaluation.device_batch:,}"
    title = (
        f"{evaluation.spec} in {evaluation.dataset.title}: {counted(evaluation.total, 'example')}, "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"batches of {batch} a device, {evaluation.host_batch:,} a host"
    )
    yield paragraph(title, screen, style="bold")
    yield from table_pieces(_COLUMNS, grouped(eval_rows(evaluation)), screen, keep=_ROWS)
    yield "\n"
    if screen.pictures:
        from shardctl.draw.drawers import picture_lines

        yield from picture_lines(evaluation, screen)
        yield "\n"
    yield table(*way_cells(evaluation), screen)
    legend = "* as set up here"
    if evaluation.num_devices > 1:
        legend += (
            f"; dropping by batches of one device, {batch}, would lose "
            f"{counted(evaluation.dropped_by_device_batch, 'example')}"
        )
    yield paragraph(legend, screen)
    said = [f"- {line}" for line in advice(evaluation)]
    hangs = evaluation.hang(evaluation.remainder) is not None  # which is said first
    yield from paragraphs(screen, *said[:1], style="error" if hangs else "")
    yield from paragraphs(screen, *said[1:])


def way_cells(evaluation: Evaluation) -> tuple[list[Column], list[Sequence[str]]]:
    """Return what becomes of remainders, dropped, padded or left, as columns and rows."""
    columns = [Column(heading="remainders are", align="left")]
    columns += [
        Column(heading=f"{WAYS[way]}{'*' if way == evaluation.remainder else ''}")
        for way in REMAINDERS
    ]
    return columns, list(_ways(evaluation))


def _ways(evaluation: Evaluation) -> Iterator[Sequence[str]]:
    """Yield a row a measure: its name, and its value for each thing done with remainders."""
    padding = int(evaluation.padding.sum())
    padding += int(evaluation.padding_batches.sum()) * evaluation.host_batch
    hangs = map(evaluation.hang, REMAINDERS)
    steps = map(evaluation.num_steps, REMAINDERS)
    yield ("steps/host", *(counts_between(int(s.min()), int(s.max())) for s in steps))
    yield ("hangs", *(Cell(f"at step {hang.step:,}", "error") if hang else "no" for hang in hangs))
    dropped = {"drop": evaluation.dropped_by_host_batch}
    lost = [dropped.get(way, 0) + evaluation.num_left_out for way in REMAINDERS]
    yield ("examples lost", *(Cell(f"{n:,}", "warning" if n else "") for n in lost))
    yield ("padding", *(f"{padding if way == 'pad' else 0:,}" for way in REMAINDERS))
    yield ("XLA shapes", *(f"{evaluation.distinct_shapes(way):,}" for way in REMAINDERS))


def eval_rows(evaluation: Evaluation) -> Records:
    """Return the record of each host."""
    columns = (
        evaluation.num_examples,
        evaluation.num_batches,
        evaluation.remainders,
        evaluation.padding,
        evaluation.padding_batches,
    )

    def cells(start: int, stop: int) -> Sequence[RowsCell]:
        return [list(range(start, stop)), *(column[start:stop] for column in columns)]

    return Records(evaluation.num_hosts, _FIELDS, cells)


def eval_document(evaluation: Evaluation) -> Document:
    """Return the document of `eval`."""
    hang = evaluation.hang(evaluation.remainder)
    ordered = evaluation.dataset.ordered
    pipeline = settings_in_force(evaluation.settings, ordered=ordered)
    return {
        **head("eval", evaluation.dataset.identity),
        **picked(evaluation, "spec num_examples=total num_hosts num_devices"),
        "batch": picked(evaluation, "per_device=device_batch per_host=host_batch"),
        "host_by": pipeline["host_by"],
        "remainder": evaluation.remainder,
        "hosts": eval_rows(evaluation),
        "distinct_shapes": {way: evaluation.distinct_shapes(way) for way in REMAINDERS},
        "dropped_examples": picked(
            evaluation,
            "by_device_batch=dropped_by_device_batch by_host_batch=dropped_by_host_batch",
        ),
        **_of_sharer(evaluation),
        "hangs": hang is not None,
        "hang": None if hang is None else dict(vars(hang)),
        "differing_step": evaluation.differing_step,
        "cures": [dict(vars(cure)) for cure in cures(evaluation)],
        "advice": list(advice(evaluation)),
    }


def _of_sharer(evaluation: Evaluation) -> Document:
    """Return what there is to say where another loader than TFDS's, or stages, decide."""
    if evaluation.is_simple:
        return {}
    settings = evaluation.settings
    versioned = picked(settings, "loader loader_version") if settings.loader_version else {}
    of_examples = "repeated_examples=num_repeated left_out_examples=num_left_out"
    return {**versioned, **picked(evaluation, of_examples)}
