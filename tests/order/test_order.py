"""Orders: what tf.data hands out over ranges in place of files, at any position, in any pass."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.order import order as order_module
from shardctl.order import reader_order
from shardctl.order.order import CHUNK_SIZE, Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from tests.cases import FUZZ, check_cases, fuzzed, seed_of_test
from tests.golden import assert_evaluated
from tests.order.order_cases import Case, cases, changed


def whole(order: Order) -> list[int]:
    codes: list[int] = order.read(0, order.num_examples).tolist()
    return codes


def of_shards(*lengths: int, **settings: object) -> ReaderOrder:
    """Return the order of a split of shards of these lengths."""
    split = Split(name="train", shard_lengths=lengths)
    ranges = [SplitRange(split=split, start=0, stop=split.num_examples)]
    dataset = Dataset(name="d", splits=(split,))
    return ReaderOrder(dataset, ranges, ReadSettings(**settings))  # type: ignore[arg-type]


def test_positions_of_all_hosts_are_counted_where_files_repeat() -> None:
    settings = {"repeat_files": True, "host_by": "examples", "host": Host(index=1, count=1000)}
    most = (2**63 - 1) // 1000
    assert of_shards(5, 3, epochs=most, **settings).codes_at([2]).tolist() == [2001 % 8]
    with pytest.raises(UsageError, match="of 1000 examples: positions go up to"):
        of_shards(5, 3, epochs=most + 1, **settings)
    with pytest.raises(UsageError, match="positions go up to"):
        of_shards(3, 4, epochs=2**61)


def test_slices_and_random_positions_agree_with_the_whole() -> None:
    def law(case: Case) -> None:
        order, expected = case.order(), whole(case.order())
        total = order.num_examples
        for start, stop in [(0, 0), (total, total), (total // 3, total // 2), (total // 2, total)]:
            # A fresh order each time, which builds no more than this stretch needs.
            assert case.order().read(start, stop).tolist() == expected[start:stop]
        anywhere = np.random.default_rng(total).integers(0, max(total, 1), min(total, 20))
        assert case.order().codes_at(anywhere).tolist() == [expected[i] for i in anywhere]
        assert order.codes_at(np.arange(total)).tolist() == expected

    check_cases(cases(), law, 30)


def test_an_example_is_found_at_every_position_it_has() -> None:
    def law(case: Case) -> None:
        order, expected = case.order(), whole(case.order())
        codes = np.arange(sum(case.lengths))[::-1]
        query, positions = order.positions_of(codes)
        found = list(zip(codes[query].tolist(), positions.tolist(), strict=True))
        assert found == [
            (code, position)
            for code in codes.tolist()
            for position, other in enumerate(expected)
            if code == other
        ]

    check_cases(cases(), law, 30)


def test_each_epoch_reads_every_example_of_the_host_once() -> None:
    def law(case: Case) -> None:
        if case.settings.repeat_files or case.settings.drop_remainder:
            return
        order = case.order()
        ids = [i for start, count in _instructions(order) for i in range(start, start + count)]
        if case.settings.host is None or case.settings.host_by == "files":
            assert order.epoch_size == len(ids)
        for epoch in range(case.settings.epochs):
            start = epoch * order.epoch_size
            read = order.read(start, start + order.epoch_size).tolist()
            if order.epoch_size == len(ids):
                assert Counter(read) == Counter(ids)
            else:
                assert not Counter(read) - Counter(ids)
            assert set(order.epoch_of(np.arange(start, start + len(read))).tolist()) <= {epoch}

    check_cases(cases(), law, 30)


def _instructions(order: Order) -> list[tuple[int, int]]:
    return list(zip(order.reads.first.tolist(), order.reads.take.tolist(), strict=True))


def test_hosts_share_the_examples_among_them() -> None:
    def law(case: Case) -> None:
        host = case.settings.host
        if host is None or case.settings.repeat_files or case.settings.drop_remainder:
            return
        shares = []
        for index in range(host.count):
            settings = changed(case.settings, host=Host(index=index, count=host.count))
            shares.append(Counter(whole(Case(**{**vars(case), "settings": settings}).order())))
        alone = changed(
            case.settings, host=None, buffer=None, buffer_seed=None, buffer_reshuffle=None
        )
        together = Counter(whole(Case(**{**vars(case), "settings": alone}).order()))
        assert sum(shares, Counter()) == together

    check_cases(cases(), law, 30)


def test_repeated_files_are_listed_as_far_as_they_are_asked_about() -> None:
    far = of_shards(5, 3, shuffle_seed=1, repeat_files=True, epochs=2**50)
    near = of_shards(5, 3, shuffle_seed=1, repeat_files=True, epochs=9)
    assert far.read(60, 72).tolist() == near.read(60, 72).tolist()
    # 16 files are read at a time, each in one visit: the files of eight epochs, one by one.
    codes = near.read(0, 64)
    openings = [shuffle_permutation(2, 2, near.seeds.of_files(epoch)) for epoch in range(8)]
    files = {0: [0, 1, 2, 3, 4], 1: [5, 6, 7]}
    assert codes.tolist() == [
        code for rows in openings for row in rows.tolist() for code in files[row]
    ]
    with pytest.raises(UsageError, match="more than 8388608; ask for fewer --epochs"):
        far.codes_at([2**40])


def test_chunks_are_bounded_and_make_up_the_whole() -> None:
    for settings in ({}, {"host": Host(index=1, count=3), "host_by": "examples"}):
        order = of_shards(*[400_000] * 8, block=5, **settings)
        sizes = [len(chunk) for chunk in order.chunks(0, order.num_examples)]
        assert (sum(sizes), max(sizes)) == (order.num_examples, CHUNK_SIZE)


def test_alike_epochs_are_not_replayed_one_by_one() -> None:
    order = of_shards(2, 2, epochs=10**15, cycle=2, block=1)
    assert order.num_examples == 4 * 10**15
    assert order.codes_at([4 * 10**15 - 1, 5]).tolist() == [3, 2]
    assert order.read(4 * 10**15 - 3, 4 * 10**15).tolist() == [2, 1, 3]
    _, positions = of_shards(2, 2, epochs=100_000, cycle=2, block=1).positions_of([1])
    assert positions.tolist() == list(range(2, 400_000, 4))


def test_the_slot_and_the_offset_of_each_visit() -> None:
    order = of_shards(3, 2, 4, cycle=2, block=2, epochs=2)
    assert order.read(0, 9).tolist() == [0, 1, 3, 4, 2, 5, 6, 7, 8]
    # Shard 1 ends with a visit that yields nothing, so that slot 0 is free when shard 2 opens.
    visits = [[0, 0, 1, 1, 0, 0, 0, 0, 0] * 2, [0, 1, 0, 1, 2, 0, 1, 2, 3] * 2]
    assert [found.tolist() for found in order.blocks_at(np.arange(18)) or ()] == visits
    assert of_shards(3, buffer=2, buffer_seed=1).blocks_at([0]) is None


def test_an_order_of_no_examples() -> None:
    several: list[dict[str, Any]] = [{}, {"epochs": 3, "repeat_files": True}]
    several += [{"buffer": size, "buffer_seed": 1} for size in (-2, 10)]
    for settings in (*several, several[1] | several[3]):
        order = of_shards(0, 0, shuffle_seed=3, **settings)
        assert (order.num_examples, whole(order)) == (0, [])
        assert [array.tolist() for array in order.positions_of([0, 5])] == [[], []]
        assert order.codes_at([]).tolist() == []


def test_dropped_remainders_are_those_of_all_epochs_together() -> None:
    for settings, count in (
        ({"epochs": 3, "drop_remainder": True}, 20),
        ({"epochs": 3}, 21),
        ({"epochs": 1}, 7),
        ({"batch": 8, "drop_remainder": True}, 0),
    ):
        order = of_shards(7, **{"batch": 4, **settings})
        assert order.num_examples == count
        assert order.num_steps == -(-count // order.settings.batch)  # type: ignore[operator]


def test_positions_outside_the_order_are_refused() -> None:
    assert_evaluated(globals(), "outside")


def test_more_positions_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_module, "MAX_POSITIONS", 6)
    assert of_shards(5, 3, epochs=3).positions_of([0, 7])[1].tolist() == [0, 8, 16, 7, 15, 23]
    with pytest.raises(UsageError, match="2 examples in 4 epochs have more than 6 positions; ask"):
        of_shards(5, 3, epochs=4).positions_of([0, 7])


# A few examples in many epochs at once, as each epoch alone reads them.


def order_at_random(seed: int) -> Order:
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
@fuzzed(16)
def test_an_example_is_where_each_epoch_alone_reads_it(
    num_cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, first = 0, seed_of_test() if num_cases == FUZZ else 0
    for seed in range(first, first + num_cases):
        check_positions(order_at_random(seed), seed)
        monkeypatch.setattr(reader_order, "ROOM", 100 + seed % 99)
        together += not order_at_random(seed).settings.repeat_files
    assert together > num_cases // 2 or FUZZ < 100  # of a few random ones nobody knows


def check_positions(order: Order, seed: int) -> None:
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
