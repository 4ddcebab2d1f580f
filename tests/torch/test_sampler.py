"""The sampler by itself, without PyTorch: order, places, epochs, and what it refuses."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.torch import Sampler
from tests.cases import counted
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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"consumed": 81}, ("--consumed 81", "80 examples")),
        ({"consumed": -1}, ("--consumed -1",)),
        ({"consumed": 4, "states": [b"{}"]}, ("--consumed 4", "one of them")),
        ({"states": [3]}, ("states",)),
        ({"settings": {"loader": "torch"}}, ("--loader tfds",)),
        ({"settings": {"batch": 4, "epochs": -1}}, ("epochs",)),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], words: tuple[str, ...]) -> None:
    given = {"settings": SETTINGS, **wrong}
    raises_in_one_line(lambda: Sampler(DATA, "train", **given), UsageError, *words)


def test_states_of_others_are_refused() -> None:
    state = Sampler(DATA, "train", SETTINGS, consumed=8).state_dict()
    sampler = Sampler(DATA, "train", replace(SETTINGS, shuffle_seed=4))
    raises_in_one_line(lambda: sampler.load_state_dict(state), UsageError, "shuffle_seed was 3")
    sampler = Sampler(toy(11, 13, 17), "train", SETTINGS)
    raises_in_one_line(lambda: sampler.load_state_dict(state), DatasetError, "position")
    sampler = Sampler(DATA, "train[1:]", SETTINGS)
    raises_in_one_line(lambda: sampler.load_state_dict(state), UsageError, "spec was train")
    assert len([*sampler]) == 78
    one = Sampler(DATA, "train", replace(SETTINGS, host=shardctl.Host(index=0, count=2)))
    two = Sampler(DATA, "train", replace(SETTINGS, host=shardctl.Host(index=0, count=3)))
    raises_in_one_line(
        lambda: two.load_state_dict(one.state_dict()), UsageError, "states of 1 of 2 hosts"
    )
    one.load_state_dict(state)  # of a process alone, which is all of them
    assert len([*one]) == 36


def test_an_open_order_is_refused_and_files_without_end_have_no_next_pass() -> None:
    with pytest.raises(UnpredictableOrderError):
        Sampler(DATA, "train", {"shuffle_files": True})
    sampler = Sampler(DATA, "train", {"shuffle_seed": 3, "repeat_files": True, "epochs": 2})
    with pytest.raises(UnpredictableOrderError):
        sampler.set_epoch(1)


def test_what_surprises_is_said_where_it_is_asked_for() -> None:
    with pytest.warns(UserWarning, match="takes its seed from --global-seed") as caught:
        Sampler(DATA, "train", {"buffer": 4, "global_seed": 3})
    assert caught[0].filename == __file__


def test_it_outlives_a_process() -> None:
    sampler = Sampler(DATA, "train", SETTINGS, consumed=8)
    assert [*pickle.loads(pickle.dumps(sampler))] == order_of(SETTINGS)[8:]


def test_it_is_a_sampler_of_torch_where_that_is_imported() -> None:
    torch_data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed")
    sampler = Sampler(DATA, "train", SETTINGS)
    assert isinstance(sampler, torch_data.Sampler)
    assert isinstance(sampler, Sampler)
    copied = pickle.loads(pickle.dumps(sampler))
    assert isinstance(copied, torch_data.Sampler)
    assert [*copied] == order_of(SETTINGS)
