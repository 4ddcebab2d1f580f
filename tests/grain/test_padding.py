"""Padding is behind the last record, is dropped, and does not show in what Grain compares."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

from shardctl.grain.loader import PaddedSource, Padding, drop_padding
from tests.grain.toys import needs_grain


def test_it_is_one_record_more() -> None:
    source = PaddedSource([5, 6])
    assert len(source) == 3
    assert source[1] == 6
    assert isinstance(source[2], Padding)


def test_it_is_called_as_grain_calls_the_source() -> None:
    needs_grain()
    from grain._src.python.data_loader import _source_repr

    sources: list[Any] = [[1, 2], (1, 2), np.arange(3), range(3)]
    for source in sources:
        assert repr(PaddedSource(source)) == _source_repr(source)


def test_it_is_dropped() -> None:
    needs_grain()
    drop = pickle.loads(pickle.dumps(drop_padding()))
    elements: list[Any] = [0, None, {}, Padding()]
    assert [drop.filter(one) for one in elements] == [True, True, True, False]
    module = sys.modules["shardctl.grain.loader"]
    assert type(drop) is module.DropPadding
    with pytest.raises(AttributeError):
        module.Other  # noqa: B018
