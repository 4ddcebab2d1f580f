"""Plans as `ReadConfig`: ordinary TFDS pipelines read them, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import DatasetError, UsageError
from shardctl.saved.plan_file import plan_yaml
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed
from tests.order.toy_pipelines import SPLITS, Case, Toy, Toys, as_line
from tests.tfds_datasets import build_dataset, read_ids
from tests.verbs.resume.stopped_pipelines import (
    from_a_file,
    lines_of,
    stopped,
    stopping_points,
    stops,
)


def lines_read(toy: Toy, plan: ResumePlan, builder: Any = None, **which: Any) -> list[str]:
    """Return what `as_dataset` reads with the ReadConfig of a plan."""
    config = shardctl.tfds.read_config(plan, builder, add_tfds_id=True, **which)
    dataset = toy.builder.as_dataset(split=plan.spec, read_config=config).map(as_line)
    host = plan.settings.host
    if host is not None and plan.settings.host_by == "examples":
        dataset = dataset.shard(host.count, host.index)
    return lines_of(dataset)


def check(toys: Toys, case: Case, numbers: Sequence[int]) -> int:
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers)
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        plan = from_a_file(plan, toy.dataset, numbers[0])
        lines = lines_read(toy, plan, None if numbers[0] % 3 == 0 else toy.builder)
        assert len(lines) == plan.remaining
        stop = place + plan.remaining
        for epoch in plan.further_epochs if place == places[0] else ():
            lines += lines_read(toy, plan, toy.builder, epoch=epoch.epoch)
            stop += epoch.num_examples
        expected = whole[place:stop]  # a last batch that is dropped is dropped behind the reader
        assert lines[: len(expected)] == expected, (case, place)
        assert len(lines) == stop - place
    return len(places)


@pytest.mark.slow
def test_an_ordinary_pipeline_reads_the_rest(toys: Toys) -> None:
    check_cases(stops(buffered=False), lambda drawn: check(toys, *drawn), 1)


@pytest.mark.fuzz
def test_ordinary_pipelines_fuzzed(toys: Toys) -> None:
    check_cases(stops(buffered=False), lambda drawn: check(toys, *drawn), FUZZ // 8, fuzz=True)


@pytest.mark.slow
def test_plans_for_hosts_and_of_a_log_read_every_example_once(toys: Toys) -> None:
    toy = toys["plain"]
    for_hosts = resume_on_hosts(toy.dataset, "train", hosts=1, to_hosts=3, consumed=[20])
    unseen = resume_unseen(toy.dataset, "train", seen=range(20))
    plain = resume(toy.dataset, "train", ReadSettings(cycle=1), consumed=20)
    by_hosts = [lines_read(toy, for_hosts, toy.builder, host=host) for host in range(3)]
    rest = lines_read(toy, plain, toy.builder)
    assert sorted(lines_read(toy, unseen, toy.builder)) == sorted(rest)
    whole = lines_read(toy, resume(toy.dataset, "train", consumed=0))
    assert sorted(line for lines in by_hosts for line in lines) == sorted(whole[20:])
    with pytest.raises(UsageError, match="the plan is for 3 hosts"):
        shardctl.tfds.read_config(for_hosts)


def test_a_plan_at_the_end_reads_nothing(toys: Toys) -> None:
    toy = toys["plain"]
    assert lines_read(toy, resume(toy.dataset, "train", consumed=75), toy.builder) == []


@pytest.mark.slow
def test_a_plan_file_goes_into_tfds_load(tfds: Any, tmp_path: Path) -> None:

    from shardctl.metadata.tfds_metadata import read_tfds_folder

    folder = build_dataset(tmp_path / "data", splits={"train": [3, 4, 5]})
    settings = ReadSettings(cycle=2, block=2)
    whole = shardctl.tfds.pipeline(tfds.builder_from_directory(folder), "train", settings)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "".join(plan_yaml(resume(read_tfds_folder(folder), settings=settings, consumed=5)))
    )
    config = shardctl.tfds.read_config(plan)
    rest = tfds.load("toy", data_dir=tmp_path / "data", split="train", read_config=config)
    assert read_ids(rest) == read_ids(whole)[5:]
    assert int(rest.cardinality()) == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shuffle_seed": 1}, "shuffle_seed: the plan says this"),
        ({"interleave_cycle_length": 4}, "the plan says this"),
        ({"input_context": None}, "the plan says this"),
        ({"epoch": 1}, "epoch=1: the plan continues with 0 alone"),
        ({"host": 0}, "leave host out"),
    ],
)
def test_options_that_the_plan_fixes_are_refused(
    toys: Toys, options: dict[str, Any], message: str
) -> None:
    plan = resume(toys["plain"].dataset, "train", consumed=3)
    with pytest.raises(UsageError, match=message):
        shardctl.tfds.read_config(plan, toys["plain"].builder, **options)


def test_an_unordered_decoding_is_refused(tf: Any, toys: Toys) -> None:
    options = tf.data.Options()
    options.deterministic = False
    with pytest.raises(UsageError, match="deterministic=False"):
        shardctl.tfds.read_config(resume(toys["plain"].dataset, consumed=3), options=options)


def test_shuffled_files_another_split_and_another_dataset_are_refused(
    tfds: Any, toys: Toys, tmp_path: Path
) -> None:
    builder = toys["plain"].builder
    plan = resume(toys["plain"].dataset, "train", consumed=3)
    for config in (shardctl.tfds.read_config(plan), shardctl.tfds.read_config(plan, builder)):
        with pytest.raises(UsageError, match="shuffle_files=True would shuffle the plan"):
            builder.as_dataset(split="train", read_config=config, shuffle_files=True)
        with pytest.raises(DatasetError, match="ask TFDS for split='train' of toy"):
            builder.as_dataset(split="test", read_config=config)
    folder = build_dataset(tmp_path, splits={**SPLITS, "train": [3, 0, 5, 17, 16, 1, 34]})
    other = tfds.builder_from_directory(folder)
    with pytest.raises(DatasetError, match="now 76 in 7"):
        shardctl.tfds.read_config(plan, other)
    with pytest.raises(DatasetError, match="now 76 in 7"):
        other.as_dataset(split="train", read_config=shardctl.tfds.read_config(plan))


def test_a_buffer_of_a_host_of_ds_shard_is_read_separately(toys: Toys) -> None:
    settings = ReadSettings(
        buffer=5, buffer_seed=1, host=Host(index=1, count=2), host_by="examples"
    )
    plan = resume(toys["plain"].dataset, "train", settings, consumed=3)
    with pytest.raises(UsageError, match="resume reads them one after"):
        shardctl.tfds.read_config(plan, toys["plain"].builder)
    later = resume(toys["plain"].dataset, "train", changed(settings, epochs=2), consumed=3)
    assert len(lines_read(toys["plain"], later, toys["plain"].builder, epoch=1)) == 37


def test_a_plan_in_exact_order_through_a_buffer_is_for_resume(toys: Toys) -> None:
    toy, settings = toys["plain"], ReadSettings(buffer=5, buffer_seed=1)
    plan = resume(toy.dataset, "train", settings, consumed=3, mode="exact-order")
    with pytest.raises(UsageError, match="held 4 examples that its instructions leave out"):
        shardctl.tfds.read_config(plan, toy.builder)
    # Before the first example nothing is held.
    start = resume(toy.dataset, "train", settings, consumed=0, mode="exact-order")
    assert len(lines_read(toy, start, toy.builder)) == 75
