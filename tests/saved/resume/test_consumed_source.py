"""A source is called as stages write it."""

from __future__ import annotations

import pytest

from shardctl.saved.resume_plan import ConsumedSource


@pytest.mark.parametrize(
    ("data", "spec", "said"),
    [
        (None, None, "read"),
        (None, "train[:9]", "train[:9]"),
        ("mnist", "test", "test of mnist"),
        ("mnist", None, "read of mnist"),
    ],
)
def test_it_says_what_is_read(data: str | None, spec: str | None, said: str) -> None:
    assert str(ConsumedSource(data=data, spec=spec, consumed=3)) == said
