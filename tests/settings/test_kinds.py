"""The kinds of settings: what they take, from Python and from a document."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import (
    BufferSize,
    FileNames,
    SettingKind,
    StageList,
    Switch,
    WhichHost,
    WholeNumber,
    Word,
)
from shardctl.spec.host import Host
from shardctl.stages.stages import Cache, Pipeline, Take

MOST = 2**63 - 1
CYCLE = WholeNumber(least=1, words=("auto",))


@pytest.mark.parametrize(
    ("kind", "metavar", "taken", "refused"),
    [
        (WholeNumber(), "N", [0, -1, 2**70, np.int32(3)], ["3", "auto", 1.0, True, [], {}]),
        (WholeNumber(least=0), "N", [0, MOST], [-1, MOST + 1, np.int64(-1)]),
        (CYCLE, "N|auto", [1, "auto", MOST], [0, "AUTO", "all", False]),
        (BufferSize(least=1), "N", [1, -2, MOST], [0, -1, -3, MOST + 1, "all"]),
        (Switch(), "", [True, False], [0, 1, "yes", "", []]),
        (Word(words=("a", "b")), "a|b", ["a", "b"], ["c", "", 1, True, ["a"]]),
        (WhichHost(), "I/N", [Host(index=0, count=1)], ["1", 3, (0, 1)]),
        (FileNames(), "FILE", [("a",), ["a", "b"], ()], ["a", 3, {"a": 1}]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, SettingKind) else "",
)
def test_what_a_kind_takes(
    kind: SettingKind, metavar: str, taken: list[Any], refused: list[Any]
) -> None:
    assert kind.metavar == metavar
    kept = [kind.take(value) for value in taken]
    assert kept == [tuple(value) if isinstance(value, list) else value for value in taken]
    assert not any(type(value) is np.int32 for value in kept)
    for value in refused:
        with pytest.raises(UsageError):
            kind.take(value)


def test_stages_are_taken_as_text_as_a_list_and_as_they_are() -> None:
    kind = StageList()
    taken = Pipeline(stages=(Cache(), Take(count=3)))
    for given_as in ("cache | take(3)", ["cache", {"take": 3}], ("cache", "take(3)"), taken):
        assert kind.take(given_as) == taken
    assert kind.to_document(taken) == ["cache", {"take": 3}]
    assert kind.take(kind.to_document(Pipeline())) == Pipeline()
    assert kind.metavar == "STAGES"
    for refused in (3, True, "", "cahe", ["cahe"], [3], {"take": 3}, b"cache"):
        with pytest.raises(UsageError):
            kind.take(refused)


@given(st.integers(0, 9), st.integers(1, 9))
def test_a_host_comes_back_from_a_document(index: int, count: int) -> None:
    if index >= count:
        with pytest.raises(UsageError, match="hosts count from 0"):
            WhichHost().from_document(f"{index}/{count}")
        return
    host = Host(index=index, count=count)
    assert WhichHost().from_document(WhichHost().to_document(host)) == host


def test_file_names_come_back_from_a_document() -> None:
    names = ("b", "a", "b")
    assert FileNames().to_document(names) == ["b", "a", "b"]
    assert FileNames().from_document(["b", "a", "b"]) == names
    for wrong in ("a", [1], ("a",), None):
        with pytest.raises(UsageError, match="a list of file names is needed"):
            FileNames().from_document(wrong)


def test_a_switch_takes_the_truth_values_of_numpy_and_no_numbers() -> None:
    assert ReadSettings(shuffle_seed=1, reshuffle=np.bool_(True)).reshuffle  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"reverse=.*: true or false is needed"):
        ReadSettings(reverse=np.int64(1))  # type: ignore[arg-type]
