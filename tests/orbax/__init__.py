"""Tests of positions in the checkpoints of Orbax, left out where Orbax or Flax is not installed."""

from importlib.util import find_spec

import pytest

for name in ("orbax", "flax"):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed", allow_module_level=True)
