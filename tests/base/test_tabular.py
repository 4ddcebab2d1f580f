"""Answers with rows: what they offer is made by the room that `shardctl` names for it."""

from __future__ import annotations

import pytest

from shardctl.base.columns import Tabular
from shardctl.base.hooks import PROVIDERS


class Rows(Tabular):
    """An answer."""


def test_a_table_is_made_by_what_is_provided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDERS, "html", "base.text:quoted")
    monkeypatch.setitem(PROVIDERS, "to_pandas", "base.text:quoted")
    rows = Rows()
    assert "Rows object" in rows._repr_html_()
    assert rows.to_pandas() == rows._repr_html_()
