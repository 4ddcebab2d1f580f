"""Codes kept in pages are those that the reading looks up one by one."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.order import reader_node as code_pages
from shardctl.order.epoch_reading import EpochReading
from shardctl.order.reader_node import CodePages
from shardctl.tfdata.interleave import Interleave


def _reading(num_shards: int, length: int) -> EpochReading:
    lengths = np.full(num_shards, length) - np.arange(num_shards) % 3
    return EpochReading(
        interleave=Interleave(lengths, cycle_length=16, block_length=16),
        row_codes=np.cumsum(lengths) - lengths,
        stride=3,
        phase=1,
    )


@pytest.mark.parametrize("most_pages", [512, 2])
def test_pages_hold_what_the_reading_has(monkeypatch: pytest.MonkeyPatch, most_pages: int) -> None:
    monkeypatch.setattr(code_pages, "_MAX_PAGES", most_pages)
    reading = _reading(100, 10_000)
    pages, rng = CodePages(reading), np.random.default_rng(0)
    total = reading.num_examples
    for start in [*range(0, total, 37_000), 5, total - 900]:
        near = rng.integers(start, min(start + 60_000, total), 5000)
        far = rng.integers(0, total, 50)
        asked = np.concatenate([near, far, [total - 1, 0]])
        assert pages.codes_at(asked).tolist() == reading.codes_at(asked).tolist()
    assert pages.codes_at(np.empty(0, np.int64)).tolist() == []


def test_a_whole_reading_in_order_is_read_page_by_page() -> None:
    reading = _reading(40, 9000)
    total = reading.num_examples
    assert np.array_equal(CodePages(reading).codes_at(np.arange(total)), reading.codes(0, total))
