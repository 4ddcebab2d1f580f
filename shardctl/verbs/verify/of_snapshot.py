"""Is the order that was really read still the one that a snapshot pins?"""

from __future__ import annotations

from dataclasses import asdict, replace

from shardctl.verbs.diff.answer import Diff, OrderDifference
from shardctl.verbs.diff.view import cause_line, headline
from shardctl.verbs.verify.answer import FirstDifference, Verification


def beside_snapshot(found: Verification, compared: Diff) -> Verification:
    """Return what came out of reading, said of the snapshot in place of the prediction.

    found: the real order beside the order that is predicted today, up to where they differ.
    compared: the snapshot beside that prediction. So the real order is that of the snapshot as far
        as neither differs, and leaves it where the first of the two does.
    """
    pinned, first, real = compared.expected.snapshot, compared.first, found.first_difference
    rules, version = asdict(pinned.rules), pinned.pipeline.get("loader_version")
    written = {str(pinned.pipeline["loader"]): str(version)} if version else rules
    said = replace(found, snapshot=compared.expected.label, written_with=written)
    if compared.equal or (
        first is not None and real is not None and real.position < first.position
    ):
        return said
    changed = tuple(f"changed since the snapshot: {cause_line(one)}" for one in compared.causes)
    said = replace(said, first_difference=None, notes=(*changed, *said.notes))
    num_read = max((window.stop for window in found.windows), default=0)
    if first is None:
        return replace(said, unequal=(*found.unequal, headline(compared)))
    if real is not None and real.position < first.stop:
        other = f"shardctl predicts another order than was read, from position {real.position:,} on"
        return replace(
            said, unequal=(*found.unequal, f"{other}; whether that is the snapshot's is unknown")
        )
    if first.stop > num_read:
        there = f"the order differs as predicted, {_where(first)}, which was not read"
        return replace(said, unequal=(*found.unequal, f"{there}; --take {first.stop} reads it"))
    return replace(
        said,
        first_difference=FirstDifference(
            position=first.position,
            expected=first.expected,
            found=first.actual,
            read=found.windows[0].read,
            stop=None if first.exact else first.stop,
        ),
    )


def _where(first: OrderDifference) -> str:
    end = "" if first.exact else f" to {first.stop - 1:,}"
    return f"position {first.position:,}{end}"
