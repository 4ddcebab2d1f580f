"""Quality of pipelines: laws over settings, parts, epochs and hosts, counted one by one."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.hosts.host import Host
from shardctl.core.hosts.modes import HostBy
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.stand_in_seeds import with_stand_in_seeds
from shardctl.errors import ShardctlError, UsageError
from shardctl.planning.quality import across as quality_across
from shardctl.planning.quality import quality as planning
from shardctl.planning.quality.quality import Quality, quality
from shardctl.planning.quality.sample import sample_epoch
from tests.planning.quality.quality_orders import even_dataset, metric
from tests.strategies import Recorder, count_cases


def _bare(dataset: Dataset, settings: ReadSettings, spec: str = "train") -> Quality:
    return quality(dataset, spec, settings, what_if=False)


def _order(dataset: Dataset, settings: ReadSettings, spec: str = "train") -> Order:
    return Order(dataset, resolve_subsplit(spec, dataset).ranges, settings)


@pytest.mark.parametrize("num_shards", [1, 3, 40])
def test_a_buffer_of_the_whole_epoch_scores_as_a_uniform_permutation(num_shards: int) -> None:
    for seed in range(5):
        settings = ReadSettings(buffer=-2, buffer_seed=seed)
        score = _bare(even_dataset(20_000, num_shards), settings).score
        assert score.value == pytest.approx(score.expected, abs=4 * score.spread)
        assert score.value > 0.98


def test_every_small_pipeline_has_a_score(record_property: Recorder) -> None:
    lengths = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(lambda x: sum(x) > 1)
    choices = st.fixed_dictionaries(
        {},
        optional={
            "cycle": st.integers(1, 5),
            "block": st.integers(1, 4),
            "shuffle_files": st.booleans(),
            "buffer": st.one_of(st.just(-2), st.integers(1, 30)),
            "batch": st.integers(1, 40),
            "drop_remainder": st.just(False),
            "epochs": st.integers(1, 3),
            "reverse": st.booleans(),
            "host": st.builds(lambda i: Host(index=i % 2, count=2), st.integers(0, 1)),
            "host_by": st.sampled_from(["even", "files", "examples"]),
        },
    )
    specs = st.sampled_from(["train", "train[1:]", "train+train", "train[:50%]", "train[1shard:]"])

    def check(case: tuple[list[int], dict[str, object], str, int | None]) -> None:
        lengths, given, spec, classes = case
        dataset = Dataset(name="d", splits=(Split(name="train", shard_lengths=tuple(lengths)),))
        settings = ReadSettings(**given)  # type: ignore[arg-type]
        try:
            size = _order(dataset, with_stand_in_seeds(settings)[0], spec).epoch_size
        except ShardctlError:
            return
        if size < 2:
            with pytest.raises(UsageError, match="needs 2 at least"):
                quality(dataset, spec, settings)
            return
        found = quality(dataset, spec, settings, num_classes=classes and min(classes, size))
        assert 0 <= found.score.value <= 1
        assert 0 <= found.score.expected <= 1
        for each in found.metrics:
            assert np.isfinite([each.value, each.expected, each.spread, each.score]).all()
        assert found.by_position[0].start == 0
        assert found.by_position[-1].stop == found.num_examples == size
        for before, after in pairwise(found.by_position):
            assert before.stop == after.start

    cases = st.tuples(lengths, choices, specs, st.one_of(st.none(), st.integers(0, 3)))
    record_property("cases", count_cases(cases, check, 150))


def test_seeds_are_made_up_only_where_the_order_is_open() -> None:
    dataset = even_dataset(4000, 16)
    open_order = _bare(dataset, ReadSettings(shuffle_files=True, buffer=100))
    assert open_order.assumed == {"shuffle_seed": 1, "buffer_seed": 2}
    assert any("no seed is given" in warning for warning in open_order.warnings)
    fixed = _bare(dataset, ReadSettings(shuffle_seed=1, buffer=100, buffer_seed=2))
    assert (fixed.assumed, fixed.warnings) == ({}, ())
    assert fixed.score == open_order.score
    timed = _bare(dataset, ReadSettings(shuffle_files=True, global_seed=3))
    assert timed.assumed == {"deterministic": True}
    assert _bare(dataset, ReadSettings(deterministic=False)).assumed == {"deterministic": True}


def test_other_seeds_score_about_the_same() -> None:
    dataset = even_dataset(60_000, 256)
    scores = [
        _bare(dataset, ReadSettings(shuffle_seed=seed, buffer=3000, buffer_seed=seed)).score.value
        for seed in range(8)
    ]
    assert max(scores) - min(scores) < 0.06


def test_the_end_of_an_epoch_mixes_worse() -> None:
    # 17 shards in a cycle of 16: the last is read with nothing left beside it.
    dataset = even_dataset(200_000, 17)
    found = _bare(dataset, ReadSettings(shuffle_seed=1, buffer=5000, buffer_seed=1))
    early, tail = found.by_position[0], found.tail
    assert tail is not None
    assert (tail.start % 256, tail.stop) == (0, 200_000)
    assert 2000 <= tail.stop - tail.start < 2256  # the last 1%, from where a batch begins
    assert tail.score.value < 0.7 * early.score.value
    assert found.by_position[-1].score.value < early.score.value
    first, last = (metric(each.metrics, "same_shard_neighbours") for each in (early, tail))
    assert last.value > 3 * first.value


def test_places_in_storage_show_where_a_part_comes_from() -> None:
    found = _bare(even_dataset(50_000, 100), ReadSettings(cycle=1))
    for index, part in enumerate(found.by_position):
        assert part.mean_storage == pytest.approx((index + 0.5) / 10, abs=0.003)


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("buffer", [None, 40])
@pytest.mark.parametrize("shuffles", [False, True])
def test_neighbours_kept_are_those_that_follow_each_other_in_both_epochs(
    shuffles: bool, buffer: int | None, epochs: int
) -> None:
    dataset = even_dataset(900, 12)
    settings = ReadSettings(
        cycle=3,
        block=4,
        shuffle_seed=1 if shuffles else None,
        buffer=buffer,
        buffer_seed=None if buffer is None else 2,
        epochs=epochs,
    )
    across = _bare(dataset, settings).across_epochs
    orders = [
        _order(dataset, ReadSettings(**{**vars(settings), "epochs": 1, "pass_index": index}))
        for index in (0, 1)
    ]
    first, second = (order.read(0, 900).tolist() for order in orders)
    assert across is not None
    assert across.unit == ("epoch" if epochs == 2 else "pass")
    assert across.same_order == (first == second)
    follows = set(pairwise(second))
    kept = sum(pair in follows for pair in pairwise(first)) / 899
    assert across.neighbours_kept == pytest.approx(kept)
    assert across.correlation == pytest.approx(np.corrcoef(first, second)[0, 1])


def test_sampled_epochs_compare_as_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = even_dataset(300_000, 64)
    kept = []
    for settings in (
        ReadSettings(shuffle_seed=1),
        ReadSettings(),
        ReadSettings(buffer=9, buffer_reshuffle=False),
    ):
        whole = _bare(dataset, settings).across_epochs
        with monkeypatch.context() as patch:
            for module in (planning, quality_across):
                patch.setattr(module, "sample_epoch", partial(sample_epoch, limit=1000))
            part = _bare(dataset, settings).across_epochs
        assert whole is not None
        assert part is not None
        assert part.same_order == whole.same_order
        assert part.correlation == pytest.approx(whole.correlation, abs=0.1)
        kept.append((whole.neighbours_kept, part.neighbours_kept))
    assert kept[0][1] == pytest.approx(kept[0][0], abs=0.01)
    assert kept[1] == (1.0, 1.0)
    assert kept[2] == (1.0, None)


def test_a_next_pass_that_hangs_on_timing_is_not_compared() -> None:
    settings = ReadSettings(shuffle_seed=1, repeat_files=True)
    assert _bare(even_dataset(900, 12), settings).across_epochs is None


@pytest.mark.parametrize("host_by", ["even", "files", "examples"])
def test_hosts_are_compared_batch_by_batch(host_by: HostBy) -> None:
    dataset, count, window = even_dataset(4800, 24), 3, 16
    settings = ReadSettings(
        shuffle_seed=1, host=Host(index=1, count=count), host_by=host_by, batch=window
    )
    across = _bare(dataset, settings).across_hosts
    assert across is not None
    assert across.hosts == (0, 1, 2)
    orders = [
        _order(dataset, ReadSettings(**{**vars(settings), "host": Host(index=i, count=count)}))
        for i in range(count)
    ]
    ids = [order.read(0, 1600).tolist() for order in orders]
    stride = 1600 // 64
    touched = []
    for start in range(0, 64 * stride, stride):
        batch = [i for host in ids for i in host[start : start + window]]
        touched.append(len({i * 48 // 4800 for i in batch}) / 48)
    assert across.coverage.value == pytest.approx(np.mean(touched))
    assert across.shared == 0.0
    assert across.num_hosts == 3


def test_hosts_with_one_permutation_are_in_step_and_others_are_not() -> None:
    dataset = even_dataset(64_000, 640)
    settings = ReadSettings(shuffle_seed=1, buffer=64, buffer_seed=1, host=Host(index=0, count=4))
    alike = _bare(dataset, settings).across_hosts
    uneven = tuple(100 + 3 * index for index in range(640))
    lengths = Dataset(name="d", splits=(Split(name="train", shard_lengths=uneven),))
    parted = _bare(lengths, ReadSettings(**{**vars(settings), "host": Host(index=0, count=3)}))
    assert alike is not None
    assert parted.across_hosts is not None
    assert alike.correlation > 0.999
    assert abs(parted.across_hosts.correlation) < 0.4


def test_hosts_that_read_the_same_examples_share_them() -> None:
    settings = ReadSettings(host=Host(index=0, count=2), host_by="files")
    across = _bare(even_dataset(600, 3), settings, "train[:1shard]+train[:1shard]").across_hosts
    assert across is not None
    assert across.shared == 1.0


def test_at_most_eight_hosts_are_compared_the_measured_one_among_them() -> None:
    settings = ReadSettings(host=Host(index=13, count=100), batch=4)
    across = _bare(even_dataset(10_000, 200), settings).across_hosts
    assert across is not None
    assert (across.num_hosts, len(across.hosts)) == (100, 8)
    assert 13 in across.hosts


@pytest.mark.parametrize("spec", ["train[:1]", "train[:0]"])
def test_one_example_has_no_order(spec: str) -> None:
    with pytest.raises(UsageError, match="needs 2 at least"):
        quality(even_dataset(10, 2), spec)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("target", 1.5), ("target", 0.0), ("num_classes", 11), ("num_classes", -1)],
)
def test_targets_and_classes_out_of_range_are_refused(argument: str, value: float) -> None:
    with pytest.raises(UsageError, match=str(value)):
        quality(even_dataset(10, 2), "train", **{argument: value})  # type: ignore[arg-type]
