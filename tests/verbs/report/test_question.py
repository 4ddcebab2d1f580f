"""What a report is about: the host and batch that are meant."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.base.phrase import phrase
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.report.question import (
    NotShown,
    ReportQuestion,
    shown,
    shown_of,
)

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(9, 9)),))


def question(settings: dict[str, Any], hosts: int | None = None, **more: Any) -> ReportQuestion:
    read, usage = ReadSettings(**settings), Usage(hosts=hosts)
    return ReportQuestion(dataset=TOY, spec=None, settings=read, usage=usage, in_force=(), **more)


@pytest.mark.parametrize(
    ("settings", "hosts", "host", "num_hosts"),
    [
        ({}, None, None, 1),
        ({}, 1, None, 1),
        ({}, 2, "0/2", 2),
        ({"host": "1/2"}, None, "1/2", 2),
        ({"host": "1/2"}, 2, "1/2", 2),
        ({"stages": "shard(2, 1) | batch(2)"}, 2, None, 2),
        ({"stages": "read(train, host=1/2) | batch(2)"}, 2, None, 2),
        ({"stages": "shuffle(2, seed=1)"}, 2, "0/2", 2),
        ({"loader": "grain"}, 2, "0/2", 2),
    ],
)
def test_which_host_is_measured(
    settings: dict[str, Any], hosts: int | None, host: str | None, num_hosts: int
) -> None:
    asked = question(settings, hosts)
    assert (asked.reading.host and str(asked.reading.host)) == host
    assert asked.num_hosts == num_hosts


@pytest.mark.parametrize(
    ("settings", "said", "of_device"),
    [
        ({}, None, 64),
        ({"batch": 5}, 5, 2),
        ({"stages": "batch(5)"}, 5, 2),
        ({"stages": "batch(5) | unbatch | batch(3)"}, 3, 1),
        ({"stages": "cache"}, None, 64),
    ],
)
def test_which_batch_is_meant(settings: dict[str, Any], said: int | None, of_device: int) -> None:
    asked = question(settings, devices=4)
    assert (asked.said_batch(None), asked.device_batch(None)) == (said, of_device)


def refuse(*_: object) -> int:
    raise UsageError(phrase("{cycle=auto} needs {cpus=N}"))


def test_what_is_made_of_a_part_is_missing_with_it() -> None:
    missing = NotShown(reason="--cycle auto needs --cpus N")
    assert shown(refuse) == missing
    assert shown_of(shown(lambda: 3), lambda part: part + 1) == 4
    assert shown_of(missing, refuse) is missing
    assert shown_of(3, refuse) == missing
    with pytest.raises(ZeroDivisionError):  # a fault of ours is no reason
        shown(lambda: 1 // 0)
