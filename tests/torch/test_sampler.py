"""The sampler for PyTorch, without PyTorch: places, epochs, states, and what it refuses."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

import shardctl
from shardctl import Host, ReadSettings
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.torch import Sampler, consumed
from tests.cases import counted
from tests.golden import assert_evaluated
from tests.grain.toys import raises_in_one_line, random_settings, toy

DATA = toy(11, 13, 16)
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=8)


def order_of(settings: ReadSettings) -> list[int]:
    order = shardctl.plan_order(DATA, "train", settings).order
    ids: list[int] = order.read(0, order.num_examples).tolist()
    return ids


@pytest.mark.long
def test_it_yields_the_order_from_any_place_on() -> None:
    numbers = random.Random(4)
    for _ in counted(range(60)):
        settings = random_settings(numbers)
        expected = order_of(settings)
        sampler = Sampler(DATA, "train", settings)
        assert len(sampler) == len(expected)
        drawn = numbers.randint(0, len(expected))
        assert [*islice(sampler, drawn)] == expected[:drawn]
        state = sampler.state_dict()
        assert state["consumed"] == drawn
        rest = Sampler(DATA, "train", settings, states=[state])
        assert (len(rest), [*rest]) == (len(expected) - drawn, expected[drawn:])
        again = Sampler(DATA, "train", settings)
        again.load_state_dict(state)
        assert [*again] == expected[drawn:]
        assert [*Sampler(DATA, "train", settings, consumed=drawn)] == expected[drawn:]


def test_places_behind_batches_whatever_was_drawn() -> None:
    sampler = Sampler(DATA, "train", replace(SETTINGS, batch=7))
    numbers = iter(sampler)
    for _ in range(60):
        next(numbers)
    assert [sampler.state_after(b)["consumed"] for b in (0, 1, 11, 12)] == [0, 7, 77, 80]
    rest = Sampler(DATA, "train", replace(SETTINGS, batch=7), states=[sampler.state_after(3)])
    assert rest.state_after(2)["consumed"] == 35
    assert Sampler(DATA).state_after(2)["consumed"] == 2
    for batches in (-1, 13):
        raises_in_one_line(lambda b=batches: sampler.state_after(b), UsageError, f"{batches}", "12")  # type: ignore[misc]


def test_epochs_are_passes_of_tf_data() -> None:
    settings = replace(SETTINGS, epochs=1)
    sampler = Sampler(DATA, "train", settings)
    for epoch in (0, 2, 1, 1):
        sampler.set_epoch(epoch)
        assert sampler.epoch == epoch
        assert [*sampler] == order_of(replace(settings, pass_index=epoch))
    assert order_of(replace(settings, pass_index=1)) != order_of(settings)


def test_a_second_iteration_is_refused_where_the_next_pass_is_another() -> None:
    sampler = Sampler(DATA, "train", SETTINGS)
    next(iter(sampler))
    raises_in_one_line(
        lambda: next(iter(sampler)), UsageError, "second time", "set_epoch(1)", "set_epoch(0)"
    )
    sampler.set_epoch(0)
    assert [*sampler] == order_of(SETTINGS)
    for same in ({}, {"shuffle_seed": 3, "reshuffle": False}):
        again = Sampler(DATA, "train", {"batch": 8, **same}, consumed=24)
        assert (len([*again]), len([*again])) == (16, 40)


def test_nothing_is_left_at_the_end_however_often() -> None:
    sampler = Sampler(DATA, "train", SETTINGS, consumed=80)
    assert [*sampler] == [*sampler] == []
    sampler.set_epoch(1)
    assert len([*sampler]) == 80


def test_a_place_in_an_epoch_stays_and_other_epochs_are_refused() -> None:
    of_epoch = replace(SETTINGS, pass_index=2)
    begun = Sampler(DATA, "train", of_epoch)
    assert len([*islice(begun, 24)]) == 24
    state = begun.state_dict()
    sampler = Sampler(DATA, "train", SETTINGS, states=[state])
    assert sampler.epoch == 2
    raises_in_one_line(lambda: sampler.set_epoch(0), UsageError, "after 24 examples of epoch 2")
    sampler.set_epoch(2)
    assert [*sampler] == order_of(of_epoch)[24:]
    sampler.set_epoch(3)
    assert len([*sampler]) == 80
    late = Sampler(DATA, "train", SETTINGS)
    late.set_epoch(1)
    raises_in_one_line(
        lambda: late.load_state_dict(state), UsageError, "state is of epoch 2", "set_epoch(1)"
    )
    late.set_epoch(2)
    late.load_state_dict(state)
    assert len(late) == 56


def test_an_iteration_that_was_left_behind_counts_no_more() -> None:
    sampler = Sampler(DATA, "train", SETTINGS)
    old = iter(sampler)
    next(old)
    sampler.set_epoch(1)
    new = iter(sampler)
    assert [next(new), next(new)] == order_of(replace(SETTINGS, pass_index=1))[:2]
    next(old)
    assert sampler.state_dict()["consumed"] == 2


def test_states_are_of_one_order_and_files_without_end_have_no_next_pass() -> None:
    state = Sampler(DATA, "train", SETTINGS, consumed=8).state_dict()
    sampler = Sampler(DATA, "train", replace(SETTINGS, shuffle_seed=4))
    raises_in_one_line(lambda: sampler.load_state_dict(state), UsageError, "shuffle_seed was 3")
    assert len([*sampler]) == 80
    one, two = (Sampler(DATA, "train", replace(SETTINGS, host=f"0/{n}")) for n in (2, 3))  # type: ignore[arg-type]
    raises_in_one_line(
        lambda: two.load_state_dict(one.state_dict()), UsageError, "states of 1 of 2 hosts"
    )
    one.load_state_dict(state)  # of a process alone, which is all of them
    assert len([*one]) == 36
    endless = Sampler(DATA, "train", {"shuffle_seed": 3, "repeat_files": True, "epochs": 2})
    with pytest.raises(UnpredictableOrderError):
        endless.set_epoch(1)


# States: as text, and of StatefulDataLoaders.


def state() -> dict[str, Any]:
    return Sampler(DATA, "train", SETTINGS, consumed=24).state_dict()


def without_workers(inner: object) -> dict[str, Any]:
    """Return a state as torchdata 0.11 writes it with num_workers=0."""
    of_batches = {"samples_yielded": 24, "sampler_state": inner}
    return {"_index_sampler_state": None, "_sampler_iter_state": of_batches, "_num_yielded": 3}


def with_workers(inner: object, steps: int = 0) -> dict[str, Any]:
    """Return a state as torchdata 0.11 writes it with workers."""
    snapshot = {"_snapshot_step": 3, "_main_snapshot": without_workers(inner)}
    return {"_snapshot": snapshot, "_steps_since_snapshot": steps}


def test_a_state_is_a_number_and_whose_it_is_in_plain_values() -> None:
    found = state()
    assert found["consumed"] == 24
    assert json.loads(json.dumps(found)) == found
    forms = (found, json.dumps(found), json.dumps(found).encode())
    of_loaders = (without_workers(found), with_workers(found))
    of_examples = {"_index_sampler_state": found, "_sampler_iter_state": None}
    for given in (*forms, *of_loaders, of_examples):
        assert consumed(given) == 24
        assert len(Sampler(DATA, "train", SETTINGS, states=[given])) == 56


def test_what_is_no_state_is_refused() -> None:
    assert_evaluated(globals(), "no_state")


def test_the_next_epoch_of_a_shared_one_is_that_of_the_new_ranks() -> None:
    given: dict[str, Any] = {"shuffle_seed": 3, "batch": 4}
    hosts = [Host(index=i, count=3) for i in range(3)]
    states = [Sampler(DATA, "train", {**given, "host": h}).state_after(1) for h in hosts]
    for host in ("0/2", "1/2"):
        sampler = Sampler(DATA, "train", {**given, "host": host}, states=states)
        assert len([*sampler]) == 14
        sampler.set_epoch(1)
        whole = Sampler(DATA, "train", {**given, "pass": 1, "host": sampler.settings.host})
        assert [*sampler] == [*whole]
