"""Steps of hosts whose stages are behind the reader, beside the order of each host."""

from __future__ import annotations

import numpy as np
import pytest

import shardctl
from shardctl.core.hosts.host import Host
from shardctl.core.stages.text import parse_stages
from shardctl.errors import UsageError
from shardctl.planning.hosts.stages import steps_of


@pytest.mark.parametrize("stages", ["map | batch(7) | repeat(3)", "repeat(2) | map | batch(64)"])
@pytest.mark.parametrize("mode", ["even", "files"])
def test_steps_are_those_of_the_order_of_each_host(stages: str, mode: str) -> None:
    found = shardctl.hosts("imagenet2012", "validation", {"stages": stages}, hosts=5)
    steps = found.comparisons[0].strategy(mode).batches
    for index in range(5):
        settings = {"stages": stages, "host": Host(index=index, count=5), "host_by": mode}
        order = shardctl.plan_order("imagenet2012", "validation", settings).order
        assert steps is not None
        assert order.num_steps == steps[index]


def test_steps_without_batches_or_end_are_none() -> None:
    sizes = np.array([5, 4, 5])
    assert steps_of(parse_stages("map | repeat(2)"), sizes) is None
    assert steps_of(parse_stages("repeat | batch(2)"), sizes) is None
    steps = steps_of(parse_stages("batch(2, drop_remainder=True) | take(2)"), sizes)
    assert steps is not None
    assert steps.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("stages", "why"),
    [
        ("zip(train, test) | batch(3)", "do not read one dataset"),
        ("shard(3, 1) | batch(3) | repeat(2)", "picks one host"),
        ("filter(kept=a.npy) | batch(3)", "depends on which they are"),
    ],
)
def test_what_hosts_do_not_share_is_refused(stages: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        shardctl.hosts("mnist", None, {"stages": stages}, hosts=3)


def test_the_reader_of_the_stages_says_what_is_shared() -> None:
    stages = "read(test, data='mnist') | batch(4) | repeat(2)"
    found = shardctl.hosts("imagenet2012", None, {"stages": stages}, hosts=2)
    assert (found.dataset.name, found.spec) == ("mnist", "test")
    assert found.comparisons[0].num_examples == 10_000
