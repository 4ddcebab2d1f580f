"""The table of loaders: who reads, and which settings mean something to each."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import get_args

from shardctl.loaders.loader import LOADERS, READERS, LoaderName
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTING_BY_FIELD


def test_the_names_are_those_of_the_contract_in_its_order() -> None:
    assert get_args(LoaderName) == tuple(READERS)
    assert tuple(READERS) == ("tfds", "grain", "torch", "stateful", "accelerate", "hf")
    assert all(loader.name == name for name, loader in READERS.items())
    assert ReadSettings().reader is READERS["tfds"]
    assert ReadSettings(loader="torch").reader is LOADERS["torch"]


def test_each_takes_settings_that_there_are_and_says_which_call_they_are() -> None:
    for loader in READERS.values():
        assert set(loader.takes) <= set(SETTING_BY_FIELD)
        assert {"host", "batch", "epochs"} <= set(loader.takes)


def test_every_setting_of_loaders_is_taken_by_one() -> None:
    taken = {field for loader in LOADERS.values() for field in loader.takes}
    own = {s.field for s in SETTING_BY_FIELD.values() if s.about == "loader"}
    assert own - {"loader", "loader_version"} <= taken


def test_the_reader_of_tfds_takes_what_is_not_of_loaders_alone() -> None:
    own = {s.field for s in SETTING_BY_FIELD.values() if s.about != "loader"}
    assert own == {*READERS["tfds"].takes}
    assert [loader.name for loader in READERS.values() if loader.on_tf_data] == ["tfds"]


def test_versions_ascend_and_rules_are_there() -> None:
    for loader in LOADERS.values():
        numbers = [tuple(map(int, version.split("."))) for version in loader.proven]
        assert numbers == sorted(numbers)
        module, _, function = loader.rule.partition(":")
        assert callable(getattr(import_module(module), function))


def test_the_table_loads_no_numpy() -> None:
    program = (
        "import sys, shardctl.loaders.loader, shardctl.settings.read_settings\n"
        "print('numpy' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "False\n"
