"""Settings at random: what every rule takes, and enough of them."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from shardctl.live.process import LoaderProcess
from shardctl.live.verify import first_difference, random_orders
from shardctl.loaders.loader import LOADERS
from shardctl.metadata.loader_versions import installed_version
from shardctl.order.loader_order import LoaderOrder
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run

_NUM_LIVE = FUZZ * 300 // 2000


def orders(name: str, count: int, **more: int) -> list[LoaderOrder]:
    loader = LOADERS[name]
    return list(islice(random_orders(loader, loader.proven[-1], Random(1), **more), count))


@pytest.mark.parametrize("name", LOADERS)
def test_each_setting_that_a_loader_takes_is_drawn(name: str) -> None:
    default = ReadSettings(loader=LOADERS[name].name)
    drawn = Counter(
        field
        for order in orders(name, 150, every_workers=4)
        for field in LOADERS[name].takes
        if getattr(order.settings, field) != getattr(default, field)
    )
    assert {*drawn} == {*LOADERS[name].takes} - {"stages"}


def test_processes_are_rare_since_they_take_seconds() -> None:
    with_workers = [bool(order.settings.workers) for order in orders("torch", 100)]
    assert sum(with_workers) == 5


def test_the_same_numbers_give_the_same_settings() -> None:
    assert [order.settings for order in orders("hf", 20)] == [
        order.settings for order in orders("hf", 20)
    ]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", LOADERS)
def test_the_installed_version_hands_out_what_is_predicted(name: str) -> None:
    """As `verify` tries a version that is not proven, with other settings each time."""
    loader = LOADERS[name]
    version = installed_version(loader.library)
    if version is None:
        pytest.skip(f"needs {loader.library}: pip install {loader.library}")
    made = random_orders(loader, version, random_of_a_fuzz_run())
    with LoaderProcess(loader) as process:
        for order in islice(made, _NUM_LIVE):
            pieces = process.pieces(order.config)
            found = first_difference(order, pieces, order.num_examples)
            assert found is None, (order.settings, order.config.lengths.tolist(), found)
            add_cases()
