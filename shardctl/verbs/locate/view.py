"""Located examples as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from shardctl.base.columns import RecordStream
from shardctl.draw.step_rows import order_head, order_heading
from shardctl.draw.tables import Screen, columns, paragraph, table_pieces
from shardctl.files.documents import Document
from shardctl.verbs.locate.answer import Located


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


def locate_document(located: Located) -> Document:
    """Return the document of `locate`."""
    return {**order_head("locate", located.order), "matches": located.matches.records}


def locate_rows(located: Located) -> RecordStream:
    """Return the record of each match."""
    return located.matches.records
