"""Plans for buffers without a seed, read by TFDS beside the pipeline that was stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.resume.answer import BufferMode, resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.resume.proof import prove
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed
from tests.order.toy_pipelines import Case, Toys, as_line
from tests.verbs.resume.plan_cases import TOY
from tests.verbs.resume.stopped_pipelines import (
    NUM_STOPS,
    from_a_file,
    lines_of,
    stopped,
    stopping_points,
    stops,
)

OPEN = ReadSettings(buffer=4, shuffle_seed=42, cycle=2)
MODES: tuple[BufferMode, ...] = ("at-most-once", "at-least-once")


def check_without_seed(
    toys: Toys, case: Case, numbers: Sequence[int], num_stops: int = NUM_STOPS
) -> int:
    """Stop a pipeline whose buffer has some seed, and resume it as if nobody knew the seed."""
    import shardctl.tfds

    toy = toys[case.toy]
    only_own = {"batch": None, "drop_remainder": False, "global_seed": None, "repeat_files": False}
    settings = changed(case.settings, **only_own, buffer_seed=numbers[1])
    if settings.shuffles_files:
        settings = changed(settings, shuffle_seed=numbers[2])
    case = replace(case, settings=settings)
    found = stopped(toy, case, numbers[0] % 2)
    if found is None or not found[0].num_examples:
        return 0
    order, whole = found
    size, buffer = order.epoch_size, order.num_buffered or 0
    places = stopping_points(order, numbers[:num_stops])
    for index, place in enumerate(places):
        mode = MODES[(index + numbers[0]) % 2]
        risk = (0.5, 1e-6, 1.0)[numbers[3] % 3] if mode == "at-least-once" else None
        unknown = changed(order.settings, buffer_seed=None)
        plan = resume(toy.dataset, case.spec, unknown, consumed=place, mode=mode, risk=risk)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        assert prove(toy.dataset, plan).holds
        assert plan.unseeded is not None
        resumed = shardctl.tfds.resume(
            toy.builder, plan, host=unknown.host, transform=as_line, add_tfds_id=True
        )
        lines = lines_of(resumed)
        assert len(lines) == plan.remaining_total
        here = min(place // size, settings.epochs - 1)
        every = Counter(whole[here * size : (here + 1) * size])
        handed = Counter(whole[here * size : place])
        if plan.epoch == here:
            again, lines = Counter(lines[: plan.remaining]), lines[plan.remaining :]
        else:
            again = Counter()
        both = handed + again
        lost, repeated = (every - both).total(), (both - every).total()
        if place == len(whole):
            assert not again
            continue
        sure = plan.unseeded
        assert lost <= sure.most_lost <= buffer - 1, (case, place)
        assert sure.least_repeated <= repeated <= sure.most_repeated, (case, place)
        if mode == "at-most-once":
            assert (lost, repeated) == (sure.most_lost, 0), (case, place)
        for epoch in range(here + 1, settings.epochs):
            part, lines = lines[:size], lines[size:]
            assert Counter(part) == Counter(whole[epoch * size : (epoch + 1) * size])
        assert not lines
    return len(places)


def test_what_is_lost_and_repeated_is_as_the_plan_says(toys: Toys) -> None:
    def check(drawn: tuple[Case, list[int]]) -> int:
        return check_without_seed(toys, *drawn, num_stops=3)

    assert check_cases(stops(buffered=True), check, 2) >= 3


@pytest.mark.fuzz
def test_what_is_lost_and_repeated_is_as_the_plan_says_fuzzed(toys: Toys) -> None:
    def check(drawn: tuple[Case, list[int]]) -> int:
        return check_without_seed(toys, *drawn)

    check_cases(stops(buffered=True), check, FUZZ // 8)


@pytest.mark.parametrize(("epoch", "epochs"), [(0, 2), (0, 4), (1, 3), (2, 4)])
def test_hosts_whose_buffers_had_read_the_epoch_begin_with_the_next(
    epoch: int, epochs: int
) -> None:
    settings = ReadSettings(buffer=100, cycle=1, epochs=epochs)
    size = plan_order(TOY, "train").order.num_examples
    consumed = [epoch * (size - size // 2) + 5, epoch * (size // 2) + 4]
    plan = resume_on_hosts(
        TOY, "train", settings, hosts=2, to_hosts=3, consumed=consumed, mode="at-most-once"
    )
    assert (plan.epoch, plan.num_further_epochs) == (epoch + 1, epochs - epoch - 2)
    assert plan.remaining == size
    assert sum(host.num_examples for host in plan.hosts) == size
    assert plan.unseeded is not None
    assert plan.unseeded.most_lost == size - 9
    assert prove(TOY, plan).holds


@pytest.mark.parametrize("mode", ["exactly-once", *MODES])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shuffle_seed": None, "shuffle_files": True}, "--shuffle-files without a seed"),
        ({"deterministic": False}, "deterministic=False yields"),
    ],
)
def test_where_the_file_order_is_open_nothing_is_offered(
    mode: Any, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(UnpredictableOrderError) as caught:
        resume(TOY, "train", replace(OPEN, **change), consumed=9, mode=mode)
    assert said in str(caught.value)
    assert "at-most-once" not in str(caught.value)


def test_a_known_seed_needs_no_such_mode() -> None:
    for seeded in (replace(OPEN, buffer_seed=1), replace(OPEN, global_seed=1)):
        with pytest.raises(UsageError, match="for a buffer without a seed"):
            resume(TOY, "train", seeded, consumed=9, mode="at-most-once")
    plan = resume(TOY, "train", ReadSettings(), consumed=9, mode="at-most-once")
    assert (plan.mode, plan.unseeded) == ("exact", None)
    with pytest.raises(UsageError, match="risk is read with --mode at-least-once only"):
        resume(TOY, "train", OPEN, consumed=9, mode="at-most-once", risk=0.5)


def test_a_proof_finds_what_is_read_once_too_often() -> None:
    plan = resume(TOY, "train", OPEN, consumed=9, mode="at-most-once")
    assert prove(TOY, plan).holds
    start = resume(TOY, "train", replace(OPEN, buffer_seed=1), consumed=0)
    proof = prove(TOY, replace(plan, instructions=start.instructions))
    assert (proof.repeated, proof.holds) == (12, False)
    proof = prove(TOY, replace(plan, instructions=plan.instructions.select(slice(0, 0))))
    assert (proof.lost, proof.holds) == (3 + plan.remaining, False)
