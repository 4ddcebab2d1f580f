"""Importing shardctl.grain or .torch imports nobody; what is missing is said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import shardctl.torch
from shardctl.errors import MissingDependencyError
from shardctl.grain import Sampler, data_loader, fit_epochs, map_dataset
from tests.grain.toys import toy

_LIBRARIES = ("grain", "jax", "keras", "tensorflow", "tensorflow_datasets", "torch", "torchdata")


@pytest.mark.long
@pytest.mark.parametrize("room", ["grain", "torch"])
def test_importing_it_and_making_a_sampler_imports_no_library(room: str) -> None:
    code = (
        f"import sys, shardctl.{room}\n"
        f"s = shardctl.{room}.Sampler('mnist', 'train', {{'shuffle_seed': 1}})\n"
        f"print([m for m in {_LIBRARIES} if m in sys.modules], len(s), s.order.key(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("[] 60000 ")


def test_what_is_missing_is_said_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grain", "grain.python", "torch.utils.data", "keras"):
        monkeypatch.setitem(sys.modules, name, None)
    data, source = toy(4, 5), list(range(9))
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("'grain>=0.2.16'", lambda: data_loader(source, data)),
        ("'grain>=0.2.16'", lambda: map_dataset(source, data)),
        ("'torch>=2.13'", lambda: shardctl.torch.data_loader(source, data)),
        ("keras", lambda: fit_epochs(Sampler(data))),
    ]
    for package, call in calls:
        with pytest.raises(MissingDependencyError, match=f"pip install {package}"):
            call()
