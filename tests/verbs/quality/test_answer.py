"""Quality of pipelines: laws over settings, parts, epochs and hosts, counted one by one."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError, UsageError
from shardctl.order.sample import sample_epoch
from shardctl.settings.read_settings import ReadSettings, with_stand_in_seeds
from shardctl.spec.host import Host
from shardctl.verbs.quality import answer as planning
from shardctl.verbs.quality.answer import quality
from tests.cases import check_cases
from tests.verbs.quality.quality_orders import even_dataset, order_of_spec, quality_alone


@pytest.mark.parametrize("num_shards", [1, 3, 40])
def test_a_buffer_of_the_whole_epoch_scores_as_a_uniform_permutation(num_shards: int) -> None:
    for seed in range(5):
        settings = ReadSettings(buffer=-2, buffer_seed=seed)
        score = quality_alone(even_dataset(20_000, num_shards), settings).score
        assert score.value == pytest.approx(score.expected, abs=4 * score.spread)
        assert score.value > 0.98


@pytest.mark.long
def test_every_small_pipeline_has_a_score() -> None:
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

    def check(case: tuple[list[int], dict[str, object], str]) -> None:
        lengths, given, spec = case
        dataset = Dataset(name="d", splits=(Split(name="train", shard_lengths=tuple(lengths)),))
        settings = ReadSettings(**given)  # type: ignore[arg-type]
        try:
            size = order_of_spec(dataset, with_stand_in_seeds(settings)[0], spec).epoch_size
        except ShardctlError:
            return
        if size < 2:
            with pytest.raises(UsageError, match="needs at least 2 examples"):
                quality(dataset, spec, settings)
            return
        found = quality(dataset, spec, settings)
        assert 0 <= found.score.value <= 1
        assert 0 <= found.score.expected <= 1
        for each in found.metrics:
            assert np.isfinite([each.value, each.expected, each.spread, each.score]).all()
        assert found.by_position[0].start == 0
        assert found.by_position[-1].stop == found.num_examples == size
        for before, after in pairwise(found.by_position):
            assert before.stop == after.start

    check_cases(st.tuples(lengths, choices, specs), check, 50)


def test_seeds_are_assumed_only_where_the_order_is_open() -> None:
    dataset = even_dataset(4000, 16)
    open_order = quality_alone(dataset, ReadSettings(shuffle_files=True, buffer=100))
    assert open_order.assumed == {"shuffle_seed": 1, "buffer_seed": 2}
    assert any("example seeds" in warning for warning in open_order.warnings)
    fixed = quality_alone(dataset, ReadSettings(shuffle_seed=1, buffer=100, buffer_seed=2))
    assert (fixed.assumed, fixed.warnings) == ({}, ())
    assert fixed.score == open_order.score
    timed = quality_alone(dataset, ReadSettings(shuffle_files=True, global_seed=3))
    assert timed.assumed == {"deterministic": True}
    assert quality_alone(dataset, ReadSettings(deterministic=False)).assumed == {
        "deterministic": True
    }


@pytest.mark.parametrize("spec", ["train[:1]", "train[:0]"])
def test_one_example_has_no_order(spec: str) -> None:
    with pytest.raises(UsageError, match="needs at least 2 examples"):
        quality(even_dataset(10, 2), spec)


@pytest.mark.parametrize("value", [1.5, 0.0])
def test_targets_out_of_range_are_refused(value: float) -> None:
    with pytest.raises(UsageError, match=str(value)):
        quality(even_dataset(10, 2), "train", target=value)


def test_the_quality_of_stages_is_that_of_what_they_hand_out() -> None:
    short = quality("mnist", None, {"buffer": 5000, "buffer_seed": 1, "epochs": 2, "batch": 64})
    stages = "shuffle(5000, seed=1) | map | repeat(2) | take(120_000) | batch(64)"
    same = quality("mnist", None, {"stages": stages})
    assert same.order.settings.stages is not None
    assert (same.score, same.window, same.num_examples) == (short.score, 64, 60_000)
    assert same.verdict == short.verdict
    assert same.across_epochs is not None
    assert same.across_epochs == short.across_epochs


def test_stages_without_seeds_get_stand_ins() -> None:
    found = quality("mnist", "test", {"stages": "repeat(2) | shuffle(500) | take(9000)"})
    assert dict(found.assumed) == {"stages": "repeat(2) | shuffle(500, seed=1) | take(9000)"}


@pytest.mark.long
def test_an_endless_mixture_has_a_quality() -> None:
    stages = "sample_from_datasets([train | shuffle(9000, seed=1) | repeat, test | repeat], seed=2)"
    assert quality("mnist", None, {"stages": stages}).num_examples == 70_000
    assert quality("mnist", None, {"stages": "map | batch(3) | repeat"}).verdict == "no shuffle"


@pytest.mark.parametrize("asked", [{"target": 0.5}, {"memory": "1MB", "example_bytes": 10}])
def test_another_buffer_is_no_question_about_stages(asked: dict[str, object]) -> None:
    settings = {"stages": "repeat(2) | shuffle(500, seed=1)"}
    with pytest.raises(UsageError, match="finds a buffer, and --stages have their own"):
        quality("mnist", "test", settings, **asked)  # type: ignore[arg-type]


def test_what_is_measured_of_a_loader_without_a_seed_has_the_seed_that_is_told() -> None:
    settings = {"loader": "torch", "shuffle": True}
    found = quality(even_dataset(3000, 6), "train", settings)
    assert len(found.assumed) == 1
    seeded = quality(even_dataset(3000, 6), "train", {**settings, **found.assumed})
    assert seeded.assumed == {}
    assert (found.score, found.metrics) == (seeded.score, seeded.metrics)


def test_what_is_shown_beside_the_score_is_not_what_lowers_it() -> None:
    settings = {"shuffle_seed": 1, "block": 1, "cycle": 64}
    found = quality(even_dataset(3000, 300), "train", settings, what_if=False)
    assert min(found.metrics, key=lambda metric: metric.score).scale == "shown"
    assert found.weakest.name == "batch_coverage"
    assert "weakest batch_coverage" in repr(found)


# How an epoch compares with the next: against orders that are read one by one.


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("buffer", [None, 1, 40])
@pytest.mark.parametrize("shuffles", [False, True])
def test_epochs_correlate_as_their_ids_do(shuffles: bool, buffer: int | None, epochs: int) -> None:
    dataset = even_dataset(900, 12)
    seeds = {"shuffle_seed": 1 if shuffles else None, "buffer_seed": 2 if buffer else None}
    settings = ReadSettings(cycle=3, block=4, buffer=buffer, epochs=epochs, **seeds)  # type: ignore[arg-type]
    across = quality_alone(dataset, settings).across_epochs
    passes = (ReadSettings(**{**vars(settings), "epochs": 1, "pass_index": i}) for i in (0, 1))
    first, second = (order_of_spec(dataset, one).read(0, 900).tolist() for one in passes)
    assert across is not None
    assert across.unit == ("epoch" if epochs == 2 else "pass")
    assert across.same_order == (first == second)
    assert across.correlation == pytest.approx(np.corrcoef(first, second)[0, 1], abs=1e-12)
    assert across.spread == pytest.approx(1 / 899**0.5)


def test_an_epoch_of_which_one_example_is_left_says_nothing() -> None:
    # Two epochs of six examples are one batch of seven; the second has one of them.
    settings = ReadSettings(batch=7, drop_remainder=True, epochs=2, shuffle_seed=1)
    across = quality_alone(even_dataset(6, 1), settings).across_epochs
    assert across is not None
    assert (across.correlation, across.spread) == (0, 1)


@pytest.mark.long
@pytest.mark.parametrize("settings", [{"shuffle_seed": 1}, {}, {"buffer": 9, "buffer_seed": 1}])
def test_sampled_epochs_compare_as_whole_ones(
    settings: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, read = even_dataset(300_000, 64), ReadSettings(**settings)  # type: ignore[arg-type]
    whole = quality_alone(dataset, read).across_epochs
    monkeypatch.setattr(planning, "sample_epoch", partial(sample_epoch, limit=1000))
    part = quality_alone(dataset, read).across_epochs
    assert whole is not None
    assert part is not None
    assert part.same_order == whole.same_order
    assert part.correlation == pytest.approx(whole.correlation, abs=0.1)
    assert part.correlation <= 1


def test_a_next_pass_that_depends_on_timing_is_not_compared() -> None:
    settings = ReadSettings(shuffle_seed=1, repeat_files=True)
    assert quality_alone(even_dataset(900, 12), settings).across_epochs is None


def test_a_piece_is_scored_beside_itself_in_samples_too(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = even_dataset(60_000, 30)
    settings = ReadSettings(loader="grain", shuffle_seed=1, host=Host(index=0, count=3), batch=50)
    whole = quality_alone(dataset, settings)
    monkeypatch.setattr(planning, "sample_epoch", partial(sample_epoch, limit=1, num_measured=4096))
    sampled = quality_alone(dataset, settings)
    assert sampled.sampled is not None
    assert whole.score.value > 0.95
    assert sampled.score.value == pytest.approx(whole.score.value, abs=0.05)
