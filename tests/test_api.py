"""The Python API: few names, all documented, loaded when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import shardctl


@pytest.mark.parametrize("name", shardctl.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(shardctl, name).__doc__


def test_names_are_listed_once_and_in_order() -> None:
    assert shardctl.__all__ == sorted(set(shardctl.__all__))
    assert set(shardctl.__all__) <= set(dir(shardctl))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = shardctl.plam


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, shardctl\n"
        "heavy = {'tensorflow', 'tensorflow_datasets', 'numpy', 'yaml', 'rich', 'typer'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
