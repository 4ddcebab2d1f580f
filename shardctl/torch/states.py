"""The states of samplers and loaders: positions as mappings, which `torch.save` and JSON keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from shardctl.core.arguments.checked import checked
from shardctl.errors import DatasetError
from shardctl.feeding.key_order import KeyOrder, continued, kind_of_state
from shardctl.feeding.key_order import order_from as order_of_states
from shardctl.files import fields
from shardctl.files.position_file import POSITION_KIND, PositionRecord, position_of_text

# Where torchdata's StatefulDataLoader 0.11 keeps the state of a sampler, without workers and with.
_OF_BATCHES = "_sampler_iter_state"
_OF_EXAMPLES = "_index_sampler_state"  # where it makes no batches
_OF_WORKERS = "_snapshot"


# What `state_dict` of a sampler or a loader returns, or `get_state` of a Position.
TorchState = Annotated[
    Any,
    kind_of_state(
        "what state_dict() returned, or a position's get_state()",
        "a state of a sampler or loader",
        "states",
    ),
]


@checked
def consumed(state: TorchState) -> int:
    """Return how many examples had been handed out, counted from the order's start.

    `state` is what `state_dict` returned of a `Sampler`, a `data_loader` or a StatefulDataLoader
    over a `Sampler`.

    Raises:
        DatasetError: it is of another sampler, damaged, or older than the last batch.
    """
    return record_of(state, source="the state").consumed


def record_of(state: Mapping[str, object], *, source: str) -> PositionRecord:
    """Return the position that a state holds; `source` names it in errors.

    Raises:
        DatasetError: it is of another sampler, damaged, or older than the last batch.
    """
    with fields.said_about(source):
        if state.get("kind") != POSITION_KIND:
            state = _of_sampler(state)
        try:
            text = json.dumps(dict(state)).encode("ascii")
        except (TypeError, ValueError) as error:
            raise DatasetError("it holds values that no state of shardctl.torch has") from error
    return position_of_text(text, source=source)


def continued_order(order: KeyOrder, states: Sequence[Mapping[str, object]]) -> KeyOrder:
    """Return the order from where a run stopped, in the pass in which it was.

    Raises:
        DatasetError, UsageError: as for `record_of` and `continued`.
    """
    records = [record_of(state, source=f"states[{i}]") for i, state in enumerate(states)]
    settings = replace(order.settings, pass_index=records[0].settings.pass_index)
    if settings != order.settings:
        order = KeyOrder(order.dataset, order.spec, settings)
    return continued(order, records)


order_from = partial(order_of_states, after=continued_order)


def _of_sampler(state: Mapping[str, object]) -> Mapping[str, object]:
    """Return the sampler's state within that of a StatefulDataLoader."""
    if _OF_WORKERS in state:
        late = fields.count(state.get("_steps_since_snapshot"), "_steps_since_snapshot")
        if late:
            raise DatasetError(
                f"it is {late} batches older than the last one; give StatefulDataLoader "
                "snapshot_every_n_steps=1, which is its default"
            )
        snapshot = fields.mapping(state[_OF_WORKERS], _OF_WORKERS)
        state = fields.mapping(snapshot.get("_main_snapshot"), "_main_snapshot")
    of_batches = state.get(_OF_BATCHES)
    found = of_batches.get("sampler_state") if isinstance(of_batches, Mapping) else None
    found = state.get(_OF_EXAMPLES) if found is None else found
    if not isinstance(found, Mapping) or found.get("kind") != POSITION_KIND:
        raise DatasetError(
            "it is of no Sampler of shardctl.torch: give what its state_dict() returned, or that "
            "of data_loader or of a StatefulDataLoader(.., batch_size=B, sampler=it)"
        )
    return found
