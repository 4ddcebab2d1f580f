"""Workers end with their process; `tests/grain/test_libraries.py` kills one of Grain's."""

from __future__ import annotations

import threading

from shardctl.live.key_order import end_with_parent


def test_nothing_ends_where_no_worker_of_grain_is() -> None:
    before = threading.active_count()
    end_with_parent()
    assert threading.active_count() == before
