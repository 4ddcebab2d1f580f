"""Code of a plan, run by TFDS beside the pipeline that was stopped, reads what is left."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.saved.plan_file import plan_yaml
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.resume.answer import BufferMode, resume, resume_unseen
from shardctl.verbs.resume.code import needs_tfds_alone, resume_python
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import FUZZ, check_cases
from tests.code.pasted import read, run
from tests.golden import assert_golden
from tests.order.order_cases import changed
from tests.order.toy_pipelines import Case, Toys
from tests.tfds_datasets import build_dataset
from tests.verbs.resume.resume_cases import CASES, plan_of
from tests.verbs.resume.stopped_pipelines import stopped, stops

UNSEEDED: tuple[BufferMode, ...] = ("at-most-once", "at-least-once")
each_mode = pytest.mark.parametrize("mode", ["exactly-once", "exact-order", *UNSEEDED])


def code_of(plan: ResumePlan, plan_file: str | None = None) -> str:
    return "".join(resume_python(plan, None, plan_file=plan_file))


@pytest.mark.parametrize("name", CASES)
def test_code_of_a_plan_is_this(name: str) -> None:
    try:
        text = code_of(plan_of(name))
    except UsageError as error:
        text = f"error: {error}\n"
    golden = Path(__file__).parent / "golden" / "code"
    assert_golden(golden / f"{name.replace(', ', '-').replace(' ', '-')}.txt", text)


def names_of(lines: Sequence[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def check_code(toys: Toys, case: Case, numbers: Sequence[int], mode: BufferMode) -> int | None:
    """Stop a pipeline, run the code of a plan, and compare; return whether it needs TFDS alone."""
    toy = toys[case.toy]
    settings, unseeded = case.settings, case.settings.buffer is not None and mode in UNSEEDED
    if unseeded:  # has some seed, which the plan is not told
        settings = changed(settings, global_seed=None, buffer_seed=numbers[2])
        if settings.shuffles_files and settings.shuffle_seed is None:
            settings = changed(settings, shuffle_seed=numbers[3])
    case = replace(case, settings=settings)
    found = stopped(toy, case, 0 if settings.repeat_files else numbers[0] % 2)
    if found is None or not found[0].num_examples:
        return None
    order, whole = found[0], names_of(found[1])
    place = numbers[4] % (len(whole) + 1)
    place -= place % (settings.batch or 1)
    settings = changed(order.settings, buffer_seed=None) if unseeded else order.settings
    plan = resume(toy.dataset, case.spec, settings, consumed=place, mode=mode)
    text = code_of(plan)
    left = read(run([text])["ds"])
    assert len(left) == plan.remaining_total, text
    check_left(plan, whole, place, left, order.epoch_size)
    return int(needs_tfds_alone(plan))


def check_left(plan: ResumePlan, whole: list[str], place: int, left: list[str], size: int) -> None:
    settings, dropped = plan.settings, plan.settings.drop_remainder
    first, follow = left[: plan.remaining], left[plan.remaining :]
    if plan.exact:
        assert left == whole[place:]
        return
    if plan.unseeded is None:
        if settings.repeat_files:  # its buffer had read beyond the end, so the last are others
            return
        assert follow == whole[place + plan.remaining :]
        if not dropped or follow:
            assert Counter(first) == Counter(whole[place : place + plan.remaining])
        return
    if settings.repeat_files or dropped or place == len(whole):
        return
    here = min(place // size, settings.epochs - 1)
    start = here * size
    again = Counter(first) if plan.epoch == here else Counter[str]()
    every, handed = Counter(whole[start : start + size]), Counter(whole[start:place])
    lost, repeated = (every - handed - again).total(), (handed + again - every).total()
    assert lost <= plan.unseeded.most_lost
    assert plan.unseeded.least_repeated <= repeated <= plan.unseeded.most_repeated
    if plan.epoch != here:
        follow = left
    while follow:
        start += size
        assert Counter(follow[:size]) == Counter(whole[start : start + size])
        follow = follow[size:]


def _check(
    toys: Toys, num_cases: int, *, mode: BufferMode, buffered: bool, fuzz: bool = False
) -> Counter[int]:
    kinds = Counter[int]()

    def check(drawn: tuple[Case, list[int]]) -> int:
        kind = check_code(toys, *drawn, mode)
        if kind is None:
            return 0
        kinds[kind] += 1
        return 1

    check_cases(stops(buffered=buffered), check, num_cases, fuzz=fuzz)
    return kinds


def test_code_of_a_plan_goes_on_where_the_pipeline_stopped(toys: Toys) -> None:
    kinds = _check(toys, 3, mode="exactly-once", buffered=False)
    assert kinds.total() >= 2


@pytest.mark.slow
@each_mode
def test_code_of_a_plan_goes_on_through_a_buffer(toys: Toys, mode: BufferMode) -> None:
    kinds = _check(toys, 3, mode=mode, buffered=True)
    assert kinds.total() >= 2


@pytest.mark.fuzz
def test_code_of_a_plan_goes_on_where_the_pipeline_stopped_fuzzed(toys: Toys) -> None:
    _check(toys, FUZZ // 8, mode="exactly-once", buffered=False, fuzz=True)


@pytest.mark.fuzz
@each_mode
def test_code_of_a_plan_goes_on_through_a_buffer_fuzzed(toys: Toys, mode: BufferMode) -> None:
    _check(toys, FUZZ // 32, mode=mode, buffered=True, fuzz=True)


def as_host(text: str, index: int) -> str:
    """Return code with the number of the host that somebody pastes it on."""
    old, new = r"^host, num_hosts = 0, ", f"host, num_hosts = {index}, "
    changed_text, count = re.subn(old, new, text, flags=re.MULTILINE)
    assert count == 1
    return changed_text


# Each way to share with each kind of settings would be as many again.
HOSTS = [
    ("even", {"shuffle_seed": 7}),
    ("files", {"epochs": 2, "batch": 4}),
    ("examples", {"epochs": 3, "batch": 4}),
    ("files", {"shuffle_seed": 7, "epochs": 2}),
    ("even", {"buffer": 5, "buffer_seed": 3, "epochs": 2}),
    ("examples", {"buffer": 5, "buffer_seed": 3, "epochs": 2}),
    ("files", {"buffer": 5, "epochs": 2, "reverse": True}),
]


@pytest.mark.parametrize(
    ("host_by", "change"),
    [HOSTS[0], *(pytest.param(*case, marks=pytest.mark.slow) for case in HOSTS[1:])],
)
def test_every_new_host_runs_the_code_with_its_number(
    toys: Toys, host_by: Any, change: dict[str, Any]
) -> None:
    toy = toys["plain"]
    settings = ReadSettings(cycle=2, block=3, host_by=host_by, **change)
    unseeded, consumed = settings.buffer_is_open, [12, 4, 0]
    every, handed = Counter[str](), Counter[str]()
    for index, count in enumerate(consumed):
        own = changed(settings, host=Host(index=index, count=3))
        if unseeded:
            own = changed(own, buffer_seed=index)
        found = stopped(toy, Case(toy="plain", spec="train", settings=own), 0)
        assert found is not None
        every.update(names_of(found[1]))
        handed.update(names_of(found[1][:count]))
    plan = resume_on_hosts(
        toy.dataset,
        "train",
        settings,
        hosts=3,
        to_hosts=2,
        consumed=consumed,
        mode="at-most-once" if unseeded else "exactly-once",
    )
    text = code_of(plan)
    parts = [read(run([as_host(text, index)])["ds"]) for index in range(2)]
    left = Counter([name for part in parts for name in part])
    lost = plan.unseeded.most_lost if plan.unseeded else 0
    assert (every - handed - left).total() == lost
    assert not handed + left - every
    assert len(parts[0]) >= plan.hosts[0].num_examples


def many(length: int = 3000) -> Dataset:
    files = ShardFiles(pattern="d-train.tfrecord-\0-of-03000", num_shards=length)
    train = Split(name="train", shard_lengths=(2,) * length, files=(files,))
    return Dataset(name="d", version="1.0.0", splits=(train,))


def test_a_plan_file_is_read_where_code_would_be_long(toys: Toys, tmp_path: Path) -> None:
    plan = resume_unseen(many(), seen=[2 * i + 1 for i in range(3000)])
    with pytest.raises(UsageError, match="of 3,000 file instructions is not written: write"):
        code_of(plan)
    assert code_of(plan, "it's a plan.yaml").splitlines()[-1] == (
        'ds = shardctl.tfds.resume(builder, "it\'s a plan.yaml")'
    )
    settings = ReadSettings(buffer=9, buffer_seed=2, cycle=2)
    order = resume(toys["plain"].dataset, "train", settings, consumed=0, mode="exact-order")
    path = tmp_path / "plan.yaml"
    path.write_text("".join(plan_yaml(order)))
    whole = read(run([code_of(order, str(path))])["ds"])
    assert whole == read(run([code_of(order)])["ds"])
    assert len(whole) == 75


def test_files_of_one_name_in_two_splits_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    folder = build_dataset(
        tmp_path, splits={"train": [3, 4], "test": [2, 5]}, template="{SPLIT}/{SHARD_X_OF_Y}"
    )
    dataset = read_tfds_folder(folder)
    text = code_of(resume(dataset, "test+train", ReadSettings(cycle=3, block=1), consumed=4))
    left = [int(example["id"]) for example in run([text])["ds"].as_numpy_iterator()]
    # Files test 0, test 1, train 0 in turn, then train 1: ids 0 2 0, 1 3 1, 4 2, 5 3, 6 4, 5, 6.
    assert left == [3, 1, 4, 2, 3, 5, 4, 6, 5, 6]


def test_hostile_file_names_stay_names() -> None:
    files = ShardFiles(names=('a"b', "c'd\\"), num_shards=2)
    train = Split(name="train", shard_lengths=(2, 3), files=(files,))
    dataset = Dataset(name="d", version="1.0.0", splits=(train,))
    text = code_of(resume(dataset, "train", ReadSettings(cycle=1), consumed=1))
    start, stop = text.index("INSTRUCTIONS = "), text.index("builder = ")
    namespace: dict[str, Any] = {}
    exec(text[start:stop], namespace)
    assert namespace["INSTRUCTIONS"] == [('a"b', 1, 1), ("c'd\\", 0, 3)]
