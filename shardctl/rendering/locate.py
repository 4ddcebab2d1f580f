"""Located examples as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.columns import RecordStream
from shardctl.core.order.order import Order
from shardctl.files.documents import Document
from shardctl.planning.locate import MATCH_FIELDS, Located, Match
from shardctl.rendering.text.step_rows import order_head, order_heading
from shardctl.rendering.text.tables import Column, Screen, paragraph, table, table_pieces

CSV_HEADER = MATCH_FIELDS


def locate_table(located: Located, screen: Screen, *, spec: str) -> Iterator[str]:
    """Yield the pipeline's line and a row for each match."""
    order = located.order
    yield from order_heading(spec, order, screen)
    if not located.matches:
        yield paragraph("no matches", screen)
        return
    columns = [Column(heading="position"), Column(heading="epoch")]
    if order.has_steps:
        columns += [Column(heading="step"), Column(heading="in batch")]
    columns += [
        Column(heading="id"),
        Column(heading="file", align="left", names_files=True),
        Column(heading="index"),
    ]
    rows = located.matches.map(lambda match: _row(order, match))
    yield from table_pieces(columns, rows, screen)
    if located.sources:
        yield paragraph("handed out by then, the last position included:", screen)
        columns = [Column(heading="source", align="left"), Column(heading="examples")]
        yield table(columns, [[one.spec, f"{one.consumed:,}"] for one in located.sources], screen)


def _row(order: Order, match: Match) -> list[str]:
    cells: list[object] = [match.position, match.epoch]
    if order.has_steps:
        cells += [match.step, match.index_in_batch]
    return [str(cell) for cell in (*cells, match.id, match.filename, match.index_in_shard)]


def locate_document(located: Located) -> Document:
    """Return the document of `locate`."""
    return {
        **order_head("locate", located.order),
        "matches": located.matches.records,
        **_sources(located),
    }


def _sources(located: Located) -> Document:
    """Return how much of each source is handed out by then, nothing where there is one alone."""
    if not located.sources:
        return {}
    return {"sources": [{"spec": one.spec, "consumed": one.consumed} for one in located.sources]}


def locate_rows(located: Located) -> RecordStream:
    """Return the record of each match."""
    return located.matches.records
