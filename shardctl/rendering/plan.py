"""A plan as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.core.instructions.file_instruction import FileInstruction
from shardctl.core.on_demand import OnDemand
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.plan import Plan, Plans
from shardctl.rendering.text.tables import Column, Screen, paragraph, table_pieces

_ROWS = 40  # file instructions of one plan on a terminal

_COLUMNS = (
    Column(heading="file", align="left", names_files=True),
    Column(heading="skip"),
    Column(heading="take"),
    Column(heading="of"),
    Column(heading="first id"),
    Column(heading="last id"),
)

CSV_HEADER = (
    "spec",
    "host",
    "filename",
    "split",
    "skip",
    "take",
    "examples_in_shard",
    "first_id",
)


def plan_table(plans: Plans, screen: Screen) -> Iterator[str]:
    """Yield a table for each plan, each with its total in the last line."""
    for number, plan in enumerate(plans.plans):
        if number:
            yield "\n"
        host = "" if plan.host is None else f", host {plan.host.index} of {plan.host.count}"
        title = f"{plan.spec}{host} in {plans.dataset.title}"
        yield paragraph(title, screen, style="bold")
        rows = plan.file_instructions.map(_row)
        if rows:
            yield from table_pieces(_COLUMNS, rows, screen, keep=_ROWS)
        yield paragraph(_total(plan), screen)


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
    written = OnDemand(len(plans.plans), lambda index: _plan(plans.plans[index]))
    return {**head("plan", plans.dataset.identity), "plans": written}


def _plan(plan: Plan) -> Document:
    host = None if plan.host is None else {"index": plan.host.index, "count": plan.host.count}
    return {
        "spec": plan.spec,
        "host": host,
        "num_examples": plan.num_examples,
        "file_instructions": plan.file_instructions.map(instruction_record),
    }


def instruction_record(instruction: FileInstruction) -> Document:
    """Return a file instruction with the fields that documents give it."""
    return {
        "filename": instruction.filename,
        "split": instruction.split,
        "skip": instruction.skip,
        "take": instruction.take,
        "examples_in_shard": instruction.examples_in_shard,
        "first_id": instruction.first_id,
    }


def plan_rows(plans: Plans) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each file instruction."""
    for plan in plans.plans:
        yield from rows_of_plan(plan)


def rows_of_plan(plan: Plan) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each file instruction of one host."""
    for instruction in plan.file_instructions:
        yield (plan.spec, plan.host, *instruction_record(instruction).values())
