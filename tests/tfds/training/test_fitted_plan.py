"""Plans fitted to a builder: as the reader they are for reads them, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds.training.read_config import fitted, reads_of_epoch
from shardctl.tfds.training.records import RangeReader
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.tfds_datasets import build_dataset

pytestmark = pytest.mark.tensorflow

SETTINGS = ReadSettings(cycle=1, epochs=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    splits = {"train": [3, 5, 3], "test": [4]}
    return build_dataset(tmp_path_factory.mktemp("data"), splits=splits, with_files=False)


@pytest.fixture
def builder(tfds: Any, folder: Path) -> Any:
    return tfds.builder_from_directory(str(folder))


def planned(folder: Path, settings: ReadSettings = SETTINGS) -> ResumePlan:
    return resume(read_tfds_folder(folder), "train", settings, consumed=4)


def among(folder: Path) -> ResumePlan:
    dataset = read_tfds_folder(folder)
    return resume_on_hosts(dataset, "train", SETTINGS, hosts=1, to_hosts=2, consumed=[4])


def test_a_plan_for_one_reader_is_read_as_it_is(builder: Any, folder: Path) -> None:
    found = fitted(builder, planned(folder), host=None)
    assert found.num_examples == 7
    assert found.settings == found.plan.settings
    # File 0 is read; of file 1 one of 5 examples is.
    assert found.order.read(4, 11).tolist() == list(range(4, 11))
    assert found.reader(RangeReader).codes.names([4, 10]) == ["4", "10"]


@pytest.mark.parametrize(("host", "num_examples", "epoch_size"), [(0, 4, 6), (1, 3, 5)])
def test_a_plan_for_hosts_is_read_as_one_of_them(
    builder: Any, folder: Path, host: int, num_examples: int, epoch_size: int
) -> None:
    # 7 examples are left, 4 and 3; of the epochs after it each host has its own part.
    found = fitted(builder, among(folder), host=host)
    assert found.num_examples == num_examples
    assert str(found.settings.host) == f"{host}/2"
    assert found.order.epoch_size == epoch_size


@pytest.mark.parametrize(
    ("for_hosts", "host", "said"),
    [
        (False, 0, "host=0: this plan is for one reader; leave host out"),
        (True, None, "choose one of 0 to 1"),
        (True, 2, "choose one of 0 to 1"),
        (True, -1, "choose one of 0 to 1"),
    ],
)
def test_a_host_is_chosen_where_there_are_several_and_only_there(
    builder: Any, folder: Path, for_hosts: bool, host: int | None, said: str
) -> None:
    plan = among(folder) if for_hosts else planned(folder)
    with pytest.raises(UsageError, match=said):
        fitted(builder, plan, host=host)


def test_an_epoch_opens_its_files_in_an_order_of_its_own(builder: Any, folder: Path) -> None:
    shuffled = ReadSettings(shuffle_seed=3, epochs=9)
    order = fitted(builder, planned(folder, shuffled), host=None).order
    opened = [reads_of_epoch(order, epoch).shard.tolist() for epoch in range(9)]
    assert all(sorted(shards) == [0, 1, 2] for shards in opened)
    assert len({tuple(shards) for shards in opened}) > 1
    # The first file of an epoch is read first: its first example begins the epoch.
    first_ids = {0: 0, 1: 3, 2: 8}
    starts = [order.read(11 * epoch, 11 * epoch + 1).tolist() for epoch in range(9)]
    assert starts == [[first_ids[shards[0]]] for shards in opened]


def test_a_plan_of_another_loader_is_left_to_its_library(builder: Any, folder: Path) -> None:
    settings = ReadSettings(loader="torch", shuffle_seed=1, loader_version="2.14.1")
    plan = resume(read_tfds_folder(folder), "train", settings, consumed=3)
    for call in (
        lambda: shardctl.tfds.resume(builder, plan),
        lambda: shardctl.tfds.read_config(plan),
        lambda: shardctl.tfds.verify_plan(read_tfds_folder(folder), plan),
    ):
        with pytest.raises(UsageError, match="the plan is of PyTorch's DataLoader"):
            call()
