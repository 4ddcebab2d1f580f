"""What the core asks of rooms above it is there, and is imported no sooner than asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import shardctl
from shardctl.base.hooks import PROVIDERS, provided


@pytest.mark.parametrize("name", PROVIDERS)
def test_what_is_provided_is_a_function(name: str) -> None:
    assert callable(provided(name))


@pytest.mark.long
def test_a_room_of_the_core_alone_gets_it_too() -> None:
    code = (
        "from shardctl.dataset.dataset import as_dataset\n"
        "import sys\n"
        "assert 'shardctl.metadata' not in sys.modules\n"
        "print(as_dataset('mnist').title)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "mnist:3.0.1\n"


def test_nothing_is_provided_twice() -> None:
    assert provided("dataset") is provided("dataset")
    assert shardctl.read_plan is provided("plan")
