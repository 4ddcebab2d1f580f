"""Quantities as people read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shardctl.base.text import counted
from shardctl.draw import quantities
from tests.golden import assert_answers


def test_quantities_are_said_so() -> None:
    names: dict[str, Any] = {**vars(quantities), "counted": counted, "np": np}
    path = Path(__file__).with_name("golden") / "quantities.txt"
    assert_answers(path, lambda question: eval(question, names))
