"""What fields of stages take; whole stages are in test_stages.py."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.base.arguments import kind_of
from shardctl.errors import UsageError
from shardctl.stages import part as fields

MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("hint", "given", "kept"),
    [
        (fields.Buffer, -2, -2),
        (fields.Buffer, MOST, MOST),
        (fields.PositiveCount, 1, 1),
        (fields.Number, 0, 0),
        (fields.CountOrAll, -1, -1),
        (fields.Times, -1, None),
        (fields.Times, 3, 3),
        (fields.Calls, -1, "auto"),
        (fields.Calls, "auto", "auto"),
        (fields.Held, 0, 0),
        (fields.Seed, -(2**70), -(2**70)),
        (fields.Seed, [1, -2], (1, -2)),
        (fields.Weights, [1, 0], (1.0, 0.0)),
        (fields.Word, "a", "a"),
        (fields.OwnSettings, {"a": [1, 2]}, (("a", (1, 2)),)),
        (fields.OwnSettings, [("a", 1), ["b", "x"]], (("a", 1), ("b", "x"))),
    ],
)
def test_a_value_is_kept(hint: Any, given: object, kept: object) -> None:
    found = kind_of(hint).take(given)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("hint", "given"),
    [
        (fields.Buffer, 0),
        (fields.Buffer, MOST + 1),
        (fields.PositiveCount, 0),
        (fields.Number, -1),
        (fields.CountOrAll, -2),
        (fields.Times, 0),
        (fields.Times, True),
        (fields.Calls, 0),
        (fields.Calls, "AUTO"),
        (fields.Held, -2),
        (fields.Seed, "1"),
        (fields.Seed, (1, 2**63)),
        (fields.Seed, ("1", 2)),
        (fields.Weights, "1"),
        (fields.Weights, ()),
        (fields.Word, ""),
        (fields.OwnSettings, "ab"),
        (fields.OwnSettings, [("a",)]),
        (fields.OwnSettings, [(1, 2)]),
    ],
)
def test_a_value_is_refused(hint: Any, given: object) -> None:
    with pytest.raises(UsageError):
        kind_of(hint).take(given)
