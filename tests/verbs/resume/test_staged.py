"""Where pipelines with stages resume: by shardctl.tfds, from a place in all of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.saved.resume_plan import WITHOUT_END
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.stages import Read
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.proof import prove
from tests.cases import FUZZ, check_cases
from tests.pipelines.random_pipelines import Sized, pipelines
from tests.verbs.resume.resume_cases import dataset

TOY = dataset(train=(3, 5, 3), test=(4,))
BIG = dataset(train=(7, 1, 12, 5, 9), test=(4, 6))


def staged(text: str, **settings: Any) -> ReadSettings:
    return ReadSettings(stages=parse_stages(text), **settings)


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


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"consumed": 10}, "the order has 9 examples"),
        ({"consumed": -1}, "the order has 9 examples"),
        ({"steps": 5}, "the order has 3 batches"),
        ({"steps": -1}, "the order has 3 batches"),
        ({}, "say how far"),
        ({"steps": 1, "consumed": 1}, "say how far"),
        ({"steps": 1, "mode": "at-most-once"}, "plan from a log"),
    ],
)
def test_a_place_that_is_not_there_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        resume(TOY, None, staged("skip(2) | batch(3) | skip(0) | map | cache"), **how)
    with pytest.raises(
        UsageError, match=r"^--steps needs --batch N, or a batch among the --stages"
    ):
        resume(TOY, None, staged("skip(2) | take(4)"), steps=1)


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
    check_cases(pipelines(any_source), check_any, FUZZ // 10, fuzz=True)
