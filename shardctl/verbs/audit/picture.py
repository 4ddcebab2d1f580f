"""An audit as bars: of each epoch what was trained on, and what differs."""

from __future__ import annotations

from shardctl.base.text import printable
from shardctl.draw.picture import Bar, Paper, Picture, Series, bar_lines
from shardctl.verbs.audit.answer import Audit


def audit_pictures(audit: Audit, paper: Paper) -> tuple[Picture, ...]:
    """Return a bar for each epoch: examples trained on, again or foreign, never, out of turn."""
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
