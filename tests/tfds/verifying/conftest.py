"""Budgets for toys."""

from __future__ import annotations

import pytest

import shardctl.planning.verify as limits


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets so small that a toy is read in windows."""
    monkeypatch.setattr(limits, "NUM_WINDOWS", 3)
    monkeypatch.setitem(limits.BUDGETS, "files", 12)
    monkeypatch.setitem(limits.BUDGETS, "index ranges", 36)
