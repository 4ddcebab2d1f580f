"""From the states of a run that stopped to the place where this host goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from shardctl.core.arguments.checked import checked
from shardctl.core.arguments.kinds import Kind
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import SettingsLike
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import DatasetError, UsageError
from shardctl.feeding.key_order import KeyOrder
from shardctl.feeding.place import begun_order, continued
from shardctl.files import fields
from shardctl.files.json_text import parse_json
from shardctl.files.position_file import (
    POSITION_KIND,
    PositionRecord,
    position_of_text,
)
from shardctl.grain.deal import Deal
from shardctl.grain.place import place_of_text, record_of_place


def order_from(
    dataset: Any,
    spec: str | None,
    settings: SettingsLike | None,
    *,
    consumed: int,
    states: Sequence[bytes],
) -> KeyOrder:
    """Return the order of a spec from a place on, or from where states say that a run stopped."""
    order = begun_order(dataset, spec, settings, consumed=consumed, states=len(states))
    return order_after(order, states) if states else order


def order_after(order: KeyOrder, states: Sequence[bytes]) -> KeyOrder:
    """Return the order from where a run stopped, whose processes had these states of Grain.

    Raises:
        DatasetError, UsageError: a state is none, or as for `continued`.
    """
    records = [_record(state, order, f"states[{index}]") for index, state in enumerate(states)]
    return continued(order, records)


@checked
def consumed(state: GrainState, *, batch: int = 1) -> int:
    """Return how many examples had been handed out, by the state of an iterator.

    `state` is what `get_state` returned, or a file of Grain's checkpoint holds. That of a
    `DataLoader` over a `shardctl.grain.Sampler` says all, and counts from the order's start. That
    of an iterator behind a `MapDataset` counts elements from where the dataset began: `batch` is
    the size of its batches, and the last of them is counted as a whole one.

    >>> consumed({"next_index": 7}, batch=32)
    224

    Raises:
        DatasetError: a state of another sampler, or that is none.
    """
    if is_of_data_loader(state):
        return consumed_of(state, source="the state")
    return examples_of_elements(elements_of_iterator(state), batch)


def examples_of_elements(elements: int, batch: int) -> int:
    """Return how many examples so many elements hold, each a batch.

    Raises:
        UsageError: no size of a batch, or more examples than an int64 counts.
    """
    if not 1 <= batch <= INT64_MAX // max(elements, 1):
        raise UsageError(phrase("{batch=}: {} elements of that size", elements, batch=batch))
    return elements * batch


def consumed_of(state: Mapping[str, object], *, source: str) -> int:
    """Return how many examples were handed out by a DataLoader, counted from the order's start.

    Raises:
        DatasetError: it is no state of a DataLoader over a sampler of ours, or damaged.
    """
    return _consumed(_place(state, source), state, source)


def _record(state: bytes, order: KeyOrder, source: str) -> PositionRecord:
    document = fields.mapping(parse_json(state, source=source), source)
    if document.get("kind") == POSITION_KIND:
        return position_of_text(state, source=source)
    if not is_of_data_loader(document):
        raise DatasetError(
            f"{source}: the state of an iterator of a MapDataset does not say of which order; give "
            "what map_dataset(..).position(state) makes of it"
        )
    place = _place(document, source)
    consumed = _consumed(place, document, source)
    return record_of_place(place, order.dataset, consumed, source=source)


def _place(state: Mapping[str, object], source: str) -> Mapping[str, object]:
    return place_of_text(sampler_of(state, source=source), source=f"{source}, its sampler")


def _consumed(place: Mapping[str, object], state: Mapping[str, object], source: str) -> int:
    records = records_of_data_loader(state, source=source)
    with fields.said_about(source):
        before = fields.count(place.get("consumed"), "consumed")
        deal = Deal(
            size=fields.count(place.get("size"), "size") - before,
            workers=fields.count(place.get("workers"), "workers"),
            batch=fields.count(place.get("batch"), "batch"),
        )
        return before + deal.consumed(records)


# What the states of Grain's iterators say: how many records each worker has read.
#
# Those of a `DataLoader` and of the iterators behind a `MapDataset` as Grain 0.2.18 writes them.


def _document_of(value: Any) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise UsageError("what get_state() returned, or a checkpoint's file holds, is needed")
    found = parse_json(value, source="the state")
    return fields.mapping(found, "the state")


# What `get_state` of an iterator returns: bytes of a DataLoader's, a mapping of a MapDataset's.
GrainState = Annotated[
    Any, Kind(take=_document_of, needed="a state of a Grain iterator", several="states of Grain")
]


def is_of_data_loader(state: Mapping[str, object]) -> bool:
    """Return whether a state is that of a DataLoader, which names its sampler."""
    return "last_seen_indices" in state


def sampler_of(state: Mapping[str, object], *, source: str) -> str:
    """Return what the sampler of a DataLoader was called, by its state."""
    with fields.said_about(source):
        return fields.text(state.get("sampler"), "sampler")


def records_of_data_loader(state: Mapping[str, object], *, source: str) -> list[int]:
    """Return how many records each worker of a DataLoader has read, in their order.

    Grain writes the last index of the sampler that each has read (`_DataLoaderStateIterDataset`).

    >>> records_of_data_loader(
    ...     {"version": 2, "worker_count": 2, "last_seen_indices": {"0": 6, "1": -1}}, source="it")
    [4, 0]

    Raises:
        DatasetError: a state of another version, or damaged.
    """
    with fields.said_about(source):
        if state.get("version") != 2:
            raise DatasetError(f"version {fields.shown(state.get('version'))} of Grain's states")
        count = max(fields.count(state.get("worker_count"), "worker_count"), 1)
        last = fields.mapping(state.get("last_seen_indices"), "last_seen_indices")
        if {*last} != {str(worker) for worker in range(count)}:
            raise DatasetError(f"last_seen_indices of {len(last)} workers, not of {count}")
        records = []
        for worker in range(count):
            index = last[str(worker)]
            if isinstance(index, bool) or not isinstance(index, int):
                raise DatasetError(f"last_seen_indices: {fields.shown(index)} is no index")
            number, wrong = divmod(index - worker + count, count)
            if wrong or number < 0:
                raise DatasetError(
                    f"last_seen_indices: worker {worker} of {count} does not read index {index}; "
                    "the sampler is for a DataLoader with NoSharding()"
                )
            records.append(number)
        return records


def elements_of_iterator(state: Mapping[str, object]) -> int:
    """Return how many elements an iterator of a MapDataset has handed out, with any workers.

    >>> elements_of_iterator({"next_index": 7})
    7

    Raises:
        DatasetError: it is no such state, or workers took other turns than one after the other.
    """
    if "next_index" in state:
        return fields.count(state["next_index"], "next_index")
    if "iterators_in_use_states" not in state:
        raise DatasetError(
            "the state is of no iterator of a DataLoader or of MapDataset.to_iter_dataset() with "
            f"mp_prefetch() or without: {json.dumps(sorted(map(str, state)))[:200]}"
        )
    workers = fields.items(state["iterators_in_use_states"], "iterators_in_use_states")
    counts = [
        0
        if worker is None
        else elements_of_iterator(fields.mapping(worker, "iterators_in_use_states"))
        for worker in workers
    ]
    total = sum(counts)
    if counts != [len(range(worker, total, len(counts))) for worker in range(len(counts))]:
        raise DatasetError(
            f"the workers have handed out {', '.join(map(str, counts))} elements, not one after "
            "the other"
        )
    return total
