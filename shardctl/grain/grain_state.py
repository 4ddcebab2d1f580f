"""What the states of Grain's iterators say: how many records each worker has read.

Those of a `DataLoader` and of the iterators behind a `MapDataset` as Grain 0.2.18 writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from shardctl.core.arguments.kinds import Kind
from shardctl.errors import DatasetError, UsageError
from shardctl.files import fields
from shardctl.files.json_text import parse_json


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
