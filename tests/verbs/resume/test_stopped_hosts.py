"""Hosts that stopped, each somewhere; what is left of them is tested with the plans for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import old_orders, resume_on_hosts
from shardctl.verbs.resume.stopped_hosts import num_read_of, stopped_hosts
from tests.verbs.resume.plan_cases import TOY


def test_a_host_has_read_what_its_buffer_held_and_nothing_of_later_epochs() -> None:
    settings = ReadSettings(buffer=4, buffer_seed=1, epochs=3)
    orders = [planned.of_reader for planned in old_orders(TOY, "train", settings, 2)]
    size = orders[0].epoch_size
    old, sure = stopped_hosts(
        orders, [size + 2, orders[1].num_examples], mode="exactly-once", risk=None
    )
    assert sure is None
    assert [num_read_of(old[0], epoch) for epoch in range(3)] == [size, 2 + 4 - 1, 0]
    assert [num_read_of(old[1], epoch) for epoch in range(3)] == [orders[1].epoch_size] * 3


def test_the_risk_is_that_of_all_hosts_together() -> None:
    settings = ReadSettings(buffer=4)

    def planned(**arguments: Any) -> Any:
        return resume_on_hosts(
            TOY, "train", settings, hosts=2, to_hosts=1, consumed=[9], **arguments
        )

    plan = planned(mode="at-least-once", risk=1.0)
    alone = [
        resume(
            TOY,
            "train",
            replace(settings, host=Host(index=index, count=2)),
            consumed=9,
            mode="at-least-once",
            risk=0.5,
        ).unseeded
        for index in range(2)
    ]
    assert plan.unseeded.expected_lost == sum(one.expected_lost for one in alone if one)
    assert plan.unseeded.first_read == sum(one.first_read for one in alone if one)
    assert plan.unseeded.risk == 1.0
    with pytest.raises(UsageError, match="at most the size of the buffer, 4"):
        planned(mode="at-least-once", risk=4.5)
    with pytest.raises(UsageError, match="risk is read with --mode at-least-once only"):
        planned(mode="at-most-once", risk=0.5)
    with pytest.raises(UnpredictableOrderError, match="only the seed of that very run"):
        planned()
    with pytest.raises(UsageError, match="choose from exactly-once, at-most-once, at-least-once"):
        planned(mode="exact-order")
