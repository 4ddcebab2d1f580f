"""Is the order that was really read still the one that a snapshot pins?"""

from __future__ import annotations

from dataclasses import asdict, replace

from shardctl.verbs.diff.answer import Diff
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
    said = replace(said, notes=(*changed, *said.notes))
    if first is None:  # the same ids, of other examples
        return replace(said, unequal=(*found.unequal, headline(compared)))
    why = None
    if real is not None and real.position < first.stop:
        why = (
            f"another order was read than shardctl predicts, from position "
            f"{real.position:,} on; whether that is the order of the snapshot is unknown"
        )
    elif first.stop > max((window.stop for window in found.windows), default=0):
        why = (
            f"the prediction differs at position {first.position:,}, which was not read; "
            f"--take {first.stop} reads it"
        )
    if why is not None:
        # All three agree as far as the prediction is that of the snapshot.
        agreed = (replace(one, stop=min(one.stop, first.position)) for one in found.windows)
        unequal = (*found.unequal, why)
        return replace(said, first_difference=None, windows=tuple(agreed), unequal=unequal)
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
