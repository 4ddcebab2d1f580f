"""Located examples as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from operator import attrgetter

from shardctl.core.columns import Records, RecordStream
from shardctl.files.documents import Document
from shardctl.planning.locate import MATCH_FIELDS, Located, Locating, matches_at
from shardctl.rendering.text.step_rows import order_head, order_heading
from shardctl.rendering.text.tables import Screen, cells_of, columns, paragraph, table, table_pieces

_SOURCES = columns("<spec=source consumed=examples")


def locate_table(located: Located | Locating, screen: Screen, *, spec: str) -> Iterator[str]:
    """Yield the pipeline's line and a row for each match, as it is found."""
    order = located.order
    yield from order_heading(spec, order, screen)
    matches = iter(located.matches)
    first = next(matches, None)
    if first is None:
        yield paragraph("no matches", screen)
        return
    batched = "step index_in_batch=in_batch" if order.has_steps else ""
    shown = columns(f"position epoch {batched} id *filename=file index_in_shard=index")
    row = attrgetter(*(column.field for column in shown))
    widest = None
    if isinstance(located, Locating) and located.widest is not None:
        widest = list(map(row, matches_at(order, *located.widest)))
    yield from table_pieces(shown, map(row, chain((first,), matches)), screen, widest=widest)
    if located.sources:
        yield paragraph("handed out by then, the last position included:", screen)
        yield table(_SOURCES, cells_of(_SOURCES, located.sources), screen)


def locate_document(located: Located | Locating) -> Document:
    """Return the document of `locate`."""
    return {
        **order_head("locate", located.order),
        "matches": _records(located),
        **({"sources": list(map(asdict, located.sources))} if located.sources else {}),
    }


def _records(located: Located | Locating) -> Records | RecordStream | list[object]:
    """Return the record of each match; where they are still to come, after a look for the first."""
    if isinstance(located, Located):
        return located.matches.records
    pieces = located.records.pieces()
    first = next(pieces, None)
    if first is None:
        return []
    return RecordStream(MATCH_FIELDS, lambda: chain((first,), pieces))


def locate_rows(located: Located | Locating) -> RecordStream:
    """Return the record of each match."""
    return located.matches.records if isinstance(located, Located) else located.records
