"""Where a loader begins, from counts and positions; its rooms test the rest with their states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl import Host, ReadSettings
from shardctl.errors import UsageError
from shardctl.live.key_order import KeyOrder, continued, order_from, record_at
from tests.grain.toys import raises_in_one_line, toy

DATA = toy(11, 13, 16)
SETTINGS = ReadSettings(shuffle_seed=3, buffer=9, buffer_seed=1, epochs=2, batch=4)


def of_host(index: int, count: int) -> KeyOrder:
    return KeyOrder(DATA, "train", replace(SETTINGS, host=Host(index=index, count=count)))


def begun(settings: Any, states: list[bytes]) -> KeyOrder:
    return order_from(
        DATA, "train", settings, consumed=8, states=states, after=lambda order, _: order
    )


def test_it_begins_at_a_count_or_with_states() -> None:
    order = begun({"batch": 4}, [])
    assert (order.consumed, len(order)) == (8, 32)
    raises_in_one_line(lambda: begun(None, [b"", b""]), UsageError, "one of them")


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
