"""Importing shardctl.grain imports nobody; what is missing is said with how to install it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.grain import Sampler, data_loader, fit_epochs, map_dataset
from shardctl.grain.libraries import grain, keras
from tests.grain.toys import toy

_LIBRARIES = ("grain", "jax", "keras", "tensorflow", "tensorflow_datasets", "torch")


def test_importing_it_and_making_a_sampler_imports_no_library() -> None:
    code = (
        "import sys, shardctl.grain\n"
        "s = shardctl.grain.Sampler('mnist', 'train', {'shuffle_seed': 1})\n"
        f"print([m for m in {_LIBRARIES} if m in sys.modules], len(s), s.order.key(0))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert said.startswith("[] 60000 ")


def test_without_grain_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grain", None)
    monkeypatch.setitem(sys.modules, "grain.python", None)
    data, source = toy(4, 5), list(range(9))
    calls: list[Callable[[], Any]] = [
        grain,
        lambda: data_loader(source, data),
        lambda: map_dataset(source, data),
    ]
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"pip install 'shardctl\[grain\]'"):
            call()


def test_without_keras_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(MissingDependencyError, match="pip install keras"):
        keras()
    with pytest.raises(MissingDependencyError, match="pip install keras"):
        fit_epochs(Sampler(toy(4, 5)))
