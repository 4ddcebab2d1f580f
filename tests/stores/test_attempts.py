"""What is tried again, how often, and when it ends."""

from __future__ import annotations

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.failures import TransientError, attempted


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that waits move, and how long they were."""
    waited: list[float] = []
    monkeypatch.setattr("time.monotonic", lambda: sum(waited))
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    return waited


def test_waits_grow_to_a_bound_and_end_with_the_patience(waits: list[float]) -> None:
    def busy() -> int:
        raise TransientError("busy")

    with pytest.raises(
        DatasetError, match=r"^cannot read 'gs://b/a': busy \(after 10 attempts in 37 s\)"
    ):
        attempted(busy, path="gs://b/a")
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 8.0, 8.0, 8.0])
    assert sum(waits) <= 40


def test_a_refused_connection_is_tried_for_seconds(waits: list[float]) -> None:
    def refused() -> int:
        raise TransientError("refused", brief=True)

    with pytest.raises(DatasetError, match="refused"):
        attempted(refused, path="x")
    assert sum(waits) <= 4


def test_other_errors_are_not_tried_again() -> None:
    def broken() -> int:
        raise DatasetError("no")

    with pytest.raises(DatasetError, match=r"^no$"):
        attempted(broken, path="x")
