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

_FIELDS = "index before again after lost repeated"
_ROWS = 16  # hosts shown on a terminal


def rehearse_table(found: Rehearsal, screen: Screen) -> Iterator[str]:
    """Yield the pipeline, where it stopped, what each host read, and whether that is all."""
    title = found.function or ""
    if found.dataset is not None and found.spec is not None:
        line = reading_line(found.spec, found.dataset, found.pipeline)
        title = f"{title}: {line}" if title else line
    yield from heading(title, found.assumptions, screen, "bold")
    if found.refused is not None:
        yield paragraph(f"cannot be resumed exactly: {found.refused}", screen, style="error")
        return
    at = f"stopped: {counted(found.num_hosts, 'host')} at step {found.kill_at:,}"
    at += "" if found.seed is None else f", drawn with --seed {found.seed}"
    yield paragraph(at, screen)
    by = found.function if found.resumed_by == "function" else "shardctl's plan"
    yield paragraph(
        f"resumed: {counted(found.to_hosts, 'host')} from step {found.saved_at:,}, by {by}", screen
    )
    shown = "index=host before=before_the_stop after=after_it lost repeated"
    if found.saved_at != found.kill_at:
        shown = shown.replace(" after=", " again=of_it_again after=")
    shape = columns(shown)
    yield table(shape, cells_of(shape, found.runs), screen, keep=_ROWS)
    yield paragraph(_verdict(found), screen, style="" if found.holds else "error")
    for what in ("lost", "repeated"):
        if names := getattr(found, f"{what}_ids"):
            more = " .." if getattr(found, what) > len(names) else ""
            yield paragraph(f"{what}: {', '.join(names)}{more}", screen)
    yield paragraph(f"read by TensorFlow {found.versions['tensorflow']}", screen)
    yield from paragraphs(screen, *(f"note: {note}" for note in found.notes))


def _verdict(found: Rehearsal) -> str:
    total = counted(found.num_examples, "example")
    if found.lost or found.repeated:
        return f"lost {found.lost:,}, repeated {found.repeated:,} of {total}"
    if found.moved:
        return f"nothing is lost or repeated of {total}, but {found.moved:,} come in another order"
    order = "in the same order" if found.moved == 0 else "in another order, as on other hosts"
    return f"nothing is lost or repeated: {total}, each as often as uninterrupted, {order}"


def rehearse_document(found: Rehearsal) -> Document:
    """Return the answer as a document; `hosts` has a record a host."""
    identity = None if found.dataset is None else found.dataset.identity
    fields = "function spec pipeline num_hosts to_hosts kill_at saved_at seed resumed_by"
    counts = "num_examples lost repeated moved holds refused hosts=runs lost_ids repeated_ids notes"
    return {
        **head("rehearse", identity, assumptions=found.assumptions),
        **picked(found, f"{fields} {counts}"),
        **found.versions,
    }


def rehearse_rows(found: Rehearsal) -> Records:
    """Return a record a host."""
    return records_of(_FIELDS, found.runs)
