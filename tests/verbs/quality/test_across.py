"""How epochs and hosts compare: against orders that are read and counted one by one."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.sample import sample_epoch
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host, HostBy
from shardctl.verbs.quality import across as quality_across
from shardctl.verbs.quality import answer as planning
from tests.cases import check_cases
from tests.verbs.quality.quality_orders import even_dataset, order_of_spec, quality_alone


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("buffer", [None, 1, 40])
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
    across = quality_alone(dataset, settings).across_epochs
    orders = [
        order_of_spec(dataset, ReadSettings(**{**vars(settings), "epochs": 1, "pass_index": index}))
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


def test_hosts_that_go_through_all_they_have_alike_correlate_fully() -> None:
    # Four examples each, in the order of the files: variances of few places need their exact size.
    settings = ReadSettings(host=Host(index=0, count=2), batch=2)
    across = quality_alone(even_dataset(8, 2), settings).across_hosts
    assert across is not None
    assert across.correlation == pytest.approx(1, abs=1e-12)


def test_an_epoch_of_which_one_example_is_left_says_nothing() -> None:
    # Two epochs of six examples are one batch of seven; the second has one of them.
    settings = ReadSettings(batch=7, drop_remainder=True, epochs=2, shuffle_seed=1)
    across = quality_alone(even_dataset(6, 1), settings).across_epochs
    assert across is not None
    assert (across.correlation, across.spread) == (0, 1)


@pytest.mark.long
def test_no_correlation_of_stretches_is_over_one() -> None:
    # Hosts with equally many files and one seed open them in one permutation: all but the same.
    settings = {
        "shuffle_seed": 1,
        "buffer": 10_000,
        "buffer_seed": 2,
        "host": "0/16",
        "batch": 1024,
    }
    across = planning.quality(even_dataset(4_000_000, 2000), "train", settings).across_hosts
    assert across is not None
    assert 0.99 < across.correlation <= 1


def test_places_are_the_first_ones_however_codes_lie() -> None:
    def check(case: tuple[list[int], list[int], int]) -> None:
        codes, others, factor = case
        found = quality_across.first_positions(np.array(codes) * factor, np.array(others) * factor)
        assert found.tolist() == [others.index(i) if i in others else -1 for i in codes]

    numbers = st.lists(st.integers(0, 30), min_size=1, max_size=40)
    check_cases(st.tuples(numbers, numbers, st.sampled_from([1, 7, 10**12])), check, 300)


@pytest.mark.long
@pytest.mark.parametrize("settings", [{"shuffle_seed": 1}, {}, {"buffer": 9, "buffer_seed": 1}])
def test_sampled_epochs_compare_as_whole_ones(
    settings: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, read = even_dataset(300_000, 64), ReadSettings(**settings)  # type: ignore[arg-type]
    whole = quality_alone(dataset, read).across_epochs
    for module in (planning, quality_across):
        monkeypatch.setattr(module, "sample_epoch", partial(sample_epoch, limit=1000))
    part = quality_alone(dataset, read).across_epochs
    assert whole is not None
    assert part is not None
    assert part.same_order == whole.same_order
    assert part.correlation == pytest.approx(whole.correlation, abs=0.1)
    assert part.neighbours_kept is None


def test_a_next_pass_that_depends_on_timing_is_not_compared() -> None:
    settings = ReadSettings(shuffle_seed=1, repeat_files=True)
    assert quality_alone(even_dataset(900, 12), settings).across_epochs is None


@pytest.mark.parametrize("host_by", ["even", "files", "examples"])
def test_hosts_are_compared_batch_by_batch(host_by: HostBy) -> None:
    dataset, count, window = even_dataset(4800, 24), 3, 16
    settings = ReadSettings(
        shuffle_seed=1, host=Host(index=1, count=count), host_by=host_by, batch=window
    )
    across = quality_alone(dataset, settings).across_hosts
    assert across is not None
    assert across.hosts == (0, 1, 2)
    orders = [
        order_of_spec(
            dataset, ReadSettings(**{**vars(settings), "host": Host(index=i, count=count)})
        )
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
    alike = quality_alone(dataset, settings).across_hosts
    uneven = tuple(100 + 3 * index for index in range(640))
    lengths = Dataset(name="d", splits=(Split(name="train", shard_lengths=uneven),))
    parted = quality_alone(
        lengths, ReadSettings(**{**vars(settings), "host": Host(index=0, count=3)})
    )
    assert alike is not None
    assert parted.across_hosts is not None
    assert alike.correlation > 0.999
    assert abs(parted.across_hosts.correlation) < 0.4


def test_hosts_that_read_the_same_examples_share_them() -> None:
    settings = ReadSettings(host=Host(index=0, count=2), host_by="files")
    across = quality_alone(
        even_dataset(600, 3), settings, "train[:1shard]+train[:1shard]"
    ).across_hosts
    assert across is not None
    assert across.shared == 1.0


def test_at_most_eight_hosts_are_compared_the_measured_one_among_them() -> None:
    settings = ReadSettings(host=Host(index=13, count=100), batch=4)
    across = quality_alone(even_dataset(10_000, 200), settings).across_hosts
    assert across is not None
    assert (across.num_hosts, len(across.hosts)) == (100, 8)
    assert 13 in across.hosts


def test_hosts_of_grain_go_through_their_own_pieces_alike() -> None:
    dataset = even_dataset(6_000, 12)
    settings = ReadSettings(loader="grain", shuffle_seed=1, host=Host(index=0, count=3), batch=50)
    across = planning.quality(dataset, "train", settings, what_if=False).across_hosts
    assert across is not None
    assert across.correlation == pytest.approx(1, abs=0.01)  # one seed, one permutation
    other = planning.quality(
        dataset, "train", ReadSettings(**{**vars(settings), "loader": "torch"}), what_if=False
    ).across_hosts
    assert other is not None
    assert abs(other.correlation) < 4 * other.spread


def test_a_piece_is_scored_beside_itself_in_samples_too(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = even_dataset(60_000, 30)
    settings = ReadSettings(loader="grain", shuffle_seed=1, host=Host(index=0, count=3), batch=50)
    whole = planning.quality(dataset, "train", settings, what_if=False)
    monkeypatch.setattr(planning, "sample_epoch", partial(sample_epoch, limit=1, num_measured=4096))
    sampled = planning.quality(dataset, "train", settings, what_if=False)
    assert sampled.sampled is not None
    assert whole.score.value > 0.95
    assert sampled.score.value == pytest.approx(whole.score.value, abs=0.05)
