from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shardctl.core.progress import Progress
from shardctl.planning.order import order_of, resolved_spec
from shardctl.planning.resume.seen import codes_of
from shardctl.planning.verify import Window
from shardctl.tfds.verifying.index_ranges import IndexRanges
from shardctl.tfds.verifying.verify_plan import pass_over_ranges
from tests.planning.resume.plan_cases import TOY, plans

pytestmark = pytest.mark.tensorflow  # the ranges are read by the bridge, which imports it


@pytest.mark.parametrize("size", [5, 45])
@pytest.mark.parametrize("name", ["exact", "in exact order", "exactly once", "host by examples"])
def test_the_epoch_of_a_plan_and_those_that_follow(name: str, size: int) -> None:
    plan = plans()[name]
    settings = replace(plan.settings, batch=None, drop_remainder=False)
    resolved = resolved_spec(TOY, plan.spec)
    order = order_of(resolved, settings).of_reader
    size = min(size, order.num_examples - plan.consumed)
    read = pass_over_ranges(
        plan,
        IndexRanges(resolved=resolved, codes=codes_of(resolved)),
        lambda: order,
        num_first=plan.remaining,
        window=Window(start=plan.consumed, stop=plan.consumed + size, read="index ranges"),
        batch=8,
        progress=Progress(None, "examples", size),
    )
    found = np.concatenate(list(read)).tolist()
    expected = order.read(plan.consumed, plan.consumed + size).tolist()
    assert len(found) == size
    if plan.mode == "exactly-once":
        assert found[plan.remaining :] == expected[plan.remaining :]
        whole = order.read(plan.consumed, plan.consumed + plan.remaining).tolist()
        assert set(found[: plan.remaining]) <= set(whole)
    else:
        assert found == expected
