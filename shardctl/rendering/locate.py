"""Located examples as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.columns import Records
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.locate import MATCH_FIELDS, Located
from shardctl.rendering.text.order_records import pipeline_line
from shardctl.rendering.text.tables import Column, Screen, paragraph, table

CSV_HEADER = MATCH_FIELDS


def locate_table(located: Located, screen: Screen, *, spec: str) -> Iterator[str]:
    """Yield the pipeline's line and a row for each match."""
    yield paragraph(pipeline_line(spec, located.order), screen)
    if not located.matches:
        yield paragraph("no matches", screen)
        return
    batched = located.order.has_steps
    columns = [Column(heading="position"), Column(heading="epoch")]
    if batched:
        columns += [Column(heading="step"), Column(heading="in batch")]
    columns += [
        Column(heading="id"),
        Column(heading="file", align="left", names_files=True),
        Column(heading="index"),
    ]
    rows = []
    for match in located.matches:
        cells: list[object] = [match.position, match.epoch]
        if batched:
            cells += [match.step, match.index_in_batch]
        rows.append(
            [str(cell) for cell in (*cells, match.id, match.filename, match.index_in_shard)]
        )
    yield table(columns, rows, screen)
    if located.sources:
        yield paragraph("handed out by then, the last position included:", screen)
        columns = [Column(heading="source", align="left"), Column(heading="examples")]
        yield table(columns, [[one.spec, f"{one.consumed:,}"] for one in located.sources], screen)


def locate_document(located: Located) -> Document:
    """Return the document of `locate`."""
    return {
        **head("locate", located.order.dataset.identity),
        "matches": located.matches.records,
        **_sources(located),
    }


def _sources(located: Located) -> Document:
    """Return how much of each source is handed out by then, nothing where there is one alone."""
    if not located.sources:
        return {}
    return {"sources": [{"spec": one.spec, "consumed": one.consumed} for one in located.sources]}


def locate_rows(located: Located) -> Records:
    """Return the record of each match."""
    return located.matches.records
