"""Where pipelines with stages resume: by file instructions, beside lists made by hand, or not."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.saved.resume_plan import WITHOUT_END, ResumePlan, TakeCall
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Map,
    Pipeline,
    Prefetch,
    Read,
    Repeat,
    Skip,
    Take,
    Unbatch,
)
from shardctl.stages.text import parse_stages, text_of
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.proof import prove
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.pipelines.random_pipelines import Sized, pipelines
from tests.tfdata.shuffle_oracles import interleave_by_hand
from tests.verbs.resume.resume_cases import dataset, entries

TOY = dataset(train=(3, 5, 3), test=(4,))
BIG = dataset(train=(7, 1, 12, 5, 9), test=(4, 6))


def staged(text: str, **settings: Any) -> ReadSettings:
    return ReadSettings(stages=parse_stages(text), **settings)


def test_what_only_cuts_goes_on_by_file_instructions() -> None:
    def cut(text: str, consumed: int) -> object:
        plan = resume(TOY, None, staged(text, cycle=1), consumed=consumed)
        assert (plan.continued_by, plan.exact) == ("file_instructions", True)
        assert prove(TOY, plan).holds
        return entries(plan), plan.after_read

    assert_evaluated(globals(), "cuts", cut)


@pytest.mark.parametrize(
    "text",
    [
        "shuffle(4, seed=1) | take(7)",
        "take(7) | repeat(2)",
        "skip(1) | shard(2, 1)",
        "take(7) | concatenate(test)",
        "batch(2) | batch(2) | take(2)",
        "read(train, cycle=2) | take(7)",
        "zip(train, test)",
        "sample_from_datasets([train | repeat, test | repeat], seed=1) | take(9)",
        "repeat | skip(1)",
    ],
)
def test_what_does_more_is_continued_by_the_bridge(text: str) -> None:
    plan = resume(TOY, None, staged(text, cycle=1), consumed=3)
    assert plan.continued_by == "shardctl.tfds"
    assert plan.mode == "exact"
    assert not len(plan.instructions)
    assert plan.after_read == ()
    assert prove(TOY, plan).holds


def test_a_pipeline_without_end_goes_on_without_end() -> None:
    plan = resume(TOY, None, staged("map | shuffle(4, seed=1) | map | repeat | batch(3)"), steps=40)
    assert (plan.consumed, plan.remaining, plan.remaining_total) == (120, WITHOUT_END, WITHOUT_END)
    assert not plan.has_end
    assert plan.epoch == 10  # 120 of 11 each
    cut = staged("map | shuffle(4, seed=1) | map | repeat | batch(3) | take(50)")
    with pytest.raises(UsageError, match="has 150 examples"):
        resume(TOY, None, cut, consumed=151)
    assert resume(TOY, None, cut, consumed=150).remaining == 0


def test_a_place_that_is_not_there_is_refused() -> None:
    assert_evaluated(globals(), "staged")


CUTS: tuple[Any, ...] = (
    lambda rng: Skip(count=rng.choice((0, 1, 2, 5))),
    lambda rng: Take(count=rng.choice((-1, 3, 8, 20))),
    lambda rng: Batch(size=rng.choice((1, 2, 5)), drop_remainder=rng.random() < 0.4),
    lambda rng: Unbatch(),
    lambda rng: Map(calls=2),
    lambda rng: Prefetch(size=2),
    lambda rng: Cache(),
    lambda rng: Repeat(count=1),
)


def random_cuts(rng: random.Random) -> tuple[Stage, ...]:
    """Stages that only cut; a batch is taken apart before the next."""
    stages: list[Stage] = []
    in_batches = False
    for _ in range(rng.randint(1, 6)):
        stage = rng.choice(CUTS)(rng)
        if isinstance(stage, Batch if in_batches else Unbatch):
            continue
        in_batches = in_batches != isinstance(stage, Batch | Unbatch)
        stages.append(stage)
    return (Skip(count=1), *stages) if rng.random() < 0.5 else tuple(stages)


def read_by(plan: ResumePlan, settings: ReadSettings) -> list[int]:
    """Return the ids that the instructions of a plan give a fresh interleave, then `take`."""
    rows = list(plan.file_instructions)
    starts = {
        split.name: np.cumsum([0, *split.shard_lengths])[:-1].tolist()
        for split in plan.instructions.dataset.splits
    }
    firsts = [starts[r.split][int(r.filename[-5:])] + r.skip for r in rows]
    places = interleave_by_hand(
        [row.take for row in rows], settings.cycle_length(ordered=False), settings.block
    )
    ids = [firsts[row] + offset for row, offset in places]
    for call in plan.after_read:
        if isinstance(call, TakeCall):
            ids = ids[: call.count]
    return ids


def check_cut(rng: random.Random) -> int:
    reader: dict[str, Any] = {"cycle": rng.randint(1, 4), "block": rng.randint(1, 4)}
    if rng.random() < 0.6:
        reader |= {"shuffle_seed": rng.randint(0, 9), "reshuffle": rng.choice((None, True, False))}
    spec = rng.choice(("train", "test", "train[3:20]", "train[20%:70%]"))
    stages = random_cuts(rng)
    pipeline = Pipeline(source=Read(spec=rng.choice((None, spec))), stages=stages)
    given = spec if pipeline.source == Read() else None
    settings = ReadSettings(**reader, stages=pipeline)
    order = plan_order(BIG, given, settings).order
    expected = order.read(0, order.num_examples).tolist()
    places = sorted({0, len(expected), *(rng.randint(0, len(expected)) for _ in range(4))})
    for consumed in places:
        plan = resume(BIG, given, settings, consumed=consumed)
        if plan.settings.stages is None:
            continue  # settings say the same
        way = "file_instructions" if expected else "shardctl.tfds"  # no file is left to read
        assert plan.continued_by == way, text_of(pipeline)
        assert plan.remaining == len(expected) - consumed
        if expected:
            assert read_by(plan, settings) == expected[consumed:], (text_of(pipeline), consumed)
    return len(places)


@pytest.mark.long
def test_file_instructions_read_the_tail_of_the_order() -> None:
    check_cases(st.randoms(use_true_random=False), check_cut, 24)


@pytest.mark.fuzz
def test_fuzz_file_instructions_read_the_tail_of_the_order() -> None:
    check_cases(st.randoms(), check_cut, FUZZ)


def any_source(rng: random.Random) -> Sized:
    spec, count = rng.choice((("train", 34), ("test", 10), ("train[3:20]", 17)))
    return Sized(source=Read(spec=spec), num_examples=count)


def check_any(made: Any) -> int | None:
    """Any pipeline: the plan's counts are those of its order, and its proof holds."""
    settings = ReadSettings(stages=made.pipeline, shuffle_seed=3, cycle=2, block=2)
    try:
        order = plan_order(BIG, None, settings).order
    except UnpredictableOrderError:  # a later iterator of a pass that is cut
        return None
    total = order.num_examples
    codes = order.read(0, total)
    for consumed in {0, total // 3, total}:
        plan = resume(BIG, None, settings, consumed=consumed)
        if plan.settings.stages is None:
            return None
        assert (plan.consumed, plan.remaining) == (consumed, total - consumed)
        if plan.continued_by == "file_instructions":
            assert read_by(plan, settings) == codes[consumed:].tolist()
        # What train hands out is told from test by its codes.
        of_test = sum(s.consumed for s in plan.sources if s.spec == "test")
        starts = dict(zip(order.codes.dataset.splits, order.codes.bases, strict=True))
        first = next(int(base) for split, base in starts.items() if split.name == "test")
        if any(s.spec == "test" for s in plan.sources):
            assert of_test == int(np.count_nonzero(codes[:consumed] >= first))
        assert sum(s.consumed for s in plan.sources) == consumed
        assert prove(BIG, plan).holds
    return 3


@pytest.mark.long
def test_plans_of_any_pipeline_say_how_far_it_is() -> None:
    check_cases(pipelines(any_source), check_any, 6)


@pytest.mark.fuzz
def test_fuzz_plans_of_any_pipeline_say_how_far_it_is() -> None:
    check_cases(pipelines(any_source), check_any, FUZZ // 10)


# What is read in another order each time, or once, a reader that begins anew does not read again.
@pytest.mark.parametrize(
    ("text", "settings", "is_read_anew"),
    [
        ("skip(2)", {"pass_index": 1}, True),
        ("skip(2)", {"shuffle_seed": 3}, True),
        ("skip(2)", {"pass_index": 1, "shuffle_seed": 3, "reshuffle": False}, True),
        ("skip(2)", {"pass_index": 1, "shuffle_seed": 3}, False),
        ("cache | skip(2)", {"pass_index": 1}, False),
    ],
)
def test_a_later_pass_goes_on_by_file_instructions_where_it_is_read_as_the_first(
    text: str, settings: dict[str, Any], is_read_anew: bool
) -> None:
    plan = resume(TOY, None, staged(text, cycle=1, **settings), consumed=1)
    assert (plan.continued_by == "file_instructions") == is_read_anew
    assert prove(TOY, plan).holds
