"""Plans run by the real reader, compared with the rest of the order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from shardctl.planning.resume.seen import resume_unseen
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.tfds.verifying.verify_plan import verify_plan
from tests.cases import check_cases
from tests.core.order.toy_pipelines import (
    Case,
    Toys,
    predicted,
)
from tests.planning.resume.stopped_pipelines import (
    stopping_points,
    stops,
)
from tests.tfds.verifying.checked_toys import (
    settings_of,
    tampered,
    without_folder,
)


def check_plan(toys: Toys, case: Case, numbers: list[int]) -> int:
    toy = toys[case.toy]
    settings = settings_of(toys, case)
    order = predicted(toy, case, settings)
    if order is None:
        return 0
    places = stopping_points(order, numbers)[:2]
    nowhere = replace(toy.dataset, splits=tuple(map(without_folder, toy.dataset.splits)))
    for index, place in enumerate(places):
        mode: Any = ("exactly-once", "exact-order")[(index + numbers[0]) % 2]
        plan = resume(toy.dataset, case.spec, settings, consumed=place, mode=mode)
        found = verify_plan(toy.dataset, plan)
        assert found.equal, (case, place, mode, found.first_difference)
        assert verify_plan(nowhere, plan).equal, (case, place, mode)
    return len(places)


@pytest.mark.parametrize("buffered", [False, True])
def test_a_plan_continues_as_the_order_does(
    toys: Toys,
    buffered: bool,
) -> None:
    def law(drawn: tuple[Case, list[int]]) -> int:
        return check_plan(toys, *drawn)

    check_cases(stops(buffered=buffered), law, 4)


def test_plans_for_other_hosts_and_of_logs_are_read_example_by_example(toys: Toys) -> None:
    dataset = toys["plain"].dataset
    settings = ReadSettings(shuffle_seed=7, cycle=2)
    plan = resume_on_hosts(dataset, "train", settings, hosts=2, to_hosts=3, consumed=[9, 20])
    found = verify_plan(dataset, plan)
    assert found.equal
    assert [window.host for window in found.windows] == ["0/3", "1/3", "2/3"]
    assert found.num_checked == 75 - 29
    unseen = resume_unseen(dataset, "train", settings, seen=[3, 9, 74])
    found = verify_plan(dataset, unseen)
    assert (found.equal, found.num_checked) == (True, 72)


def test_a_plan_whose_files_changed_is_caught(toys: Toys, tmp_path: Path) -> None:
    folder = tampered(toys, tmp_path)
    dataset = read_tfds_folder(folder)
    plan = resume(dataset, "train", ReadSettings(cycle=1), consumed=5)
    (folder / "toy-train.tfrecord-00003-of-00007").write_bytes(b"")
    found = verify_plan(dataset, plan)
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected, first.found) == (8, 8, 25)
    assert [(f.expected, f.found) for f in found.files] == [(17, 0)]
