"""How an epoch ends on all hosts, counted example by example."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError
from shardctl.order.file_formats import resolved_spec
from shardctl.order.order import Order
from shardctl.order.plan_order import order_of
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.loaders import ending_of
from shardctl.verbs.quality.ways import ways_to_read
from tests.cases import counted


def _dataset(lengths: list[int]) -> Dataset:
    return Dataset(name="d", splits=(Split(name="train", shard_lengths=tuple(lengths)),))


def _ends(dataset: Dataset, settings: ReadSettings) -> tuple[object, ...]:
    resolved = resolved_spec(dataset, None)

    def order_under(other: ReadSettings) -> Order:
        return order_of(resolved, other).order

    found = ending_of(order_under, settings, resolved.num_examples)
    hosts: list[Host | None] = [None]
    if settings.host is not None:
        hosts = [Host(index=i, count=settings.host.count) for i in range(settings.host.count)]
    orders = [order_under(replace(settings, host=host)) for host in hosts]
    steps = [order.num_steps or 0 for order in orders]
    last = [
        len(order.positions_in_step(n - 1)) for order, n in zip(orders, steps, strict=True) if n
    ]
    smallest = min(last, default=0)
    assert found.steps == (min(steps), max(steps))
    assert found.hangs == (len({*steps}) > 1)
    if settings.loader == "grain" and settings.drop_remainder:  # counted before batches are dropped
        num_handed_out = sum(order.num_examples for order in orders)
        orders = [order_under(replace(order.settings, drop_remainder=False)) for order in orders]
        whole = sum(order.num_examples for order in orders)
        assert found.num_dropped == whole - num_handed_out
    seen = Counter(int(code) for order in orders for code in order.read(0, order.num_examples))
    assert found.num_repeated == sum(seen.values()) - len(seen)
    dropped = 0 if settings.loader == "grain" else found.num_dropped
    assert found.num_left_out + dropped == resolved.num_examples - len(seen)
    assert found.num_dropped == 0 or settings.drop_remainder
    assert found.last_batch == (smallest if 0 < smallest < (settings.batch or 1) else None)
    return (found.hangs, found.num_repeated > 0, found.num_left_out > 0, found.num_dropped > 0)


@pytest.mark.long
def test_steps_and_examples_are_those_that_the_hosts_read() -> None:
    seen: Counter[str] = Counter()

    def case(seed: int) -> None:
        rng = random.Random(seed)
        lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 9))]
        hosts = rng.randint(1, 5)
        settings = ReadSettings(
            batch=rng.randint(1, 6),
            drop_remainder=rng.random() < 0.4,
            buffer=rng.randint(1, 20),
            host=None if hosts == 1 else f"0/{hosts}",  # type: ignore[arg-type]
            shuffle_seed=rng.randint(0, 99),
        )
        dataset = _dataset(lengths)
        for way in ways_to_read(settings):
            if way.shares or hosts == 1:
                try:
                    ends = _ends(dataset, way.settings)
                except ShardctlError:  # more hosts than examples
                    continue
                kinds = zip(("hangs", "repeated", "left out", "dropped"), ends, strict=True)
                seen.update(name for name, there in kinds if there)

    for seed in counted(range(12)):
        case(seed)
    assert {*seen} == {"hangs", "repeated", "left out", "dropped"}


@pytest.mark.parametrize(
    ("start", "repeated", "left_out", "steps"),
    [
        # 10 examples on 4 hosts, batches of 2, by hand.
        ("TFDS", 0, 0, (1, 2)),  # 3, 3, 2, 2
        ("Grain: Index", 0, 2, (1, 1)),  # 10 // 4 each
        ("torch: Dist", 2, 0, (2, 2)),  # 3 each
        ("Accelerate", 6, 0, (2, 2)),  # 5 batches, wrapped to 8
    ],
)
def test_by_hand(start: str, repeated: int, left_out: int, steps: tuple[int, int]) -> None:
    settings = ReadSettings(batch=2, host="0/4")  # type: ignore[arg-type]
    way = next(way for way in ways_to_read(settings) if way.reader.startswith(start))
    resolved = resolved_spec(_dataset([5, 5]), None)
    found = ending_of(lambda other: order_of(resolved, other).order, way.settings, 10)
    assert (found.num_repeated, found.num_left_out, found.steps) == (repeated, left_out, steps)


@pytest.mark.parametrize("size", [65_537])
def test_a_size_of_which_grains_shuffle_is_no_permutation(size: int) -> None:
    settings = ReadSettings(loader="grain", shuffle_seed=3, batch=256)
    assert _ends(_dataset([size]), settings)[1:3] == (True, True)
