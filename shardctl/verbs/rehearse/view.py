"""A rehearsal as text, document and rows."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.base.columns import Records, picked, records_of
from shardctl.base.text import counted
from shardctl.draw.step_rows import heading, reading_line
from shardctl.draw.tables import Screen, cells_of, columns, paragraph, paragraphs, table
from shardctl.files.documents import Document
from shardctl.saved.head import head
from shardctl.verbs.rehearse.answer import Rehearsal

_ROWS = 16  # hosts shown on a terminal
_COLUMNS = columns("index=host before=before_stop again=of_it_again after=after_it lost repeated")


def rehearse_table(found: Rehearsal, screen: Screen) -> Iterator[str]:
    """Yield the pipeline, where it stopped, what each host read, and whether that is all."""
    line = reading_line(found.spec or "mixture", found.dataset, found.pipeline)
    line = line if found.function is None else f"{found.function}: {line}"
    yield from heading(line, found.assumptions, screen, "bold")
    if found.refused is not None:
        yield paragraph(f"cannot be resumed exactly: {found.refused}", screen, style="error")
        return
    stopped = f"stopped: {counted(found.num_hosts, 'host')} at step {found.kill_at:,}"
    by = found.function if found.resumed_by == "function" else "shardctl's plan"
    resumed = f"resumed: {counted(found.to_hosts, 'host')} from step {found.saved_at:,}, by {by}"
    yield from paragraphs(screen, stopped, resumed)
    yield table(_COLUMNS, cells_of(_COLUMNS, found.runs), screen, keep=_ROWS)
    yield from paragraphs(screen, *_verdict(found), style="" if found.holds else "error")
    notes = (f"note: {note}" for note in found.notes)
    yield from paragraphs(screen, f"read by TensorFlow {found.versions['tensorflow']}", *notes)


def _verdict(found: Rehearsal) -> Iterator[str]:
    total = counted(found.num_examples, "example")
    if found.lost or found.repeated:
        yield f"lost {found.lost:,}, repeated {found.repeated:,} of {total}"
        yield f"the first of them: {', '.join(found.differing_ids)}"
    else:
        order = "in another order, as on other hosts"
        if found.moved is not None:
            order = f"but {found.moved:,} in another order" if found.moved else "in the same order"
        yield f"nothing is lost or repeated: {total}, each as often as uninterrupted, {order}"
    if found.unread or found.read_twice:
        yield (
            f"without a stop {counted(found.num_hosts, 'host')} read {found.unread:,} less "
            f"and {found.read_twice:,} more than the function reads as 1 host"
        )


def rehearse_document(found: Rehearsal) -> Document:
    """Return the answer as a document; `hosts` has a record a host."""
    fields = "function spec pipeline num_hosts to_hosts kill_at saved_at resumed_by refused"
    counts = "num_examples lost repeated moved unread read_twice holds hosts=runs"
    return {
        **head("rehearse", found.dataset.identity, assumptions=found.assumptions),
        **picked(found, f"{fields} {counts} differing_ids notes"),
        **found.versions,
    }


def rehearse_rows(found: Rehearsal) -> Records:
    """Return a record a host."""
    return records_of("index before again after lost repeated", found.runs)
