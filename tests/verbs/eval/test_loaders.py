"""Evaluations with other loaders, against their orders batch by batch."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.base import arrays
from shardctl.dataset.dataset import Dataset, Split
from shardctl.loaders.loader import LOADERS
from shardctl.order.plan_order import plan_order
from shardctl.verbs.eval.answer import evaluate
from shardctl.verbs.eval.view import advice, cures
from tests.golden import assert_evaluated

TOY = Dataset(name="toy", splits=(Split(name="test", shard_lengths=(3, 4, 0, 6)),))
# As it is by default, it refuses a host without a sample.
_MORE = {"webdataset": {"stages": "WebDataset(nodesplitter=split_by_node, empty_check=False)"}}


def orders(loader: str, hosts: int, batch: int, *, drop: bool, more: dict[str, Any]) -> list[Any]:
    settings = {"loader": loader, "batch": batch, "drop_remainder": drop, **more}
    return [
        plan_order(
            TOY, "test", {**settings, **({"host": f"{i}/{hosts}"} if hosts > 1 else {})}
        ).order
        for i in range(hosts)
    ]


@pytest.mark.parametrize("hosts", [1, 2, 3])
@pytest.mark.parametrize(
    ("loader", "more"),
    [
        *((name, _MORE.get(name, {})) for name in LOADERS),
        ("grain", {"workers": 2}),
        ("hf", {"streaming": True}),
    ],
)
def test_the_figures_are_those_of_the_orders(
    loader: str, more: dict[str, Any], hosts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "_PIECE", 3)  # so that a batch of 4 is in several pieces
    found = evaluate(
        TOY,
        "test",
        {"loader": loader, **more},
        batch_per_device=2,
        hosts=hosts,
        devices=2,
        remainder="drop",
    )
    ragged = orders(loader, hosts, 4, drop=False, more=more)
    dropped = orders(loader, hosts, 4, drop=True, more=more)
    assert found.num_examples.tolist() == [order.num_examples for order in ragged]
    assert found.num_steps("ragged").tolist() == [order.num_steps for order in ragged]
    assert found.num_steps("drop").tolist() == [order.num_steps for order in dropped]
    sizes = {len(o.positions_in_step(step)) for o in ragged for step in range(o.num_steps)}
    assert found.distinct_shapes("ragged") == len(sizes)
    seen = {one for order in ragged for one in order.read(0, order.num_examples).tolist()}
    kept = {one for order in dropped for one in order.read(0, order.num_examples).tolist()}
    assert found.num_left_out == 13 - len(seen)
    assert found.dropped_by_host_batch == len(seen) - len(kept)
    by_device = orders(loader, hosts, 2, drop=True, more=more)
    whole = {one for order in by_device for one in order.read(0, order.num_examples).tolist()}
    assert found.dropped_by_device_batch == len(seen) - len(whole)
    assert found.num_lost == 13 - len(kept)
    steps = [order.num_steps for order in dropped]
    hang = found.hang("drop")
    assert (hang is not None) == (min(steps) != max(steps))
    assert hang is None or hang.step == min(steps)


def test_advice_says_what_a_loader_loses_and_repeats_and_what_cures_it() -> None:
    assert_evaluated(globals(), "of_loaders", advice)


@pytest.mark.parametrize("loader", ["grain", "torch", "hf"])
def test_other_loaders_have_no_cures_as_what_they_do_is_not_tried(loader: str) -> None:
    found = evaluate(TOY, "test", {"loader": loader}, batch=4, hosts=3, remainder="drop")
    assert found.num_lost
    assert cures(found) == ()


def test_whose_sharing_of_a_stream_is_meant_is_said() -> None:
    proven = LOADERS["hf"].proven[-1]  # else it is assumed where none is installed
    streamed = {"loader": "hf", "streaming": True, "loader_version": proven}
    (said,) = evaluate(TOY, "test", streamed, batch=2, hosts=3).warnings
    assert said.startswith("assumed: hosts share the stream by split_dataset_by_node; a Trainer or")
    assert evaluate(TOY, "test", streamed, batch=2, hosts=1).warnings == ()
