"""How an evaluation fills its batches, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.core.on_demand import OnDemand
from shardctl.core.settings.document import settings_in_force
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.eval.advice import advice, cures
from shardctl.planning.eval.evaluation import REMAINDERS, Evaluation, Remainder
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.quantities import counts_between
from shardctl.rendering.text.tables import (
    Cell,
    Column,
    Look,
    Screen,
    paragraph,
    table,
    table_pieces,
)

_ROWS = 8  # hosts shown on a terminal
WAYS: dict[Remainder, str] = {"ragged": "left ragged", "drop": "dropped", "pad": "padded"}
_HEADINGS = ("host", "examples", "batches", "remainder", "padding", "padding batches")

CSV_HEADER = ("index", "num_examples", "num_batches", "remainder", "padding", "padding_batches")


def eval_table(evaluation: Evaluation, screen: Screen) -> Iterator[str]:
    """Yield what each host gets, what becomes of remainders, and what to do about it."""
    batch = f"{evaluation.device_batch:,}"
    title = (
        f"{evaluation.spec} in {evaluation.dataset.title}: {counted(evaluation.total, 'example')}, "
        f"{counted(evaluation.num_hosts, 'host')} of {counted(evaluation.num_devices, 'device')}, "
        f"batches of {batch} a device, {evaluation.host_batch:,} a host"
    )
    yield paragraph(title, screen, style="bold")
    columns = [Column(heading=heading) for heading in _HEADINGS]
    records = _hosts(evaluation)
    rows = OnDemand(len(records), lambda i: (str(i), *(f"{number:,}" for number in records[i][1:])))
    yield from table_pieces(columns, rows, screen, keep=_ROWS)
    yield "\n"
    if screen.pictures:
        from shardctl.rendering.text.drawers import picture_lines

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
    hangs = evaluation.hang(evaluation.remainder) is not None
    for number, line in enumerate(advice(evaluation)):
        look: Look = "error" if hangs and number == 0 else ""  # where it hangs is said first
        yield paragraph(f"- {as_options(line)}", screen, style=look)


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
    hangs = [evaluation.hang(way) for way in REMAINDERS]
    lost = {"drop": evaluation.dropped_by_host_batch}
    padding = int(evaluation.padding.sum())
    padding += int(evaluation.padding_batches.sum()) * evaluation.host_batch
    steps = [evaluation.num_steps(way) for way in REMAINDERS]
    yield ("steps/host", *(counts_between(int(s.min()), int(s.max())) for s in steps))
    yield ("hangs", *(Cell(f"at step {hang.step:,}", "error") if hang else "no" for hang in hangs))
    always = evaluation.num_left_out
    yield ("examples lost", *(_lost(lost.get(way, 0) + always) for way in REMAINDERS))
    yield ("padding", *(f"{padding if way == 'pad' else 0:,}" for way in REMAINDERS))
    yield ("XLA shapes", *(f"{evaluation.distinct_shapes(way):,}" for way in REMAINDERS))


def _lost(count: int) -> str:
    return Cell(f"{count:,}", "warning" if count else "")


def _hosts(evaluation: Evaluation) -> OnDemand[tuple[int, ...]]:
    """Return the record of each host, with the fields of the CSV header."""
    columns = (
        evaluation.num_examples,
        evaluation.num_batches,
        evaluation.remainders,
        evaluation.padding,
        evaluation.padding_batches,
    )
    return OnDemand(
        evaluation.num_hosts, lambda index: (index, *(int(column[index]) for column in columns))
    )


def eval_document(evaluation: Evaluation) -> Document:
    """Return the document of `eval`."""
    hang = evaluation.hang(evaluation.remainder)
    records = _hosts(evaluation)
    ordered = evaluation.dataset.ordered
    pipeline = settings_in_force(evaluation.settings, ordered=ordered)
    return {
        **head("eval", evaluation.dataset.identity),
        "spec": evaluation.spec,
        "num_examples": evaluation.total,
        "num_hosts": evaluation.num_hosts,
        "num_devices": evaluation.num_devices,
        "batch": {"per_device": evaluation.device_batch, "per_host": evaluation.host_batch},
        "host_by": pipeline["host_by"],
        "remainder": evaluation.remainder,
        "hosts": OnDemand(
            len(records), lambda index: dict(zip(CSV_HEADER, records[index], strict=True))
        ),
        "distinct_shapes": {way: evaluation.distinct_shapes(way) for way in REMAINDERS},
        "dropped_examples": {
            "by_device_batch": evaluation.dropped_by_device_batch,
            "by_host_batch": evaluation.dropped_by_host_batch,
        },
        **_of_sharer(evaluation),
        "hangs": hang is not None,
        "hang": None if hang is None else dict(vars(hang)),
        "differing_step": evaluation.differing_step,
        "cures": [dict(vars(cure)) for cure in cures(evaluation)],
        "advice": list(map(as_options, advice(evaluation))),
    }


def _of_sharer(evaluation: Evaluation) -> Document:
    """Return what there is to say where another loader than TFDS's, or stages, decide."""
    if evaluation.is_simple:
        return {}
    settings = evaluation.settings
    versioned = {"loader": settings.loader, "loader_version": settings.loader_version}
    return {
        **(versioned if settings.loader_version else {}),
        "repeated_examples": evaluation.num_repeated,
        "left_out_examples": evaluation.num_left_out,
    }


def eval_rows(evaluation: Evaluation) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each host."""
    yield from _hosts(evaluation)
