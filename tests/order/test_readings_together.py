"""A few examples in many epochs at once, as each epoch alone reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order import reader_order as module
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from tests.cases import FUZZ, seed_of_test

NUM_CASES = 16


def order_of(seed: int) -> Order:
    """Return a random order whose epochs differ."""
    draw = np.random.default_rng(seed)
    count, block = int(draw.integers(2, 9)), int(draw.integers(1, 6))
    lengths = draw.integers(0, 12, count)
    if draw.random() < 0.4:
        lengths = int(draw.integers(0, 4)) * block + draw.integers(0, block, count)
    lengths[0] += not lengths.any()
    settings: dict[str, Any] = {
        "shuffle_seed": seed,
        "cycle": int(draw.integers(1, 12 if draw.random() < 0.9 else 2000)),
        "block": block,
        "epochs": int(draw.integers(2, 50)),
    }
    if draw.random() < 0.4:
        settings |= {"buffer": int(draw.integers(1, 30)), "buffer_seed": seed}
    if draw.random() < 0.5:
        mode = ("even", "examples", "files")[int(draw.integers(3 if lengths.all() else 2))]
        settings |= {"host": Host(index=int(draw.integers(2)), count=2), "host_by": mode}
    if draw.random() < 0.3:
        settings |= {"batch": 4, "drop_remainder": True}
    if draw.random() < 0.2:
        settings["repeat_files"] = True
    train = Split(name="train", shard_lengths=tuple(lengths.tolist()))
    toy = Dataset(name="toy", splits=(train,))
    spec = "train[:70%]+train[30%:]" if draw.random() < 0.3 else "train"
    return ReaderOrder(toy, resolve_subsplit(spec, toy).ranges, ReadSettings(**settings))


@pytest.mark.long
def test_an_example_is_where_each_epoch_alone_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    together = 0
    for seed in range(NUM_CASES):
        check(order_of(seed), seed)
        monkeypatch.setattr(module, "ROOM", 100 + seed)
        together += not order_of(seed).settings.repeat_files
    assert together > NUM_CASES // 2


def check(order: Order, seed: int) -> None:
    """Compare the pieces, and all of them, with a search of the whole order."""
    whole = order.read(0, order.num_examples)
    codes = np.unique(np.random.default_rng([seed, 1]).choice(np.append(whole, 0), 4))
    expected = [
        (query, position)
        for query, code in enumerate(codes.tolist())
        for position in np.flatnonzero(whole == code).tolist()
    ]
    found = [column.tolist() for column in order.positions_of(codes)]
    assert list(zip(*found, strict=True)) == expected, seed
    last = -1
    for _, position in order.positions_in_pieces(codes):
        if len(position) and (order.num_buffered is None or not order.settings.repeat_files):
            assert position.min() > last, seed
            last = int(position.max())


@pytest.mark.fuzz
def test_an_example_is_where_each_epoch_alone_reads_it_fuzzed() -> None:
    for seed in range(seed_of_test(), seed_of_test() + FUZZ):
        check(order_of(seed), seed)
