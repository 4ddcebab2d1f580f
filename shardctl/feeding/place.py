"""Where a loader that is fed an order begins, and where it goes on after a run that stopped."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import SettingsLike, as_settings
from shardctl.errors import UsageError
from shardctl.feeding.key_order import KeyOrder
from shardctl.files.position_file import PositionRecord, position_text
from shardctl.planning.file_formats import why_not_as_dataset
from shardctl.tfds.position.derived import SHAREABLE, check_same_order, records_of, stretch_of


def begun_order(
    dataset: Any,
    spec: str | None,
    settings: SettingsLike | None,
    *,
    consumed: int,
    states: int,
) -> KeyOrder:
    """Return the order of a spec from a place on, warned of what surprises about it.

    `states` is how many states are given in place of `consumed`.

    Raises:
        UsageError: both are given; as for `KeyOrder`.
    """
    if states and consumed:
        raise UsageError(phrase("{consumed=} and states: one of them", consumed=consumed))
    order = KeyOrder(dataset, spec, as_settings(settings), consumed=consumed)
    not_by_tf_data = why_not_as_dataset(order.dataset)  # and need not
    for warning in order.planned.warnings:
        if not_by_tf_data is None or not warning.startswith(not_by_tf_data):
            warnings.warn(warning, stacklevel=5)  # past @checked and a room's own function
    return order


def record_at(order: KeyOrder, consumed: int) -> PositionRecord:
    """Return the position after so many examples of an order, counted from its start."""
    return PositionRecord(
        dataset=order.dataset.identity,
        spec=order.spec,
        settings=order.settings,
        consumed=consumed,
        stretches=order.stretches,
    )


def continued(
    order: KeyOrder, records: Sequence[PositionRecord], *, besides: Collection[str] = ()
) -> KeyOrder:
    """Return the order from where a run stopped, whose processes had these positions.

    With as many hosts this one goes on with its own state, which is enough then; otherwise what all
    of them have left is shared, as `Position.set_states` does. Settings named by `besides` may be
    other ones, which the order takes over beforehand.

    Raises:
        DatasetError: a state of another dataset.
        UsageError: another spec or other settings, a host whose state is missing, or files that
            repeat without end, of which nothing is left to share.
    """
    if len(records) != 1 or records[0].settings.host != order.settings.host:
        records = records_of([position_text(record) for record in records])
    own = [record for record in records if record.settings.host == order.settings.host]
    for record in own or records:
        check_same_order(
            record,
            order.spec,
            order.settings,
            order.dataset,
            {},
            allow_version=False,
            besides=("host", *besides) if own else (*SHAREABLE, *besides),
        )
    if own:
        return order.at(own[0].consumed, own[0].stretches)
    if order.settings.repeat_files:
        raise UsageError(
            phrase(
                "states of {} processes for other hosts: with {repeat_files=True} the epochs of "
                "each host run into one another without end, so nothing is left over to share",
                len(records),
            )
        )
    return order.at(0, (*records[0].stretches, stretch_of(records)))
