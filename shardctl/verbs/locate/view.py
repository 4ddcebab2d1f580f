"""Located examples as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from operator import attrgetter

from shardctl.base.columns import RecordStream
from shardctl.draw.step_rows import order_head, order_heading
from shardctl.draw.tables import Screen, cells_of, columns, paragraph, table, table_pieces
from shardctl.files.documents import Document
from shardctl.verbs.locate.answer import Located

_SOURCES = columns("<spec=source consumed=examples")


def locate_table(located: Located, screen: Screen, *, spec: str) -> Iterator[str]:
    """Yield the pipeline's line and a row for each match."""
    order = located.order
    yield from order_heading(spec, order, screen)
    if not located.matches:
        yield paragraph("no matches", screen)
        return
    batched = "step index_in_batch=in_batch" if order.has_steps else ""
    shown = columns(f"position epoch {batched} id *filename=file index_in_shard=index")
    row = attrgetter(*(column.field for column in shown))
    yield from table_pieces(shown, located.matches.map(row), screen)
    if located.sources:
        yield paragraph("handed out by then, the last position included:", screen)
        yield table(_SOURCES, cells_of(_SOURCES, located.sources), screen)


def locate_document(located: Located) -> Document:
    """Return the document of `locate`."""
    return {
        **order_head("locate", located.order),
        "matches": located.matches.records,
        **({"sources": list(map(asdict, located.sources))} if located.sources else {}),
    }


def locate_rows(located: Located) -> RecordStream:
    """Return the record of each match."""
    return located.matches.records
