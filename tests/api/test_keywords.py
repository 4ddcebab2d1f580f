"""Settings as keywords of the functions that take settings."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.settings import keywords
from tests.golden import assert_evaluated
from tests.public_calls import CALLS, World, public_parameters

TAKERS = [name for name, given in public_parameters().items() if "settings" in given]
OF_PLANNING = [
    name
    for name in TAKERS
    if name in shardctl.__all__ and name not in ("verify", "diff", "compare_loaders", "report")
]


def stated(settings: ReadSettings) -> dict[str, Any]:
    return {
        field.name: getattr(settings, field.name)
        for field in fields(settings)
        if getattr(settings, field.name) != field.default
    }


@pytest.mark.long
@pytest.mark.parametrize("name", OF_PLANNING)
def test_keywords_give_the_answer_of_settings(name: str) -> None:
    world = World()
    call = next(call for call in CALLS[name] if "settings" in call.arguments(world))
    settings = call.arguments(world)["settings"]
    by_name = stated(settings if isinstance(settings, ReadSettings) else ReadSettings(**settings))
    by_name = {key: by_name[key] for key in by_name.keys() - call.arguments(world).keys()}
    answers = [call(world, settings=None, **by_name), call(world, settings=by_name)]
    assert str(answers[0]) == str(answers[1])
    assert answers[0] == answers[1]


def test_editors_know_every_setting_a_function_takes() -> None:
    known = {field.name for field in fields(ReadSettings)}
    assert keywords.OrderSettings.__annotations__.keys() == known
    for name in TAKERS:
        given = public_parameters()[name]
        function: Any = shardctl
        for part in name.split("."):
            function = getattr(function, part)
        parameter = inspect.signature(function).parameters.get("keywords")
        if name == "PlannedOrder.with_settings":
            continue
        assert parameter is not None, name
        typed = getattr(keywords, parameter.annotation[len("Unpack[") : -1])
        assert not typed.__annotations__.keys() & given.keys(), name


def order_of(settings: Any = None, **by_name: Any) -> ReadSettings:
    return shardctl.simulate("mnist", "train", settings, **by_name).order.settings


def test_keywords_change_what_settings_say() -> None:
    expected = ReadSettings(shuffle_seed=2, batch=4)
    for given in (ReadSettings(shuffle_seed=1, batch=4), {"shuffle_seed": 1, "batch_size": 4}):
        assert order_of(given, shuffle_seed=2) == expected
    assert order_of(expected, batch=None, shuffle_seed=None) == ReadSettings()
    assert order_of(interleave_cycle_length=4, host="1/3").cycle == 4


def test_keywords_of_diff_change_what_the_snapshot_says() -> None:
    pinned = shardctl.snapshot("mnist", "test", shuffle_seed=1, buffer=9, buffer_seed=2)
    assert shardctl.diff(pinned, block=16).equal
    found = shardctl.diff(pinned, buffer_seed=3)
    assert [cause.name for cause in found.changes] == ["buffer_seed"]
    only = shardctl.diff(pinned, settings={}, buffer=9, buffer_seed=2)
    assert {cause.name for cause in only.changes} == {"shuffle_files", "shuffle_seed", "reshuffle"}


def test_a_wrong_keyword_is_refused_by_its_name() -> None:
    def refusal(by_name: dict[str, Any]) -> str:
        with pytest.raises(shardctl.UsageError) as raised:
            order_of(**by_name)
        assert isinstance(raised.value, TypeError) == str(raised.value).startswith("there is no ")
        return str(raised.value)

    assert_evaluated(globals(), "keywords", refusal)
    with pytest.raises(TypeError, match="no argument hsots; did you mean hosts"):
        shardctl.plan("mnist", hsots=3)  # type: ignore[call-arg]
