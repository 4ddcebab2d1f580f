"""The table of loaders: what it says is there, and asking it loads none of them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from typing import get_args

import pytest

from shardctl.core.loaders.loader import LOADER_NAMES, LOADERS, Loader, LoaderName
from shardctl.core.loaders.versions import release_of
from shardctl.core.settings.read_settings import ReadSettings


def test_loaders_are_called_as_the_command_line_takes_them() -> None:
    assert get_args(LoaderName) == LOADER_NAMES
    assert all(name == loader.name for name, loader in LOADERS.items())


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
def test_an_entry_names_settings_that_there_are_and_a_rule_that_can_be_asked(
    loader: Loader,
) -> None:
    assert set(loader.takes) <= {field.name for field in fields(ReadSettings)}
    module, _, function = loader.rule.partition(":")
    assert callable(getattr(import_module(module), function))
    for proven in (loader.proven, *loader.beside.values()):
        assert proven
        assert sorted(proven, key=lambda version: release_of(version) or ()) == list(proven)
    assert all(release_of(era) for era in loader.eras)


def test_asking_the_table_loads_no_library_and_no_numpy() -> None:
    names = "('numpy', 'torch', 'grain', 'datasets', 'torchdata', 'accelerate', 'tensorflow')"
    code = "import sys, shardctl.core.loaders.loader; "
    code += f"print([name for name in {names} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
