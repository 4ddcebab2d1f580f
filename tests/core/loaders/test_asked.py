"""What a rule is asked."""

from __future__ import annotations

import numpy as np

from shardctl.core.loaders.asked import Asked


def test_examples_are_those_of_all_shards_empty_ones_too() -> None:
    assert Asked(lengths=np.array([3, 0, 4]), version="1").num_examples == 7
    assert Asked(lengths=np.array([], np.int64), version="1").num_examples == 0


def test_nothing_is_asked_that_nobody_gave() -> None:
    asked = Asked(lengths=np.array([3]), version="1")
    assert (asked.seed, asked.global_seed, asked.shuffle, asked.batch) == (None,) * 4
    assert (asked.shares, asked.host, asked.num_hosts, asked.epochs) == (False, 0, 1, 1)
