"""What a report is about: the host and the batch that are meant, and which of them nobody said."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.lint.context import Usage
from shardctl.verbs.report.question import ReportQuestion, question_in_python

TOY = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(9, 9)),))


def question(settings: dict[str, Any], hosts: int | None = None) -> ReportQuestion:
    return question_in_python(
        TOY, None, ReadSettings(**settings), hosts=hosts, evaluated=(), usage=Usage()
    )


@pytest.mark.parametrize(
    ("settings", "hosts", "expected"),
    [
        ({}, None, None),
        ({}, 1, None),
        ({}, 2, Host(index=0, count=2)),
        ({"host": "1/2"}, None, Host(index=1, count=2)),
        ({"host": "1/2"}, 2, Host(index=1, count=2)),
        ({"stages": "shard(2, 1) | batch(2)"}, 2, None),
        ({"stages": "read(train, host=1/2) | batch(2)"}, 2, None),
        ({"stages": "shuffle(2, seed=1)"}, 2, Host(index=0, count=2)),
        ({"loader": "grain"}, 2, Host(index=0, count=2)),
    ],
)
def test_which_host_is_measured(
    settings: dict[str, Any], hosts: int | None, expected: Host | None
) -> None:
    asked = question(settings, hosts)
    assert asked.reading.host == expected
    assert asked.num_hosts == (hosts or (expected.count if expected else 8))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"batch": 5}, 5),
        ({"stages": "batch(5)"}, 5),
        ({"stages": "batch(5) | unbatch | batch(3)"}, 3),
        ({"stages": "cache"}, None),
    ],
)
def test_which_batch_is_meant(settings: dict[str, Any], expected: int | None) -> None:
    asked = question(settings)
    assert asked.said_batch(None) == expected
    assert asked.host_batch(None) == (expected or 256)


def test_the_options_of_lint_that_were_said_are_kept_by_their_names() -> None:
    asked = question_in_python(
        TOY,
        None,
        ReadSettings(),
        hosts=3,
        evaluated=("train[:5]",),
        usage=Usage(take=4, max_open_files=7, try_autocache=False),
    )
    assert asked.lint == {
        "hosts": 3,
        "take": 4,
        "autocache": False,
        "open_files": 7,
        "eval": ("train[:5]",),
    }
    assert asked.usage.hosts == 3


def test_every_setting_is_in_force_once() -> None:
    names = [item.name for item in question({}).in_force_here]
    assert len(names) == len(set(names))
    assert {"dataset", "read.cycle", "read.loader", "lint.hosts", "lint.fail_on"} <= set(names)
