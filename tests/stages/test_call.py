"""One call: its arguments by name and by place."""

from __future__ import annotations

import pytest

from shardctl.errors import UsageError
from shardctl.stages.calls import CALLS
from shardctl.stages.part import said_of
from shardctl.stages.stages import Batch, Repeat, Shuffle, Take, Unbatch


def test_arguments_by_name_and_by_place() -> None:
    shuffle = CALLS["shuffle"]
    assert shuffle.parameter("buffer_size") is shuffle.parameter("buffer") is shuffle.placed(0)
    assert shuffle.main is shuffle.placed(0)
    assert shuffle.needed == ["buffer"]
    assert shuffle.parameter("name").name == ""
    assert CALLS["zip"].rest is CALLS["zip"].placed(0)
    assert CALLS["take"].rest is None
    assert CALLS["unbatch"].main is None
    with pytest.raises(UsageError, match="3 at most"):
        shuffle.placed(3)
    with pytest.raises(UsageError, match="no argument 'count'"):
        shuffle.parameter("count")


def test_what_a_call_makes() -> None:
    assert CALLS["shuffle"].stages([("buffer", 3), ("", None)]) == (Shuffle(buffer=3),)
    with pytest.raises(UsageError, match="buffer is needed"):
        CALLS["shuffle"].stages([])
    with pytest.raises(UsageError, match="buffer is there twice"):
        CALLS["shuffle"].stages([("buffer", 3), ("buffer", 3)])


def test_what_is_said_is_no_default() -> None:
    assert said_of(Batch(size=3)) == {"size": 3}
    assert said_of(Batch(size=3, drop_remainder=True)) == {"size": 3, "drop_remainder": True}
    assert said_of(Take(count=-1)) == {"count": -1}
    assert said_of(Repeat()) == said_of(Unbatch()) == {}
