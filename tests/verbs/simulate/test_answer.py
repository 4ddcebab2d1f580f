"""Simulated orders: every figure of the TFDS determinism guide, and stretches of an order."""

from __future__ import annotations

from itertools import chain

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.metadata.catalog import catalog_dataset
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.simulate.answer import simulate

IMAGENET = catalog_dataset("imagenet2012")
TOY = Dataset(name="d", splits=(Split.even(name="train", num_examples=10, num_shards=3),))


def ids(
    spec: str = "train", *, skip: int = 0, take: int | None = 20, **settings: object
) -> list[int]:
    assert IMAGENET is not None
    read = ReadSettings(**settings)  # type: ignore[arg-type]
    return list(map(int, simulate(IMAGENET, spec, read, skip=skip, take=take).ids()))


# What https://www.tensorflow.org/datasets/determinism prints, cell by cell.


def test_guide_default_order() -> None:
    assert ids() == [*range(16), 1251, 1252, 1253, 1254]


def test_guide_subsplit() -> None:
    assert ids("train[67%:84%]") == [*range(858382, 858398), 859533, 859534, 859535, 859536]


def test_guide_cycle_3_block_2() -> None:
    expected = [0, 1, 1251, 1252, 2502, 2503, 2, 3, 1253, 1254, 2504, 2505]
    assert ids(cycle=3, block=2) == [*expected, 4, 5, 1255, 1256, 2506, 2507, 6, 7]


def test_guide_take_is_no_subsplit() -> None:
    assert ids(take=25) == [*range(16), *range(1251, 1260)]
    assert ids("train[:25]", take=None) == list(range(25))


def test_guide_shuffle_seed() -> None:
    expected = [*range(176411, 176427), *range(710647, 710653)]
    assert ids(take=22, shuffle_files=True, shuffle_seed=32) == expected


def test_guide_reversed_files() -> None:
    assert ids(take=5, reverse=True) == [1279916, 1279917, 1279918, 1279919, 1279920]


def test_guide_skip_is_a_subsplit_with_a_cycle_of_1() -> None:
    assert ids(skip=40, take=22, cycle=1) == list(range(40, 62))
    assert ids("train[40:]", take=22, cycle=1) == list(range(40, 62))


def test_a_fixed_shuffle_seed_does_not_repeat_the_order_as_the_guide_has_it() -> None:
    starts = [ids(take=1, shuffle_seed=32, pass_index=index)[0] for index in range(3)]
    assert starts == [176411, 972136, 556757]
    fixed = {ids(take=1, shuffle_seed=32, pass_index=i, reshuffle=False)[0] for i in range(3)}
    assert len(fixed) == 1


def test_epochs_of_one_pass_are_shuffled_anew_too() -> None:
    size = 1281167
    starts = [ids(skip=size * e, take=1, shuffle_seed=32, epochs=3)[0] for e in range(3)]
    assert starts == [176411, 972136, 556757]


@pytest.mark.parametrize(("skip", "take"), [(0, 0), (3, 4), (10, 5), (9, None), (0, 99)])
def test_a_stretch_is_that_slice_of_the_order(skip: int, take: int | None) -> None:
    whole = simulate(TOY, settings=ReadSettings(cycle=2, block=2), take=None).ids().tolist()
    assert sorted(whole) == list(range(10))
    stretch = simulate(TOY, settings=ReadSettings(cycle=2, block=2), skip=skip, take=take)
    expected = whole[skip : None if take is None else skip + take]
    assert stretch.ids().tolist() == list(chain.from_iterable(stretch.chunks())) == expected
    assert stretch.take == len(expected)


@pytest.mark.parametrize(
    ("skip", "take", "message"),
    [
        (11, 1, "--skip 11: the order has 10 examples"),
        (-1, 1, "--skip -1"),
        (0, -2, "--take -2: a number of examples is needed, or -1 for all"),
    ],
)
def test_a_stretch_outside_the_order_is_refused(skip: int, take: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(TOY, skip=skip, take=take)


def test_an_open_order_is_refused() -> None:
    with pytest.raises(UnpredictableOrderError, match="give --shuffle-seed N"):
        simulate(TOY, settings=ReadSettings(shuffle_files=True))


def test_a_stretch_far_into_a_huge_order_costs_no_more_than_a_near_one() -> None:
    lengths = (2**40,) * 64
    split = Split(name="train", shard_lengths=lengths)
    ranges = [SplitRange(split=split, start=0, stop=split.num_examples)]
    order = ReaderOrder(Dataset(name="d", splits=(split,)), ranges, ReadSettings(epochs=1000))
    start = 999 * split.num_examples + 16 * 2**40  # the 16 shards of the first slots are read
    assert order.read(start, start + 17).tolist() == [
        *range(16 * 2**40, 16 * 2**40 + 16),
        17 * 2**40,
    ]


def test_stages_without_end_are_shown_as_far_as_asked() -> None:
    settings = {"stages": "shuffle(4, seed=1) | repeat | batch(3)"}
    found = simulate(TOY, None, settings, skip=95, take=10)
    once = simulate(TOY, None, {"buffer": 4, "buffer_seed": 1, "epochs": 11}, skip=95, take=10)
    assert found.ids().tolist() == once.ids().tolist()
    assert repr(found).endswith("positions 95 to 104 of an endless order>")
    for take in (None, -1):
        with pytest.raises(UsageError, match=r"stages have no end, .* give --take N"):
            simulate(TOY, None, settings, take=take)
