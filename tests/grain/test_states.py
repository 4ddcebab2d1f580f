"""What Grain keeps of a sampler and of its workers, and the place in the order that follows."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from shardctl import Host, ReadSettings, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.grain import Sampler, consumed
from shardctl.grain.states import (
    Deal,
    elements_of_iterator,
    order_after,
    place_text,
    records_of_data_loader,
)
from shardctl.live.key_order import KeyOrder
from shardctl.saved.resume_plan import RunSegment
from tests.cases import counted
from tests.golden import assert_evaluated
from tests.grain.toys import cut, keys_of, raises_in_one_line, random_settings, state_of, toy

SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=4)
DATA = toy(11, 13, 16)


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_a_count_of_any_workers(workers: int) -> None:
    sampler = Sampler(DATA, "train", SETTINGS, workers=workers)
    whole = keys_of(KeyOrder(DATA, "train", SETTINGS))
    for batches in range(21):
        state = state_of(sampler, batches, workers, 4)
        assert consumed(state) == 4 * batches
        rest = Sampler(DATA, "train", SETTINGS, workers=3 if batches == 8 else 0, states=[state])
        assert keys_of(rest.order) == whole[4 * batches :]


def test_counts_add_up_over_several_stops() -> None:
    first = Sampler(DATA, "train", SETTINGS, workers=2)
    second = Sampler(DATA, "train", SETTINGS, workers=0, states=[state_of(first, 5, 2, 4)])
    state = state_of(second, 3, 0, 4)
    assert consumed(state) == json.loads(second.position(state))["consumed"] == 32


def test_what_fills_the_last_round_behind_a_stop_is_not_counted() -> None:
    sampler = Sampler(DATA, "train", SETTINGS)
    sampler._take(KeyOrder(DATA, "train", SETTINGS, consumed=6), workers=2, seed=None)
    # 74 are left: 18 batches of 4, one of 2, and two records that fill it.
    assert [consumed(state_of(sampler, batches, 2, 4)) for batches in (18, 19)] == [78, 80]


def test_what_is_no_state_of_this_order_is_refused() -> None:
    state = state_of(Sampler(DATA, "train", SETTINGS), 2, 0, 4)
    other = KeyOrder(toy(11, 13, 17), "train", SETTINGS)
    order = KeyOrder(DATA, "train", SETTINGS)
    refused: list[tuple[KeyOrder, bytes, tuple[str, ...]]] = [
        (other, state, ("states[0]", "the same name with other files", "consumed=8")),
        (order, b'{"next_index": 3}', ("map_dataset(..).position(state)",)),
        (order, b"[1]", ("states[0]",)),
        (order, state.replace(b"shardctl.grain", b"others"), ("another sampler",)),
        (order, state.replace(b'"version": 2', b'"version": 3'), ("version 3",)),
    ]
    for one, given, words in refused:
        raises_in_one_line(lambda o=one, g=given: order_after(o, [g]), DatasetError, *words)  # type: ignore[misc]
    named = KeyOrder(toy(11, 13, 17, name="digits"), "train", SETTINGS)
    with pytest.raises(DatasetError, match="it is of toy, and this is digits, with other files"):
        order_after(named, [state])


def test_a_place_is_read_back_with_all_that_the_order_follows_from() -> None:
    numbers, data = random.Random(5), toy(9, 0, 7, 12)
    for _ in counted(range(100)):
        settings = replace(random_settings(numbers), batch=None, drop_remainder=False)
        try:
            sampler = Sampler(data, "train[2:]+test", settings, consumed=3)
        except UsageError:
            continue  # more hosts than files, or fewer examples
        found = order_after(sampler.order, [state_of(sampler, 2, 0, 1)])
        assert (found.settings, found.consumed, found.total) == (
            sampler.settings,
            5,
            sampler.order.total,
        )


def test_stretches_are_part_of_it() -> None:
    stretch = RunSegment(consumed=(4, 4, 3), batch=2, host_by="files")
    host = ReadSettings(host=Host(index=1, count=2))
    order = KeyOrder(toy(9, 7, 5), "train", host, stretches=(stretch,))
    sampler = Sampler(toy(9, 7, 5), "train", host)
    sampler._take(order, workers=0, seed=None)
    assert order_after(order, [state_of(sampler, 1, 0, 1)]).stretches == (stretch,)


def test_the_text_says_nothing_that_a_release_or_a_folder_changes() -> None:
    settings = ReadSettings(shuffle_seed=7, batch=4)
    text = place_text(KeyOrder(toy(9, 7), "train", settings), workers=2)
    document = json.loads(text.removeprefix("shardctl.grain.Sampler(").removesuffix(")"))
    assert document.pop("fingerprint") == toy(9, 7).fingerprint
    stated = {"cycle": 16, "block": 16, "shuffle_files": True, "shuffle_seed": 7}
    assert document == {
        "dataset": "toy",
        "spec": "train",
        "settings": {**stated, "reshuffle": True, "batch": 4},
        "size": 16,
        "consumed": 0,
        "workers": 2,
    }
    files = (ShardFiles(pattern="toy-train-\\0", num_shards=2, data_dir="/here"),)
    here = Split(name="train", shard_lengths=(9, 7), files=files)
    there = replace(here, files=(replace(files[0], data_dir="/there"),))
    orders = [KeyOrder(replace(toy(), splits=(s,)), "train", settings) for s in (here, there)]
    assert place_text(orders[0]) == place_text(orders[1])


@pytest.mark.parametrize("workers", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_records_are_dealt_so_that_batches_are_those_of_one(workers: int, batch: int) -> None:
    def batches_of_workers(deal: Deal) -> list[list[int]]:
        """Deal records as Grain does: stride by workers, batches inside them, taken in turn."""
        turns = max(workers, 1)
        dealt = [map(deal.position_of, range(w, deal.num_padded, turns)) for w in range(turns)]
        own = [[place for place in places if place < deal.size] for places in dealt]
        made = [[mine[k : k + batch] for k in range(0, len(mine), batch)] for mine in own]
        return [b for turn in itertools.zip_longest(*made) for b in turn if b is not None]

    for size in range(50):
        deal = Deal(size=size, workers=workers, batch=batch)
        assert batches_of_workers(deal) == cut(list(range(size)), batch)
        assert deal.is_even == (workers < 2 or batch == 1 or size % (workers * batch) == 0)
        # What workers have read says what was yielded.
        read = [0] * max(workers, 1)
        assert deal.consumed(read) == 0
        for step, start in enumerate(range(0, size, batch)):
            rows, worker = min(batch, size - start), step % len(read)
            read[worker] += rows
            assert deal.consumed(read) == start + rows
            if rows < batch:  # and what is dropped behind it
                read[worker] += batch - rows
                assert deal.consumed(read) == size


@pytest.mark.parametrize("records", [[4, 4], [2, 4, 0], [8, 0, 0], [3, 0, 0], [4, -4, 0]])
def test_other_counts_are_refused(records: list[int]) -> None:
    with pytest.raises(DatasetError):
        Deal(size=30, workers=3, batch=4).consumed(records)


# States as Grain 0.2.18 wrote them, after 0 and 5 batches of 4 and 0, 1 and 2 workers.


def state(workers: int, last: int, indices: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "last_seen_indices": indices,
        "last_worker_index": last,
        "worker_count": workers,
        "sampler": "one",
        "data_source": "<class 'list'>",
    }


def of_workers(*counts: int | None) -> dict[str, Any]:
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
    ("given", "elements"),
    [
        ({"next_index": 0}, 0),
        ({"next_index": 9}, 9),
        (of_workers(3, 2), 5),
        (of_workers(2, 2, 2), 6),
        (of_workers(None, None), 0),
        ({}, None),
        ({"next_index": -1}, None),
        ({"parent": {}}, None),
        (of_workers(1, 2), None),
        (of_workers(3, 1), None),
        ({"iterators_in_use_states": [7]}, None),
    ],
)
def test_states_of_iterators(given: dict[str, Any], elements: int | None) -> None:
    if elements is None:
        with pytest.raises(DatasetError):
            elements_of_iterator(given)
        return
    assert elements_of_iterator(given) == elements
    for form in (given, json.dumps(given), json.dumps(given).encode()):
        assert consumed(form, batch=8) == 8 * elements


def test_states_of_loaders_and_what_is_none() -> None:
    assert_evaluated(globals(), "states", records_of_data_loader)
