"""Orders of pipelines with stages: ends, epochs, sources, and what is asked for past them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import shardctl
from shardctl.errors import UsageError
from shardctl.order.staged import StagedOrder

MIXED = (
    "sample_from_datasets([train[:50%] | shuffle(50, seed=1) | repeat, "
    "read(test, data='imagenet2012', shuffle_seed=3) | repeat], weights=[0.7, 0.3], seed=42)"
)


def _order(stages: str, spec: str | None = None, **settings: object) -> StagedOrder:
    order = shardctl.plan_order("mnist", spec, {"stages": stages, **settings}).order
    assert isinstance(order, StagedOrder)
    return order


@pytest.mark.parametrize(
    ("stages", "size"),
    [
        ("shard(2, index=0) | shuffle(5, seed=1) | map | repeat(3)", 5_000),
        ("skip(9_990) | shuffle(5, seed=1) | map | repeat(3) | batch(4)", 10),
        ("batch(64, drop_remainder=True) | shuffle(5, seed=1) | map | repeat", 9_984),
        ("repeat(3) | shuffle(50, seed=1)", 10_000),
        ("cache | shuffle(5, seed=1) | map | repeat(3) | take(7)", 7),
        ("cache | shuffle(1000, seed=1) | map | repeat(3)", 10_000),  # a cache repeats the reading
    ],
)
def test_an_epoch_is_what_comes_to_the_first_repeat(stages: str, size: int) -> None:
    order = _order(stages, "test")
    assert order.epoch_size == size
    if not stages.startswith("repeat"):
        stop = min(size + 5, order.num_examples)
        assert order.epoch_of(np.arange(stop)).tolist() == [0] * size + [1] * (stop - size)


def test_epochs_mix_in_a_shuffle_behind_the_repeat() -> None:
    order = _order("repeat(2) | shuffle(5000, seed=1)", "train[:20%]")
    epochs = order.epoch_of(np.arange(24_000))
    codes = order.read(0, 24_000)
    pairs = Counter(zip(codes.tolist(), epochs.tolist(), strict=True))
    assert set(pairs.values()) == {1}
    assert len(pairs) == 24_000
    assert 0 < epochs[:12_000].sum() == (1 - epochs[12_000:]).sum()


def test_an_order_without_end_is_followed_as_far_as_asked() -> None:
    order = _order("shuffle(1000, seed=7) | repeat | batch(64)", "test")
    assert order.is_endless
    assert (order.num_steps, order.num_epochs) == (None, None)
    assert sorted(order.read(0, 10_000).tolist()) == list(range(10_000))
    assert order.epoch_of([99_999]).tolist() == [9]
    assert order.positions_in_step(10**5) == range(64 * 10**5, 64 * (10**5 + 1))
    with pytest.raises(UsageError, match="comes again and again"):
        order.positions_of([3])
    with pytest.raises(UsageError, match="counted from 0"):
        order.codes_at([1 << 40])


@pytest.mark.long
@pytest.mark.parametrize("stages", ["batch(4) | repeat", "repeat | batch(4)"])
def test_an_order_is_followed_to_the_position_that_is_asked_first(stages: str) -> None:
    """An epoch has 10 examples, and a last batch of 2 if the batches end with it."""
    for position in range(30):
        epoch, within = divmod(position, 10) if stages.startswith("batch") else (0, position)
        steps, places = _order(stages, "test[:10]").steps_of([position])
        step = epoch * 3 + within // 4
        assert (steps.tolist(), places.tolist()) == ([step], [within % 4])
        assert _order(stages, "test[:10]").codes_at([position]).tolist() == [position % 10]
        assert position in _order(stages, "test[:10]").positions_in_step(step)


def test_how_much_of_each_source_is_handed_out_by_then() -> None:
    order = _order(f"{MIXED} | shuffle(100, seed=3) | batch(4)")
    assert order.sources == ("mnist/train[:50%]", "imagenet2012/test")
    names = order.codes.names(order.read(0, 5000))
    counts = Counter(name.partition("/")[0] for name in names)
    assert order.consumed(5000, lambda count: None) == [counts["mnist"], counts["imagenet2012"]]
    sources, codes, widths = order.examples_in_steps(0, 1250)
    assert codes.tolist() == order.read(0, 5000).tolist()
    assert set(widths.tolist()) == {4}
    assert np.bincount(sources).tolist() == [counts["mnist"], counts["imagenet2012"]]
    assert order.consumed(0, lambda count: None) == [0, 0]


def test_tuples_of_zip_are_steps_and_no_batches() -> None:
    order = _order("zip(train, test | repeat) | take(3)")
    names = [f"{split}:{number}" for number in range(3) for split in ("train", "test")]
    assert order.codes.names(order.read(0, 6)) == names
    assert (order.has_steps, order.shape, order.num_steps) == (True, None, 3)


def test_an_order_of_nothing_has_no_positions() -> None:
    order = _order("map | take(0) | shuffle(9, seed=1)", "test")
    assert order.num_examples == 0
    assert order.read(0, 0).tolist() == order.epoch_of([]).tolist() == []
    assert [found.tolist() for found in order.positions_of([3])] == [[], []]
    with pytest.raises(UsageError, match="0 examples"):
        order.read(0, 1)


def test_what_passes_a_filter_is_named_by_a_list(tmp_path: Path) -> None:
    kept = np.arange(10_000) % 7 == 0
    (tmp_path / "kept.txt").write_text("".join(f"{n}\n" for n in np.flatnonzero(kept)))
    shuffled = shardctl.plan_order("mnist", "test", {"buffer": 99, "buffer_seed": 2}).order
    expected = [code for code in shuffled.read(0, 10_000).tolist() if kept[code]]
    order = _order(f"shuffle(99, seed=2) | filter(kept={tmp_path}/kept.txt) | repeat(2)", "test")
    assert order.read(0, len(expected)).tolist() == expected
    assert order.num_examples == 2 * len(expected)
    assert order.epoch_of([0, len(expected)]).tolist() == [0, 1]


def test_memory_of_readings_is_given_back() -> None:
    order = _order("shuffle(99, seed=2) | map | repeat(2)", "test", shuffle_seed=1)
    codes = order.read(0, 20_000)
    order.forget_readings()
    assert np.array_equal(order.read(0, 20_000), codes)


@pytest.mark.parametrize(
    ("stages", "num_skipped"),
    [
        (["skip(1)"] * 1000, 1000),
        (["skip(5)"] * 100, 500),
        (["skip(1)", "batch(2)", "unbatch", "take(9_999)", "prefetch"] * 200, 200),
        pytest.param(
            ["batch(1)", "shuffle(1, seed=1)", "skip(1)", "unbatch"] * 250,
            250,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_thousand_stages_in_a_row_are_followed(stages: list[str], num_skipped: int) -> None:
    plain = shardctl.plan_order("mnist", "test").order
    order = _order(" | ".join(stages), "test")
    kept = plain.read(0, 10_000)[num_skipped:].tolist()
    # As a list, and by positions, which ask each stage for the place of an example.
    assert order.read(0, order.num_examples).tolist() == kept
    some = np.array([0, 1, 77, len(kept) - 1])
    assert order.codes_at(some).tolist() == [kept[one] for one in some]
    # Nothing is left of fewer examples than the skips ask for.
    assert _order(" | ".join(stages), f"test[:{num_skipped // 10}]").num_examples == 0
