"""An audit as tables, a document, and rows of what differs."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from shardctl.base.columns import Records, picked
from shardctl.base.text import counted, printable
from shardctl.draw import tables
from shardctl.draw.step_rows import heading, order_head, pipeline_line, pipeline_record
from shardctl.files.documents import Document
from shardctl.verbs.audit.answer import Audit

if TYPE_CHECKING:  # else a pipe would load what draws
    from shardctl.draw.picture import Paper, Picture

_OF_EPOCH = "trained once again foreign never out_of_turn rolled_back"
_OF_RUN = "log line host first_step last_step num_rolled_back num_missing"
_ROWS = 8  # shown on a terminal


def audit_table(audit: Audit, screen: tables.Screen) -> Iterator[str]:
    """Yield what was trained on by epoch and host, the starts, and the first of what differs."""
    yield from heading(pipeline_line(audit.spec, audit.order), audit.assumed, screen, "bold")
    # A blank of a heading is one `_`, of a field its own.
    named = "out_of_turn=out_of_turn rolled_back=rolled_back"
    shown = tables.columns(f"epoch <host trained once again foreign never {named}")
    rows = sorted((*audit.epochs, *audit.hosts), key=attrgetter("epoch"))
    yield tables.table(shown, tables.cells_of(shown, rows), screen, keep=4 * _ROWS)
    yield from tables.pictures(audit, screen)
    named = "first_step=first last_step=last num_rolled_back=rolled_back num_missing=missing"
    starts = tables.columns(f"<log line <host {named}")
    yield f"\nsteps of {counted(len(audit.runs), 'start')}\n"
    yield tables.table(starts, tables.cells_of(starts, audit.runs), screen, keep=_ROWS)
    if audit.equal:
        known = all(one.out_of_turn is not None for one in audit.epochs)
        yield f"\nevery example that was due was trained on once{', in turn' * known}\n"
        return
    yield "\nthe first of each kind of difference\n"
    firsts = tables.columns("<kind epoch <host step position <expected <trained <log line")
    cells = [[tables.cell_of(one[c.field], c) for c in firsts] for one in audit.first]
    yield tables.table(firsts, cells, screen)


def audit_document(audit: Audit) -> Document:
    """Return the document of `audit`."""
    return {
        **order_head("audit", audit.order),
        "spec": audit.spec,
        "pipeline": pipeline_record(audit.order),
        "assumptions": list(audit.assumed),
        **picked(audit, "equal"),
        "epochs": [picked(one, f"epoch {_OF_EPOCH}") for one in audit.epochs],
        "hosts": [picked(one, f"epoch host {_OF_EPOCH}") for one in audit.hosts],
        "starts": [picked(one, _OF_RUN) for one in audit.runs],
        "first_differences": list(audit.first),
        "num_differences": len(audit.differences),
    }


def audit_rows(audit: Audit) -> Records:
    """Return the record of each difference."""
    return audit.differences


# As pictures.


def audit_pictures(audit: Audit, paper: Paper) -> tuple[Picture, ...]:
    """Return a bar for each epoch: examples trained on, again or foreign, never, out of turn."""
    from shardctl.draw.picture import Bar, Picture, Series, bar_lines

    names = ("trained", "again", "never", "out_of_turn")
    series = []
    for name in names:
        counts = [getattr(one, name) or 0 for one in audit.epochs]
        bars = [Bar(n, n, f"{n:,}", "differs" * (n > 0 and name != "trained")) for n in counts]
        series.append(Series(name.replace("_", " "), bars))
    num = len(audit.differences)
    return (
        Picture(
            title=f"What was trained on of {printable(audit.spec)}",
            caption="A bar is a number of examples. Highlighted: what differs from the order.",
            said=f"{num:,} differences from the order." if num else "All once, and in turn.",
            marks=tuple(bar_lines("epoch", [str(e.epoch) for e in audit.epochs], series, paper)),
        ),
    )
