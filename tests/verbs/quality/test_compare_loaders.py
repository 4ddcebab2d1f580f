"""All loaders on one dataset: which ways there are, how each mixes and ends, what is refused."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError, UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import order_of, plan_order
from shardctl.order.resolved_spec import resolved_spec
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality import compare_loaders as module
from shardctl.verbs.quality.compare_loaders import (
    WayToRead,
    compare_loaders,
    ending_of,
    way_to_read,
    ways_to_read,
)
from tests.cases import counted, some
from tests.golden import assert_golden

# Counted over whole epochs of the real libraries, batches of 256.
IMAGENET = {
    "TFDS: files, shuffle(1,000)": 18.6,
    "TFDS: files, shuffle(10,000)": 40.7,
    "HF 4.8.5: shuffle(1,000)": 5.7,
    "HF 5.2.0: shuffle(1,000)": 12.3,
    "Grain: IndexSampler": 225.6,
    "torch: DistributedSampler": 226.7,
    "HF: Dataset.shuffle": 226.7,
}


@pytest.mark.slow
def test_shards_in_a_batch_of_imagenet_are_those_of_the_libraries() -> None:
    found = compare_loaders("imagenet2012")
    assert found.uniform_shards == pytest.approx(226.65, abs=0.05)
    assert (found.num_shards, found.num_examples, found.batch) == (1024, 1_281_167, 256)
    assert not any(way.refused for way in found.ways)
    mixing = {way.reader: way.mixing for way in found.ways}
    for reader, shards in IMAGENET.items():
        measured = some(mixing[reader])
        assert 0 < measured.num_measured < 1_281_167
        assert abs(measured.shards - shards) < 0.4, reader  # three sampling errors


def test_an_ordered_dataset_is_not_shuffled_by_tfds() -> None:
    split = Split(name="train", shard_lengths=(9, 9))
    found = compare_loaders(Dataset(name="d", splits=(split,), ordered=True), "train")
    refused = [way.reader for way in found.ways if way.refused is not None]
    assert refused == ["TFDS: files, shuffle(1,000)", "TFDS: files, shuffle(10,000)"]


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="stages are one way to read"):
        compare_loaders("mnist", "train", ReadSettings(stages="batch(4)"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at most 1,024"):
        compare_loaders("mnist", "train", {"host": "0/2000"})
    with pytest.raises(UsageError, match="at least 2 examples"):
        compare_loaders("mnist", "train[:1]")


# How an epoch ends on all hosts, counted example by example.


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
    assert (found.fewest_steps, found.most_steps) == (min(steps), max(steps))
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
    assert (found.num_repeated, found.num_left_out) == (repeated, left_out)
    assert (found.fewest_steps, found.most_steps) == steps


def test_a_size_of_which_grains_shuffle_is_no_permutation() -> None:
    settings = ReadSettings(loader="grain", shuffle_seed=3, batch=256)
    assert _ends(_dataset([65_537]), settings)[1:3] == (True, True)


# One way to read: against the whole order, and what is refused.

_TOY = Dataset(
    name="toy", splits=(Split(name="train", shard_lengths=(40, 3, 61, 8, 55, 20, 1, 70)),)
)


def _ways(settings: ReadSettings, spec: str = "train", dataset: Dataset = _TOY) -> list[WayToRead]:
    num_hosts = 1 if settings.host is None else settings.host.count
    resolved = resolved_spec(dataset, spec)
    return [
        way_to_read(resolved, way, num_hosts) for way in ways_to_read(settings, dataset.file_format)
    ]


def _shards_in_batches(way: WayToRead, batch: int) -> list[int]:
    order = plan_order(_TOY, "train", way.settings).order
    codes = order.read(0, order.num_examples)
    shards = np.searchsorted(np.cumsum(_TOY.splits[0].lengths64()), codes, side="right")
    starts = range(0, len(codes) - batch + 1, batch)
    return [len({*shards[start : start + batch].tolist()}) for start in starts]


@pytest.mark.parametrize("host", [None, "1/3"])
def test_shards_of_batches_are_counted_one_by_one(host: str | None) -> None:
    settings = ReadSettings(batch=7, buffer=9, host=host)  # type: ignore[arg-type]
    for way in counted(_ways(settings)):
        if way.mixing is not None:
            found = _shards_in_batches(way, 7)
            assert way.mixing.shards == pytest.approx(sum(found) / len(found))


def test_a_cut_shard_is_not_streamed_and_the_reason_is_said() -> None:
    refused = {way.reader: way.refused for way in _ways(ReadSettings(buffer=9), "train[:50%]")}
    cut = {reader for reader, why in refused.items() if "whole shards" in str(why)}
    streams = {"HF 4.8.5: shuffle(9)", "HF 5.2.0: shuffle(9)", "litdata: StreamingDataset"}
    streams |= {f"Streaming: {algo}" for algo in ("py1e", "py1br", "py2s")}
    assert cut == streams | {"WebDataset: detshuffle(9)"}
    assert [why for reader, why in refused.items() if reader not in cut] == [None] * 8


def test_a_loader_that_shares_nothing_is_no_way_for_hosts() -> None:
    way = next(way for way in _ways(ReadSettings(host="0/2")) if "DataLoader(" in way.reader)  # type: ignore[arg-type]
    assert way.refused is not None
    assert "each host reads everything" in way.refused
    assert (way.mixing, way.ending) == (None, None)


def test_what_a_state_loses_is_at_most_what_the_buffer_and_the_epoch_hold() -> None:
    lost = {way.reader: way.num_lost for way in _ways(ReadSettings(buffer=9)) if way.num_lost}
    assert lost == {"HF 4.8.5: shuffle(9)": 9, "HF 5.2.0: shuffle(9)": 9}
    lost = {way.reader: way.num_lost for way in _ways(ReadSettings()) if way.num_lost}
    assert {*lost.values()} == {258}


def test_a_uniform_permutation_that_is_long_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ReadSettings(batch=8)
    made = {way.reader: way.mixing for way in _ways(settings)}["torch: DistributedSampler"]
    monkeypatch.setattr(module, "COMPLETE_LIMIT", 100)
    known = {way.reader: way.mixing for way in _ways(settings)}["torch: DistributedSampler"]
    made, known = some(made), some(known)
    assert (made.num_measured, known.num_measured) == (258, 0)
    assert known.shards == known.at_end == pytest.approx(made.uniform_shards)
    assert (known.score, known.verdict) == (1.0, "as good as uniform")


# Which ways to read there are, and the settings in force in each.


def test_settings_in_each_way_are_those_on_file() -> None:
    """A buffer and a seed stand for the usual ones; each loader has what it takes, and its own."""
    lines = []
    for given in (
        {},
        {"buffer": 77, "shuffle_seed": 9},
        {"cycle": 4, "batch": 32, "pass_index": 2},
        {"loader": "grain", "workers": 2, "loader_version": "0.2.17"},
        {"loader": "hf", "loader_version": "5.0.0"},
        {"shuffle_files": False},
        {"host": Host(index=1, count=4), "host_by": "files"},
    ):
        lines.append(f"== {given}")
        for way in ways_to_read(ReadSettings(**given)):
            changed = {
                name: str(value)
                for name, value in vars(way.settings).items()
                if value != getattr(ReadSettings(), name)
            }
            lines.append(f"{way.reader}: {changed}{'' if way.shares else ', shares nothing'}")
    assert_golden(Path(__file__).with_name("golden") / "ways.txt", "\n".join(lines) + "\n")
