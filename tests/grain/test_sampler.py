"""The sampler by itself: Grain's protocol, what it refuses, and the generators of records."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from typing import Any

import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.grain import Sampler, map_dataset
from tests.grain.toys import as_lists, handed_out, needs_grain, raises_in_one_line, toy

DATA = toy(11, 13, 16)
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=4)


def order_of(settings: ReadSettings) -> list[int]:
    order = shardctl.plan_order(DATA, "train", settings).order
    ids: list[int] = order.read(0, order.num_examples).tolist()
    return ids


def test_it_is_a_sequence_of_metadata_that_ends() -> None:
    grain = needs_grain()
    sampler = Sampler(DATA, "train", SETTINGS)
    assert len(sampler) == 80
    assert [sampler[i].record_key for i in range(80)] == order_of(SETTINGS)
    assert sampler[7] == grain.RecordMetadata(index=7, record_key=sampler[7].record_key)
    assert len(list(sampler)) == 80  # type: ignore[call-overload]
    for index in (80, -1):
        with pytest.raises(IndexError):
            sampler[index]


def test_with_workers_it_deals_records_so_that_batches_are_tf_datas() -> None:
    grain = needs_grain()
    for workers in (0, 2, 5):
        loader = grain.DataLoader(
            data_source=list(range(40)),
            sampler=Sampler(DATA, "train", SETTINGS, workers=workers),
            shard_options=grain.sharding.NoSharding(),
            worker_count=workers,
            operations=[grain.transforms.Batch(4)],
        )
        ids = [i for batch in as_lists(handed_out(loader), 4) for i in batch]
        assert ids == order_of(SETTINGS)


def test_where_the_last_round_is_not_full_it_is_refused_with_a_way_out() -> None:
    raises_in_one_line(
        lambda: Sampler(DATA, "train", SETTINGS, workers=3),
        UsageError,
        "--workers 3",
        "the last 8 of 80 examples",
        "shardctl.grain.data_loader",
    )
    assert len(Sampler(DATA, "train", {"epochs": 3}, workers=7)) == 120  # no batches


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"workers": -1}, ("workers=-1",)),
        ({"seed": -1}, ("seed=-1",)),
        ({"workers": 10_001}, ("workers=10001", "10000")),
        ({"seed": 1 << 32}, ("seed=",)),
        ({"consumed": 81}, ("--consumed 81", "80 examples")),
        ({"consumed": -1}, ("--consumed -1",)),
        ({"consumed": 4, "states": [b"{}"]}, ("--consumed 4", "one of them")),
        ({"states": [3]}, ("states",)),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], words: tuple[str, ...]) -> None:
    raises_in_one_line(lambda: Sampler(DATA, "train", SETTINGS, **wrong), UsageError, *words)


def test_an_open_order_is_refused() -> None:
    with pytest.raises(UnpredictableOrderError):
        Sampler(DATA, "train", {"shuffle_files": True})


def test_what_surprises_about_an_order_is_said_where_it_is_asked_for() -> None:
    needs_grain()
    with pytest.warns(UserWarning, match="takes its seed from --global-seed") as caught:
        Sampler(DATA, "train", {"buffer": 4, "global_seed": 3})
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="takes its seed from --global-seed") as caught:
        map_dataset(list(range(40)), DATA, "train", {"buffer": 4, "global_seed": 3})
    assert caught[0].filename == __file__


def test_that_tf_data_cannot_read_array_record_is_no_surprise() -> None:
    of_grain = replace(DATA, file_format="array_record")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Sampler(of_grain, "train", SETTINGS)


def test_its_text_and_its_records_outlive_a_process() -> None:
    needs_grain()
    sampler = Sampler(DATA, "train", SETTINGS, workers=2, consumed=16, seed=7)
    copied = pickle.loads(pickle.dumps(sampler))
    assert (
        repr(copied)
        == repr(sampler)
        == repr(Sampler(DATA, "train", SETTINGS, workers=2, consumed=16, seed=7))
    )
    assert [copied[i].record_key for i in range(64)] == [sampler[i].record_key for i in range(64)]
    others: list[dict[str, Any]] = [
        {"workers": 4},
        {"consumed": 32},
        {"seed": 8},
        {"settings": {"batch": 4}},
    ]
    for other in others:
        given: dict[str, Any] = {
            "settings": SETTINGS,
            "workers": 2,
            "consumed": 16,
            "seed": 7,
            **other,
        }
        assert repr(Sampler(DATA, "train", **(given | other))) != repr(sampler)


def test_a_records_generator_depends_on_the_record_and_its_epoch_alone() -> None:
    needs_grain()

    def drawn(**given: Any) -> dict[tuple[int, int], float]:
        sampler = Sampler(DATA, "train", **{"settings": SETTINGS, "seed": 5, **given})
        found = {}
        for i in range(len(sampler)):
            record = sampler[i]
            epoch = sampler.order.epoch(sampler._deal.position_of(i))
            found[record.record_key, epoch] = record.rng.random()
        return found

    whole = drawn()
    assert len(set(whole.values())) == 80
    assert drawn(workers=2) == whole
    rest = drawn(consumed=24)
    assert rest.items() <= whole.items()
    host = drawn(settings={"shuffle_seed": 3, "epochs": 2, "host": "1/2"})
    assert host.items() <= whole.items()
    assert drawn(seed=6).items().isdisjoint(whole.items())
    assert Sampler(DATA, "train", SETTINGS)[0].rng is None


def test_epochs_of_fit() -> None:
    needs_grain()
    settings = ReadSettings(shuffle_seed=3, batch=4)
    sampler = Sampler(DATA, "train", settings, workers=2)
    for epoch in (0, 2, 1):
        sampler.begin_epoch_of_fit(epoch)
        of_pass = ReadSettings(shuffle_seed=3, batch=4, pass_index=epoch, loop="keras-fit")
        assert [sampler.order.key(i) for i in range(40)] == order_of(of_pass)
    begun = Sampler(DATA, "train", of_pass, consumed=8)
    begun.begin_epoch_of_fit(1)
    assert begun.order.consumed == 8
    raises_in_one_line(
        lambda: begun.begin_epoch_of_fit(2), UsageError, "epoch 2", "initial_epoch=1", "epochs=2"
    )
