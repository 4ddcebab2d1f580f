"""States as Grain 0.2.18 wrote them, without Grain."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.grain.states import (
    consumed,
    elements_of_iterator,
    records_of_data_loader,
)

# As DataLoaderIterator.get_state wrote them, after 0 and 5 batches of 4 and 0, 1 and 2 workers.
OF_LOADERS: list[tuple[int, int, dict[str, int], list[int]]] = [
    (0, -1, {"0": -1}, [0]),
    (0, -1, {"0": 19}, [20]),
    (1, -1, {"0": 19}, [20]),
    (2, -1, {"0": -2, "1": -1}, [0, 0]),
    (2, 0, {"0": 22, "1": 15}, [12, 8]),
]


def state(workers: int, last: int, indices: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "last_seen_indices": indices,
        "last_worker_index": last,
        "worker_count": workers,
        "sampler": "one",
        "data_source": "<class 'list'>",
    }


@pytest.mark.parametrize(("workers", "last", "indices", "records"), OF_LOADERS)
def test_states_of_loaders(
    workers: int, last: int, indices: dict[str, int], records: list[int]
) -> None:
    found = state(workers, last, indices)
    assert found["sampler"] == "one"
    assert records_of_data_loader(found, source="it") == records


def workers_state(*counts: int | None) -> dict[str, Any]:
    """Return a state of mp_prefetch, as InterleaveDatasetIterator.get_state writes it."""
    states = [None if count is None else {"next_index": count} for count in counts]
    return {
        "next_index_in_cycle": 1,
        "next_index_in_datasets": len(counts),
        "iterators_in_use_indices": list(range(len(counts))),
        "iterators_in_use_states": states,
        "exhausted": [0] * len(counts),
        "future_states": {},
    }


@pytest.mark.parametrize(
    ("found", "elements"),
    [
        ({"next_index": 0}, 0),
        ({"next_index": 9}, 9),
        (workers_state(3, 2), 5),
        (workers_state(2, 2, 2), 6),
        (workers_state(None, None), 0),
    ],
)
def test_states_of_iterators(found: dict[str, Any], elements: int) -> None:
    assert elements_of_iterator(found) == elements
    for given in (found, json.dumps(found), json.dumps(found).encode()):
        assert consumed(given, batch=8) == 8 * elements


@pytest.mark.parametrize(
    "wrong",
    [
        state(0, -1, {"0": -1}) | {"version": 1},
        state(2, -1, {"0": -1}),
        state(2, -1, {"0": 21, "1": 15}),
        state(2, -1, {"0": -4, "1": -1}),
        state(0, -1, {"0": True}),
        state(0, -1, {}),
        state(0, -1, {"0": "7"}),
        state(-1, -1, {"0": 7}),
    ],
)
def test_damaged_states_of_loaders_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match=r"^it: "):
        records_of_data_loader(wrong, source="it")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"next_index": -1},
        {"parent": {}},
        workers_state(1, 2),
        workers_state(3, 1),
        {"iterators_in_use_states": [7]},
    ],
)
def test_damaged_states_of_iterators_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DatasetError):
        elements_of_iterator(wrong)


@pytest.mark.parametrize("wrong", [7, None, [1], 1.5])
def test_what_is_no_state_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"state=.*: what get_state"):
        consumed(wrong)


def test_text_that_is_no_state_is_refused() -> None:
    with pytest.raises((DatasetError, UsageError)):
        consumed(b"\xff{")
