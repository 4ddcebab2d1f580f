"""A plan as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.base.columns import (
    LONG,
    OnDemand,
    Pieces,
    Records,
    RecordStream,
    record_of,
    records_of,
)
from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset
from shardctl.draw.tables import Screen, columns, paragraph, table_pieces
from shardctl.files.documents import Document
from shardctl.saved.head import head, kind_head
from shardctl.verbs.plan.answer import Plan, Plans

_ROWS = 40  # file instructions of one plan on a terminal

_COLUMNS = columns("<filename=file skip take examples_in_shard=of first_id last_id")
_SHOWN = [column.field for column in _COLUMNS]
_FIELDS = "filename split skip take examples_in_shard first_id"


def plan_table(plans: Plans, screen: Screen) -> Iterator[str]:
    """Yield a table for each plan, each with its total in the last line."""
    for number, plan in enumerate(plans.plans):
        if number:
            yield "\n"
        host = "" if plan.host is None else f", host {plan.host.index} of {plan.host.count}"
        title = f"{plan.spec}{host} in {plans.dataset.title}"
        yield paragraph(title, screen, style="bold")
        if plan.file_instructions:
            rows = _records(plan, plans.dataset, _SHOWN)
            yield from table_pieces(_COLUMNS, rows, screen, keep=_ROWS)
        yield paragraph(_total(plan), screen)


def _records(plan: Plan, dataset: Dataset | None, fields: Sequence[str]) -> Records:
    """Return the file instructions as columns; so long a plan has loaded NumPy."""
    if dataset is None or len(plan.file_instructions) < LONG:
        return records_of(fields, plan.file_instructions)
    from shardctl.spec.reads import reads_of

    return reads_of(dataset, plan.ranges).records(fields)


def _total(plan: Plan) -> str:
    num_files, count = plan.num_files, len(plan.file_instructions)
    files = counted(num_files, "file")
    # A sum of slices may read a file several times.
    if num_files < count:
        files = f"{count:,} reads of {files}"
    return f"total: {files}, {counted(plan.num_examples, 'example')}"


def plan_document(plans: Plans | Plan) -> Document:
    """Return the document of `plan`: one plan for each spec and host."""
    if isinstance(plans, Plan):
        return {**kind_head("plan"), "dataset": None, "plans": [_plan(plans, None)]}
    written = OnDemand(len(plans.plans), lambda index: _plan(plans.plans[index], plans.dataset))
    return {**head("plan", plans.dataset.identity), "plans": written}


def _plan(plan: Plan, dataset: Dataset | None) -> Document:
    return {
        "spec": plan.spec,
        "host": record_of(plan.host, "index count"),
        "num_examples": plan.num_examples,
        "file_instructions": _records(plan, dataset, _FIELDS.split()),
    }


def plan_rows(plans: Plans | Plan) -> RecordStream:
    """Return a row for each file instruction."""
    several = plans.plans if isinstance(plans, Plans) else (plans,)

    def pieces() -> Pieces:
        for plan in several:
            host = None if plan.host is None else str(plan.host)
            dataset = plans.dataset if isinstance(plans, Plans) else None
            for count, cells in _records(plan, dataset, _FIELDS.split()).pieces():
                yield count, [plan.spec, host, *cells]

    return RecordStream(f"spec host {_FIELDS}", pieces)
