"""A plan as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from shardctl.core.columns import LONG, Cell, RecordStream, Rows
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.file_instruction import FileInstruction
from shardctl.core.on_demand import OnDemand
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.plan import Plan, Plans
from shardctl.rendering.text.tables import Column, Screen, paragraph, table_pieces

if TYPE_CHECKING:
    from shardctl.core.instructions.reads import Reads

_ROWS = 40  # file instructions of one plan on a terminal

_COLUMNS = (
    Column(heading="file", align="left", names_files=True),
    Column(heading="skip"),
    Column(heading="take"),
    Column(heading="of"),
    Column(heading="first id"),
    Column(heading="last id"),
)

_FIELDS = ("filename", "split", "skip", "take", "examples_in_shard", "first_id")
_SHOWN = ("filename", "skip", "take", "examples_in_shard", "first_id", "last_id")

CSV_HEADER = ("spec", "host", *_FIELDS)

_SOME = 1000  # plans of which the length is looked at
_PIECE = 100  # file instructions of a plan for which columns pay


def plan_table(plans: Plans, screen: Screen) -> Iterator[str]:
    """Yield a table for each plan, each with its total in the last line."""
    for number, plan in enumerate(plans.plans):
        if number:
            yield "\n"
        host = "" if plan.host is None else f", host {plan.host.index} of {plan.host.count}"
        title = f"{plan.spec}{host} in {plans.dataset.title}"
        yield paragraph(title, screen, style="bold")
        if plan.file_instructions:
            yield from table_pieces(_COLUMNS, _rows(plan, plans.dataset), screen, keep=_ROWS)
        yield paragraph(_total(plan), screen)


def _rows(plan: Plan, dataset: Dataset) -> OnDemand[Any]:
    if not _is_long(plan):
        return plan.file_instructions.map(_row)
    reads = _reads(plan, dataset)
    return Rows(len(reads), lambda *rows: reads.select(slice(*rows)).cells(_SHOWN))


def _is_long(plan: Plan) -> bool:
    return len(plan.file_instructions) >= LONG


def _reads(plan: Plan, dataset: Dataset) -> Reads:
    """Return the file instructions as columns; so long a plan has loaded NumPy."""
    from shardctl.core.instructions.reads import reads_of

    return reads_of(dataset, plan.ranges)


def _row(instruction: FileInstruction) -> Sequence[str]:
    numbers = (
        instruction.skip,
        instruction.take,
        instruction.examples_in_shard,
        instruction.first_id,
        instruction.first_id + instruction.take - 1,
    )
    return (instruction.filename, *map(str, numbers))


def _total(plan: Plan) -> str:
    count = len(plan.file_instructions)
    ranges = [piece for piece in plan.ranges if piece.num_examples]
    if not ranges:
        return "total: no examples"
    several = len({piece.split.name for piece in ranges}) > 1
    parts = []
    for piece in ranges:
        name = f"{piece.split.name} " if several else ""
        parts.append(f"{name}{piece.start} to {piece.stop - 1} ({piece.num_examples:,})")
    num_files = plan.num_files
    files = "1 file" if num_files == 1 else f"{num_files:,} files"
    if num_files < count:
        files = f"{count:,} reads of {files}"
    examples = "1 example" if plan.num_examples == 1 else f"{plan.num_examples:,} examples"
    return f"total: {files}, {examples}; ids {', '.join(parts)}"


def plan_document(plans: Plans) -> Document:
    """Return the document of `plan`: one plan for each spec and host."""
    written = OnDemand(len(plans.plans), lambda index: _plan(plans.plans[index], plans.dataset))
    return {**head("plan", plans.dataset.identity), "plans": written}


def _plan(plan: Plan, dataset: Dataset) -> Document:
    host = None if plan.host is None else {"index": plan.host.index, "count": plan.host.count}
    return {
        "spec": plan.spec,
        "host": host,
        "num_examples": plan.num_examples,
        "file_instructions": _records(plan, dataset),
    }


def _records(plan: Plan, dataset: Dataset) -> OnDemand[Document]:
    if _is_long(plan):
        return _reads(plan, dataset).records(_FIELDS)
    fields_of = attrgetter(*_FIELDS)
    return plan.file_instructions.map(
        lambda instruction: dict(zip(_FIELDS, fields_of(instruction), strict=True))
    )


def plan_rows(plans: Plans) -> Iterable[Sequence[object]] | RecordStream:
    """Return a CSV row for each file instruction."""
    some = [len(plan.file_instructions) for plan in plans.plans[:_SOME]]
    if sum(some) < max(LONG, len(some) * _PIECE):
        return chain.from_iterable(map(rows_of_plan, plans.plans))
    return RecordStream(
        CSV_HEADER,
        lambda: chain.from_iterable(_pieces(plan, plans.dataset) for plan in plans.plans),
    )


def _pieces(plan: Plan, dataset: Dataset) -> Iterator[tuple[int, Sequence[Cell]]]:
    host = None if plan.host is None else str(plan.host)
    for count, cells in _reads(plan, dataset).records(_FIELDS).pieces():
        yield count, [plan.spec, host, *cells]


def rows_of_plan(plan: Plan) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each file instruction of one host."""
    fields_of = attrgetter(*_FIELDS)
    for instruction in plan.file_instructions:
        yield (plan.spec, plan.host, *fields_of(instruction))
