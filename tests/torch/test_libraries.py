"""Importing shardctl.torch imports nobody; what is missing is said with how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.torch import data_loader
from shardctl.torch.loader import torch_data
from tests.grain.toys import toy

_LIBRARIES = ("grain", "jax", "keras", "tensorflow", "tensorflow_datasets", "torch", "torchdata")


@pytest.mark.long
def test_importing_it_and_iterating_a_sampler_imports_no_library() -> None:
    code = (
        "import sys, shardctl.torch\n"
        "s = shardctl.torch.Sampler('mnist', 'train', {'shuffle_seed': 1})\n"
        "n = len(list(s))\n"
        f"print([m for m in {_LIBRARIES} if m in sys.modules], n, s.state_dict()['consumed'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert said == "[] 60000 60000\n"


def test_without_torch_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.data", None)
    for call in (torch_data, lambda: data_loader(list(range(9)), toy(4, 5))):
        with pytest.raises(MissingDependencyError, match=r"pip install 'shardctl\[torch\]'"):
            call()
