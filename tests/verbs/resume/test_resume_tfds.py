"""Plans to resume, read from real files by TFDS, beside the pipeline that nobody stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import Case, Toy, Toys, as_line
from tests.verbs.resume.stopped_pipelines import (
    NUM_STOPS,
    from_a_file,
    in_files,
    stopped,
    stopping_points,
    stops,
)


def tfds_reads(toy: Toy, plan: ResumePlan, reads: Reads, *, shard: bool) -> list[str]:
    """Return "tfds_id id" of what an ordinary pipeline reads by instructions of a plan."""
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core.utils import shard_utils

    if not len(reads):
        return []
    files = []
    for read, shard_index in zip(reads, reads.shard.tolist(), strict=True):
        folder, name = toy.dataset.split(read.split).location(shard_index)
        assert name.rpartition("/")[2] == read.filename
        files.append(
            shard_utils.FileInstruction(
                filename=f"{folder}/{name}",
                skip=read.skip,
                take=read.take,
                examples_in_shard=read.examples_in_shard,
            )
        )
    assert plan.read_config is not None
    config = tfds.ReadConfig(
        interleave_cycle_length=plan.read_config["interleave_cycle_length"],
        interleave_block_length=plan.read_config["interleave_block_length"],
        experimental_interleave_sort_fn=lambda _: files,
        add_tfds_id=True,
    )
    any_split = next(split for split in toy.dataset.splits if split.num_examples).name
    dataset = toy.builder.as_dataset(
        split=any_split, read_config=config, shuffle_files=plan.read_config["shuffle_files"]
    )
    host = plan.settings.host
    if shard and host is not None and plan.settings.host_by == "examples":
        dataset = dataset.shard(host.count, host.index)
    return elements(dataset.map(as_line), bytes.decode)


def check_exact(toys: Toys, case: Case, numbers: Sequence[int], num_stops: int = NUM_STOPS) -> int:
    """Resume at places of a pipeline without a buffer, to the end of all its epochs."""
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    assert len(whole) == order.num_examples
    places = stopping_points(order, numbers[:num_stops])
    for place in places:
        resumed: list[str] = []
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        resumed += tfds_reads(toy, plan, plan.instructions, shard=True)
        assert len(resumed) == plan.remaining
        stop = place + plan.remaining
        for epoch in plan.further_epochs if place == places[0] else ():
            stop = len(whole)
            further = resume(toy.dataset, case.spec, order.settings, consumed=epoch.consumed)
            resumed += tfds_reads(toy, further, further.instructions, shard=True)
        # A last batch that is dropped is dropped in both.
        assert in_files(resumed)[: len(whole) - place] == whole[place:stop], (case, place)
        assert plan.remaining_total == len(whole) - place
    return len(places)


def check_exactly_once(
    toys: Toys, case: Case, numbers: Sequence[int], num_stops: int = NUM_STOPS
) -> int:
    """Resume at places of a pipeline with a buffer: all that is left of the epoch, each once."""
    toy = toys[case.toy]
    other = {"batch": None, "drop_remainder": False, "repeat_files": False}
    case = replace(case, settings=changed(case.settings, **other))
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers[:num_stops])
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        cut = plan.num_pending_instructions if order.settings.host_by == "examples" else 0
        held, rest = (plan.instructions.select(rows) for rows in (slice(cut), slice(cut, None)))
        lines = tfds_reads(toy, plan, held, shard=False) + tfds_reads(toy, plan, rest, shard=True)
        left = Counter(whole[place : place + plan.remaining])
        assert left == Counter(in_files(lines)), (case, place)
    return len(places)


def test_the_resumed_pipeline_reads_the_rest_of_the_uninterrupted_one(toys: Toys) -> None:
    def check(drawn: tuple[Case, list[int]]) -> int:
        return check_exact(toys, *drawn, num_stops=2)

    assert check_cases(stops(buffered=False), check, 3) >= 4


def test_with_a_buffer_what_is_left_is_read_exactly_once(toys: Toys) -> None:
    def check(drawn: tuple[Case, list[int]]) -> int:
        return check_exactly_once(toys, *drawn, num_stops=2)

    assert check_cases(stops(buffered=True), check, 3) >= 4


@pytest.mark.fuzz
def test_resumed_pipelines_fuzzed(toys: Toys) -> None:
    def check(drawn: tuple[Case, list[int]]) -> int:
        return check_exact(toys, *drawn)

    def check_buffered(drawn: tuple[Case, list[int]]) -> int:
        return check_exactly_once(toys, *drawn)

    check_cases(stops(buffered=False), check, FUZZ // 4, fuzz=True)
    check_cases(stops(buffered=True), check_buffered, FUZZ // 8, fuzz=True)


@pytest.mark.parametrize(
    ("host_by", "buffer"),
    [
        ("examples", 5),
        pytest.param("even", None, marks=pytest.mark.slow),
        pytest.param("files", 5, marks=pytest.mark.slow),
    ],
)
def test_other_hosts_read_what_none_of_the_old_ones_had(
    toys: Toys, host_by: Any, buffer: int | None
) -> None:
    toy = toys["plain"]
    settings = ReadSettings(
        cycle=2,
        block=3,
        shuffle_seed=None if host_by == "examples" else 7,
        buffer=buffer,
        buffer_seed=None if buffer is None else 3,
        host_by=host_by,
    )
    consumed = [15, 4, 0]
    read: list[str] = []
    for index, count in enumerate(consumed):
        own = changed(settings, host=Host(index=index, count=3))
        found = stopped(toy, Case(toy="plain", spec="train", settings=own), 0)
        assert found is not None
        read += found[1][:count]
    plan = resume_on_hosts(toy.dataset, "train", settings, hosts=3, to_hosts=2, consumed=consumed)
    for host in plan.hosts:
        read += in_files(tfds_reads(toy, plan, host.instructions, shard=False))
    sizes = [host.num_examples for host in plan.hosts]
    assert sum(sizes) == 75 - 19
    assert max(sizes) - min(sizes) <= 1
    train = toy.dataset.split("train")
    lengths = zip(train.filenames, train.shard_lengths, strict=True)
    assert sorted(line.split()[0] for line in read) == sorted(
        f"{name}__{index}" for name, length in lengths for index in range(length)
    )
