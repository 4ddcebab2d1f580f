"""Keys of records: by brute force from ids, by any thread, pickled, on hosts of a shared run."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import shardctl
from shardctl import Dataset, Host, ReadSettings, Split
from shardctl.errors import UsageError
from shardctl.live import key_order
from shardctl.live.key_order import KeyOrder, continued, record_at
from shardctl.saved.resume_plan import RunSegment
from shardctl.settings.read_settings import as_settings
from tests.cases import counted
from tests.grain.toys import raises_in_one_line, random_settings, toy

SPECS = ("train", "train[3:11]", "test+train", "train[5:]+test[:4]", "train[10:]+train[:4]", "all")


def selected(dataset: Dataset, spec: str) -> list[str]:
    """Return the examples that a spec selects, `split:id` each, in the order of the files."""
    planned = shardctl.plan_order(dataset, spec, {"cycle": 1})
    return [f"{p.split.name}:{i}" for p in planned.ranges for i in range(p.start, p.stop)]


@pytest.mark.long
def test_keys_count_what_the_spec_selects() -> None:
    numbers = random.Random(1)
    for _ in counted(range(120)):
        dataset = toy(*[numbers.randrange(9) for _ in range(numbers.randint(2, 6))], 12)
        spec, settings = numbers.choice(SPECS), random_settings(numbers)
        try:
            order = KeyOrder(dataset, spec, settings)
        except shardctl.UsageError:
            continue  # more hosts than files
        planned = shardctl.plan_order(dataset, spec, settings).order
        ids = [str(i) for i in planned.codes.ids(planned.read(0, planned.num_examples))]
        names = [i if ":" in i else f"{order.planned.ranges[0].split.name}:{i}" for i in ids]
        records = selected(dataset, spec)
        assert [records[order.key(i)] for i in range(len(order))] == names
        assert order.num_records == len(records)


def test_an_example_that_is_read_twice_has_a_key_of_either() -> None:
    order = KeyOrder(toy(9, 7), "train[2:12]+train[4:6]+train[8:]", ReadSettings(cycle=1))
    records = selected(toy(9, 7), "train[2:12]+train[4:6]+train[8:]")
    assert [records[order.key(i)] for i in range(len(order))] == records


def test_any_thread_may_ask_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "_CHUNK", 16)
    settings = ReadSettings(shuffle_seed=4, buffer=30, buffer_seed=2, epochs=2)
    order = KeyOrder(toy(90, 80, 70), "train", settings)
    planned = shardctl.plan_order(toy(90, 80, 70), "train", settings).order
    indices = [random.Random(3).randrange(len(order)) for _ in range(3000)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(order.key, indices))
    assert found == planned.codes_at(indices).tolist()


def test_a_pickled_one_is_small_and_the_same() -> None:
    big = Dataset(
        name="big", splits=(Split.even(name="train", num_examples=10**6, num_shards=1000),)
    )
    order = KeyOrder(
        big, "train", ReadSettings(shuffle_seed=4, buffer=99, buffer_seed=1), consumed=7
    )
    order.key(500_000)
    data = pickle.dumps(order)
    assert len(data) < 30_000
    copied = pickle.loads(data)
    assert len(copied) == 10**6 - 7
    assert [copied.key(i) for i in range(99)] == [order.key(i) for i in range(99)]


def test_from_a_place_on_indices_count_from_it() -> None:
    settings = ReadSettings(shuffle_seed=4, epochs=2)
    whole = KeyOrder(toy(5, 6), "train", settings)
    rest = KeyOrder(whole.dataset, whole.spec, whole.settings, consumed=8)
    assert [rest.key(i) for i in range(len(rest))] == [whole.key(i) for i in range(8, 22)]
    assert [rest.epoch(i) for i in range(14)] == [0] * 3 + [1] * 11


def test_a_shared_run_goes_on_with_its_rest() -> None:
    settings = ReadSettings(shuffle_seed=4, epochs=2, host=Host(index=0, count=1))
    whole = KeyOrder(toy(5, 6), "train", ReadSettings(shuffle_seed=4, epochs=2))
    order = KeyOrder(
        toy(5, 6), "train", settings, stretches=(RunSegment(consumed=(4,), alone=True),)
    )
    assert len(order) == 18
    had = {whole.key(i) for i in range(4)}
    assert sorted(order.key(i) for i in range(7)) == sorted(set(range(11)) - had)
    assert [order.key(i) for i in range(7, 18)] == [whole.key(i) for i in range(11, 22)]
    assert [order.epoch(i) for i in (0, 6, 7, 17)] == [0, 0, 1, 1]
    assert pickle.loads(pickle.dumps(order)).key(3) == order.key(3)


def test_stages_that_settings_say_too_are_read() -> None:
    staged = KeyOrder(toy(9, 7), "train", as_settings({"stages": "shuffle(5, seed=1) | repeat(2)"}))
    short = KeyOrder(toy(9, 7), "train", ReadSettings(buffer=5, buffer_seed=1, epochs=2))
    assert [staged.key(i) for i in range(32)] == [short.key(i) for i in range(32)]


def test_an_epoch_of_fit_is_its_pass() -> None:
    settings = ReadSettings(shuffle_seed=4, buffer=5, buffer_seed=2)
    order = KeyOrder(toy(9, 7), "train", settings).of_pass(2, loop="keras-fit")
    of_pass = ReadSettings(shuffle_seed=4, buffer=5, buffer_seed=2, pass_index=2, loop="keras-fit")
    expected = shardctl.plan_order(toy(9, 7), "train", of_pass).order.read(0, 16)
    assert [order.key(i) for i in range(16)] == expected.tolist()


# Where a loader begins, from counts and positions; its rooms test the rest with their states.

DATA = toy(11, 13, 16)
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=4)


def of_host(index: int, count: int) -> KeyOrder:
    return KeyOrder(DATA, "train", replace(SETTINGS, host=Host(index=index, count=count)))


def test_its_own_position_is_enough_and_those_of_all_are_shared() -> None:
    stopped = [record_at(of_host(i, 3), 4 * i) for i in range(3)]
    assert continued(of_host(1, 3), stopped[1:2]).consumed == 4
    rest = [continued(of_host(i, 2), stopped) for i in range(2)]
    assert [len(order) for order in rest] == [(80 - 12) // 2] * 2


@pytest.mark.parametrize("change", [{"shuffle_seed": 4}, {"buffer": 3}, {"epochs": 3}])
def test_other_settings_are_refused_by_name(change: dict[str, Any]) -> None:
    order = KeyOrder(DATA, "train", replace(SETTINGS, **change))
    record = record_at(KeyOrder(DATA, "train", SETTINGS), 8)
    (name,) = change
    raises_in_one_line(lambda: continued(order, [record]), UsageError, f"{name} was")


@pytest.mark.parametrize(
    ("settings", "alike"),
    [
        ({}, True),
        ({"buffer": 4, "buffer_seed": 1}, False),
        ({"buffer": 4, "buffer_seed": 1, "buffer_reshuffle": False}, True),
        ({"shuffle_seed": 1}, False),
        ({"shuffle_seed": 1, "reshuffle": False}, True),
        ({"shuffle_seed": 1, "reshuffle": False, "buffer": 4, "buffer_seed": 1}, False),
    ],
)
def test_passes_are_alike_where_nothing_is_shuffled_anew(
    settings: dict[str, Any], alike: bool
) -> None:
    order = KeyOrder(toy(3, 2, 4, 1), "train", ReadSettings(**settings))
    assert order.passes_are_alike == alike
    made = [order.of_pass(index) for index in range(4)]
    passes = [[one.key(index) for index in range(len(one))] for one in made]
    assert all(one == passes[0] for one in passes) == alike
