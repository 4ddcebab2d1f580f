"""Datasets that go on: the rest of what TFDS and tf.data hand out when nobody stops them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

import shardctl.tfds
from shardctl.core.hosts import Host
from shardctl.core.order import Order
from shardctl.core.read_settings import ReadSettings
from shardctl.planning.resume import resume
from shardctl.planning.resume_hosts import resume_on_hosts
from shardctl.planning.resume_seen import resume_unseen
from tests.core.order_cases import changed, elements
from tests.core.test_order_tfds import (  # noqa: F401  # pytest finds the fixture by its name
    Case,
    Toy,
    Toys,
    toys,
)
from tests.planning.test_resume_tfds import (
    from_a_file,
    in_files,
    stopped,
    stopping_points,
    stops,
)
from tests.strategies import NUM_FUZZ, Recorder, count_cases
from tests.tfds.test_pipeline import as_line


def lines_of(dataset: Any) -> list[str]:
    return in_files(elements(dataset, bytes.decode))


def places_to_stop(order: Order, numbers: Sequence[int]) -> list[int]:
    """Return stopping points; where the last batch is dropped, between batches."""
    places = stopping_points(order, numbers)
    batch = order.settings.batch
    if order.settings.drop_remainder and batch is not None:
        places = sorted({place - place % batch for place in places})
    return places


def check_exact(toys: Toys, case: Case, numbers: Sequence[int]) -> int:  # noqa: F811
    """Go on at places of a pipeline, by one dataset for all epochs or by one for each."""
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = places_to_stop(order, numbers)
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place, mode="exact-order")
        plan = from_a_file(plan, toy.dataset, numbers[0])
        dataset = shardctl.tfds.resume(toy.builder, plan, transform=as_line, add_tfds_id=True)
        assert lines_of(dataset) == whole[place:], (case, place)
        if place != places[-1] or order.settings.drop_remainder:
            continue
        assert lines_of(dataset) == whole[place:], (case, place)
        by_epoch = shardctl.tfds.resume_epochs(
            toy.builder, plan, transform=as_line, add_tfds_id=True
        )
        parts = [(epoch, lines_of(dataset)) for epoch, dataset in by_epoch]
        assert [line for _, part in parts for line in part] == whole[place:], (case, place)
        assert [epoch for epoch, _ in parts] == list(
            range(plan.epoch, plan.epoch + 1 + plan.num_further_epochs)
        )
    return len(places)


def check_exactly_once(toys: Toys, case: Case, numbers: Sequence[int]) -> int:  # noqa: F811
    """Go on in another order: all that is left of the epoch once, the further ones as they were."""
    toy = toys[case.toy]
    case = replace(
        case, settings=changed(case.settings, batch=None, drop_remainder=False, repeat_files=False)
    )
    found = stopped(toy, case, numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers)
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        dataset = shardctl.tfds.resume(toy.builder, plan, transform=as_line, add_tfds_id=True)
        lines, left = lines_of(dataset), whole[place:]
        assert Counter(lines[: plan.remaining]) == Counter(left[: plan.remaining]), (case, place)
        assert lines[plan.remaining :] == left[plan.remaining :], (case, place)
    return len(places)


def counted(
    check: Callable[..., int],
    toys: Toys,
    buffered: bool,
    num_cases: int,
    *,
    fuzz: bool = False,  # noqa: F811
) -> int:
    num_stops = 0

    def one(drawn: tuple[Case, list[int]]) -> None:
        nonlocal num_stops
        num_stops += check(toys, *drawn)

    count_cases(stops(buffered=buffered), one, num_cases, fuzz=fuzz)
    return num_stops


@pytest.mark.parametrize("buffered", [False, True])
def test_it_goes_on_as_the_uninterrupted_pipeline(
    toys: Toys,  # noqa: F811
    buffered: bool,
    record_property: Recorder,
) -> None:
    record_property("cases", counted(check_exact, toys, buffered, 20))


def test_exactly_once_reads_all_that_is_left(toys: Toys, record_property: Recorder) -> None:  # noqa: F811
    record_property("cases", counted(check_exactly_once, toys, True, 8))


@pytest.mark.fuzz
def test_datasets_that_go_on_fuzzed(toys: Toys, record_property: Recorder) -> None:  # noqa: F811
    num_stops = counted(check_exact, toys, False, NUM_FUZZ // 8, fuzz=True)
    num_stops += counted(check_exact, toys, True, NUM_FUZZ // 4, fuzz=True)
    num_stops += counted(check_exactly_once, toys, True, NUM_FUZZ // 8, fuzz=True)
    record_property("cases", num_stops)
