"""Plans to go on, read from real files by TFDS, beside the pipeline that nobody stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads
from shardctl.core.order.order import Order
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.files.plan.reader import parse_plan
from shardctl.files.plan.writer import plan_json, plan_yaml
from shardctl.planning.resume.check import applied
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from tests.core.order.order_cases import changed, elements
from tests.core.order.test_order_tfds import (  # noqa: F401  # pytest finds the fixture by its name
    Case,
    Toy,
    Toys,
    cases,
    predicted,
    read_by_tfds,
    shuffled_paths,
    toys,
)
from tests.strategies import NUM_FUZZ, Recorder, count_cases

NUM_STOPS = 5


@st.composite
def stops(draw: st.DrawFn, buffered: bool) -> tuple[Case, list[int]]:
    """A pipeline with or without a shuffle buffer, and numbers that choose where it stops."""
    case = draw(cases().filter(lambda case: (case.settings.buffer is not None) or not buffered))
    if not buffered:
        no_buffer = {"buffer": None, "buffer_seed": None, "buffer_reshuffle": None}
        case = replace(case, settings=changed(case.settings, **no_buffer))
    if case.toy == "several":  # whose files a list has to tell apart
        case = replace(case, file_order=None)
    return case, draw(st.lists(st.integers(0, 10**6), min_size=NUM_STOPS, max_size=NUM_STOPS))


def stopping_points(order: Order, numbers: Sequence[int]) -> list[int]:
    """Return places to stop: the ends of the order, of epochs, shards and blocks, and between."""
    total, block = order.num_examples, order.settings.block
    ids = order.codes.places(order.read(0, total))
    lengths = [split.shard_lengths for split in order.dataset.splits]
    ends = [
        position + 1
        for position, (split, shard, index) in enumerate(zip(*map(list, ids), strict=True))
        if index + 1 == lengths[split][shard]
    ]
    kinds = [
        [0, 1, total - 1, total],
        [epoch * order.epoch_size for epoch in range(order.settings.epochs + 1)],
        ends,
        list(range(0, total + 1, block)),
        list(range(total + 1)),
        [edge + block // 2 for edge in range(0, total, block)],
    ]
    chosen: set[int] = set()
    for number in numbers:
        kind = [place for place in kinds[number % len(kinds)] if 0 <= place <= total] or [0]
        place = kind[number // len(kinds) % len(kind)]
        while place in chosen and len(chosen) <= total:
            place = (place + 1) % (total + 1)
        chosen.add(place)
    return sorted(chosen)


def from_a_file(plan: ResumePlan, dataset: Dataset, number: int) -> ResumePlan:
    """Return a plan as it comes back from its file."""
    text = "".join((plan_json, plan_yaml)[number % 2](plan))
    return applied(parse_plan(text.encode(), source="plan"), dataset)


def tfds_reads(toy: Toy, plan: ResumePlan, reads: Reads, *, shard: bool) -> list[str]:
    """Return "tfds_id id" of what an ordinary pipeline reads by instructions of a plan."""
    import tensorflow as tf
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
    lines = dataset.map(
        lambda example: tf.strings.join(
            [example["tfds_id"], tf.strings.as_string(example["id"])], separator=" "
        )
    )
    return elements(lines, bytes.decode)


def in_files(lines: Sequence[str]) -> list[str]:
    """Return ids without folders: TFDS names those in which the files at hand differ."""
    return [line.rpartition("/")[2] for line in lines]


def stopped(toy: Toy, case: Case, pass_index: int) -> tuple[Order, list[str]] | None:
    """Return the order of a pass and what TFDS reads in it, None where it refuses."""
    settings = case.settings
    if case.file_order is not None:
        settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
    order = predicted(toy, case, changed(settings, pass_index=pass_index))
    if order is None:
        return None
    dataset = read_by_tfds(toy, case, settings, order.epoch_size)
    for _ in range(pass_index):
        elements(dataset, bytes.decode)
    return order, in_files(elements(dataset, bytes.decode))


def check_exact(toys: Toys, case: Case, numbers: Sequence[int]) -> int:  # noqa: F811
    """Go on at places of a pipeline without a buffer, to the end of all its epochs."""
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    assert len(whole) == order.num_examples
    places = stopping_points(order, numbers)
    for place in places:
        going_on: list[str] = []
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        going_on += tfds_reads(toy, plan, plan.instructions, shard=True)
        assert len(going_on) == plan.remaining
        stop = place + plan.remaining
        for epoch in plan.further_epochs if place == places[0] else ():
            stop = len(whole)
            further = resume(toy.dataset, case.spec, order.settings, consumed=epoch.consumed)
            going_on += tfds_reads(toy, further, further.instructions, shard=True)
        # A last batch that is dropped is dropped in both.
        assert in_files(going_on)[: len(whole) - place] == whole[place:stop], (case, place)
        assert plan.remaining_total == len(whole) - place
    return len(places)


def check_exactly_once(toys: Toys, case: Case, numbers: Sequence[int]) -> int:  # noqa: F811
    """Go on at places of a pipeline with a buffer: all that is left of the epoch, each once."""
    toy = toys[case.toy]
    case = replace(case, settings=changed(case.settings, batch=None, drop_remainder=False))
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers)
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        cut = plan.num_pending_instructions if order.settings.host_by == "examples" else 0
        held, rest = (plan.instructions.select(rows) for rows in (slice(cut), slice(cut, None)))
        lines = tfds_reads(toy, plan, held, shard=False) + tfds_reads(toy, plan, rest, shard=True)
        left = Counter(whole[place : place + plan.remaining])
        if order.settings.repeat_files and plan.remaining:  # the buffer has read on from the end
            assert left <= Counter(in_files(lines)), (case, place)
        else:
            assert left == Counter(in_files(lines)), (case, place)
    return len(places)


def test_the_resumed_pipeline_reads_the_rest_of_the_uninterrupted_one(
    toys: Toys,  # noqa: F811
    record_property: Recorder,
) -> None:
    num_stops = 0

    def check(drawn: tuple[Case, list[int]]) -> None:
        nonlocal num_stops
        num_stops += check_exact(toys, *drawn)

    count_cases(stops(buffered=False), check, 40)
    assert num_stops >= 100
    record_property("cases", num_stops)


def test_with_a_buffer_what_is_left_is_read_exactly_once(
    toys: Toys,  # noqa: F811
    record_property: Recorder,
) -> None:
    num_stops = 0

    def check(drawn: tuple[Case, list[int]]) -> None:
        nonlocal num_stops
        num_stops += check_exactly_once(toys, *drawn)

    count_cases(stops(buffered=True), check, 15)
    record_property("cases", num_stops)


@pytest.mark.fuzz
def test_resumed_pipelines_fuzzed(toys: Toys, record_property: Recorder) -> None:  # noqa: F811
    num_stops = 0

    def check(drawn: tuple[Case, list[int]]) -> None:
        nonlocal num_stops
        num_stops += check_exact(toys, *drawn)

    def check_buffered(drawn: tuple[Case, list[int]]) -> None:
        nonlocal num_stops
        num_stops += check_exactly_once(toys, *drawn)

    count_cases(stops(buffered=False), check, NUM_FUZZ // 4, fuzz=True)
    count_cases(stops(buffered=True), check_buffered, NUM_FUZZ // 8, fuzz=True)
    record_property("cases", num_stops)


@pytest.mark.parametrize("host_by", ["even", "files", "examples"])
@pytest.mark.parametrize("buffer", [None, 5])
def test_other_hosts_read_what_none_of_the_old_ones_had(
    toys: Toys,  # noqa: F811
    host_by: Any,
    buffer: int | None,
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
