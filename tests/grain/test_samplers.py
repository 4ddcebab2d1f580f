"""The samplers for Grain and for PyTorch: their order, what hosts share, and what they refuse."""

from __future__ import annotations

import json
import pickle
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl.grain
import shardctl.torch
from shardctl import Host, ReadSettings
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.live.key_order import KeyOrder
from shardctl.tfds import Position
from tests.cases import counted
from tests.grain.toys import keys_of, needs_grain, raises_in_one_line, state_of, toy
from tests.tfds_datasets import build_dataset

DATA = toy(11, 13, 16)
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=4)

both = pytest.mark.parametrize("room", [shardctl.grain, shardctl.torch])


def after(sampler: Any, batches: int) -> Any:
    """Return the state of a loader without workers after so many batches."""
    if hasattr(sampler, "state_after"):
        return sampler.state_after(batches)
    return state_of(sampler, batches, 0, sampler.settings.batch)


def shared_by(room: Any, count: int, states: Sequence[Any], given: dict[str, Any]) -> list[Any]:
    hosts = [Host(index=i, count=count) for i in range(count)]
    return [room.Sampler(DATA, "train", {**given, "host": h}, states=states) for h in hosts]


@both
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"consumed": 81}, ("--consumed 81", "80 examples")),
        ({"consumed": -1}, ("--consumed -1",)),
        ({"consumed": 4, "states": [b"{}"]}, ("--consumed 4", "one of them")),
        ({"states": [3]}, ("states",)),
        ({"settings": {"loader": "torch"}}, ("--loader tfds",)),
        (
            {"settings": {"stages": "shuffle(5, seed=1) | take(9)"}},
            ("--stages", "operations of the loader"),
        ),
        ({"settings": {"batch": 4, "epochs": -1}}, ("epochs",)),
    ],
)
def test_wrong_arguments_are_refused(room: Any, wrong: dict[str, Any], words: Any) -> None:
    given = {"settings": SETTINGS, **wrong}
    raises_in_one_line(lambda: room.Sampler(DATA, "train", **given), UsageError, *words)


@both
def test_an_open_order_is_refused_and_a_surprising_one_warned_of(room: Any) -> None:
    with pytest.raises(UnpredictableOrderError):
        room.Sampler(DATA, "train", {"shuffle_files": True})
    with pytest.warns(UserWarning, match="missing seeds are drawn from --global-seed") as caught:
        room.Sampler(DATA, "train", {"buffer": 4, "global_seed": 3})
    assert caught[0].filename == __file__
    with warnings.catch_warnings():  # that tf.data cannot read array_record is no surprise
        warnings.simplefilter("error")
        room.Sampler(replace(DATA, file_format="array_record"), "train", SETTINGS)


@both
@pytest.mark.long
def test_other_hosts_share_what_is_left(room: Any) -> None:
    numbers = random.Random(8)
    for _ in counted(range(4)):
        given: dict[str, Any] = {
            "shuffle_seed": 3,
            "epochs": numbers.choice([1, 2]),
            "batch": numbers.choice([2, 4]),
            "host_by": numbers.choice(["even", "examples"]),
            "pass_index": numbers.choice([0, 2]),
        }
        if numbers.choice([True, False]):
            given |= {"buffer": 7, "buffer_seed": 2}
        seen: Counter[int] = Counter()
        states: list[Any] = []
        for count in (3, 2, 8):
            left = []
            for sampler in shared_by(room, count, states, given):
                batches = numbers.randint(0, min(len(sampler) // given["batch"], 3))
                seen.update(keys_of(sampler)[: batches * given["batch"]])
                left.append(after(sampler, batches))
            states = numbers.sample(left, len(left))
        for sampler in shared_by(room, 1, states, given):
            seen.update(keys_of(sampler))
        assert seen == dict.fromkeys(range(40), given["epochs"])


@both
def test_a_host_goes_on_with_its_own_state_alone(room: Any) -> None:
    given = {"shuffle_seed": 3, "batch": 4, "host": "1/3"}
    state = after(room.Sampler(DATA, "train", given), 2)
    assert room.Sampler(DATA, "train", given, states=[state]).order.consumed == 8
    with pytest.raises(UsageError, match="states of 1 of 3 hosts: 0, 2 missing"):
        room.Sampler(DATA, "train", {**given, "host": "0/3"}, states=[state])


@both
def test_files_without_end_are_not_shared(room: Any) -> None:
    given = {"shuffle_seed": 3, "epochs": 2, "repeat_files": True, "batch": 4}
    states = [after(sampler, 2) for sampler in shared_by(room, 2, [], given)]
    with pytest.raises(UsageError, match=r"states of 2 processes for other hosts.*--repeat-files"):
        shared_by(room, 3, states, given)


@both
def test_states_of_other_orders_are_refused(room: Any) -> None:
    state = after(room.Sampler(DATA, "train", SETTINGS), 2)
    other = ReadSettings(**{**vars(SETTINGS), "shuffle_seed": 4})
    refused: list[tuple[Any, str, ReadSettings, type[Exception], str]] = [
        (toy(11, 13, 17), "train", SETTINGS, DatasetError, "files|position"),
        (DATA, "train[1:]", SETTINGS, UsageError, "spec was train"),
        (DATA, "train", other, UsageError, "shuffle_seed was 3, now 4"),
    ]
    for data, spec, settings, kind, word in refused:
        with pytest.raises(kind, match=word):
            room.Sampler(data, spec, settings, states=[state])


@both
def test_it_goes_on_from_tf_data_and_back(room: Any, tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [11, 13, 16]}))
    position = Position(builder, "train", SETTINGS, consumed=12)
    sampler = room.Sampler(builder, "train", SETTINGS, states=[position.get_state()])
    assert sampler.order.consumed == 12
    state = after(sampler, 2)
    position.set_state(
        sampler.position(state) if room is shardctl.grain else json.dumps(state).encode()
    )
    assert position.consumed == 20
    tf_data = [int(i) for batch in position.dataset().as_numpy_iterator() for i in batch["id"]]
    assert tf_data == keys_of(sampler)[8:]


@both
def test_it_outlives_a_process(room: Any) -> None:
    sampler = room.Sampler(DATA, "train", SETTINGS, consumed=8)
    copied = pickle.loads(pickle.dumps(sampler))
    assert keys_of(copied) == keys_of(sampler) == keys_of(KeyOrder(DATA, "train", SETTINGS))[8:]


# What is Grain's alone: records, their generators, and records dealt to workers.


def test_it_is_a_sequence_of_metadata_that_ends() -> None:
    grain = needs_grain()
    sampler = shardctl.grain.Sampler(DATA, "train", SETTINGS)
    assert [sampler[i].record_key for i in range(80)] == keys_of(KeyOrder(DATA, "train", SETTINGS))
    assert sampler[7] == grain.RecordMetadata(index=7, record_key=sampler[7].record_key)
    assert len(list(sampler)) == 80  # type: ignore[call-overload]
    for index in (80, -1):
        with pytest.raises(IndexError):
            sampler[index]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"workers": -1}, ("workers=-1",)),
        ({"workers": 10_001}, ("workers=10001", "10000")),
        ({"seed": -1}, ("seed=-1",)),
        ({"seed": 1 << 32}, ("seed=",)),
        ({"workers": 3}, ("--workers 3", "no whole rounds of 3", "shardctl.grain.data_loader")),
    ],
)
def test_wrong_workers_and_seeds_are_refused(wrong: dict[str, Any], words: Any) -> None:
    sampler = shardctl.grain.Sampler
    raises_in_one_line(lambda: sampler(DATA, "train", SETTINGS, **wrong), UsageError, *words)
    assert len(sampler(DATA, "train", {"epochs": 3}, workers=7)) == 120  # no batches


def test_its_text_tells_orders_apart() -> None:
    given: dict[str, Any] = {"settings": SETTINGS, "workers": 2, "consumed": 16, "seed": 7}
    sampler = shardctl.grain.Sampler(DATA, "train", **given)
    copied = pickle.loads(pickle.dumps(sampler))
    assert repr(copied) == repr(sampler) == repr(shardctl.grain.Sampler(DATA, "train", **given))
    for other in ({"workers": 4}, {"consumed": 32}, {"seed": 8}, {"settings": {"batch": 4}}):
        assert repr(shardctl.grain.Sampler(DATA, "train", **(given | other))) != repr(sampler)


def test_a_records_generator_depends_on_the_record_and_its_epoch_alone() -> None:
    needs_grain()

    def drawn(**given: Any) -> dict[tuple[int, int], float]:
        sampler = shardctl.grain.Sampler(
            DATA, "train", **{"settings": SETTINGS, "seed": 5, **given}
        )
        epochs = [sampler.order.epoch(sampler._deal.position_of(i)) for i in range(len(sampler))]
        records = [sampler[i] for i in range(len(sampler))]
        return {(r.record_key, e): r.rng.random() for r, e in zip(records, epochs, strict=True)}

    whole = drawn()
    assert len(set(whole.values())) == 80
    assert drawn(workers=2) == whole
    assert drawn(consumed=24).items() <= whole.items()
    assert drawn(settings={"shuffle_seed": 3, "epochs": 2, "host": "1/2"}).items() <= whole.items()
    assert drawn(seed=6).items().isdisjoint(whole.items())
    assert shardctl.grain.Sampler(DATA, "train", SETTINGS)[0].rng is None


def test_epochs_of_fit() -> None:
    needs_grain()
    settings = ReadSettings(shuffle_seed=3, batch=4)
    sampler = shardctl.grain.Sampler(DATA, "train", settings, workers=2)
    for epoch in (0, 2, 1):
        sampler.begin_epoch_of_fit(epoch)
        of_pass = replace(settings, pass_index=epoch, loop="keras-fit")
        assert keys_of(sampler) == keys_of(KeyOrder(DATA, "train", of_pass))
    begun = shardctl.grain.Sampler(DATA, "train", of_pass, consumed=8)
    begun.begin_epoch_of_fit(1)
    assert begun.order.consumed == 8
    wrong = "epoch 2", "initial_epoch=1", "epochs=2"
    raises_in_one_line(lambda: begun.begin_epoch_of_fit(2), UsageError, *wrong)
