"""Which settings are in force, and who says so."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.config.answer import Origin, SettingInForce, lint_in_force, read_in_force
from shardctl.verbs.config.view import origin_words
from shardctl.verbs.lint.context import Usage

FILE = Origin(source="file", file="/p/shardctl.yaml", line=3)


def in_force(*, ordered: bool = False, **given: Any) -> dict[str, SettingInForce]:
    origins = dict.fromkeys(given, FILE)
    settings = ReadSettings(**given)
    found = read_in_force(settings, origins, ordered=ordered)
    return {setting.name.removeprefix("read."): setting for setting in found}


def test_what_nobody_set_is_a_default_and_some_are_those_of_tfds() -> None:
    found = in_force()
    assert {setting.origin.source for setting in found.values()} == {"default"}
    assert found["cycle"].origin.by == "TFDS"
    assert found["epochs"].origin.by is None
    assert (found["cycle"].value, in_force(ordered=True)["cycle"].value) == (16, 1)


@pytest.mark.parametrize(
    ("given", "name", "by"),
    [
        ({"shuffle_seed": 1}, "shuffle_files", "read.shuffle_seed"),
        ({"shuffle_seed": 1}, "reshuffle", "read.shuffle_seed"),
        ({"shuffle_files": True, "global_seed": 3}, "reshuffle", "read.shuffle_files"),
        ({"buffer": 5, "buffer_seed": 3}, "buffer_reshuffle", "read.buffer"),
    ],
)
def test_what_another_setting_brings_along_names_it(
    given: dict[str, Any], name: str, by: str
) -> None:
    found = in_force(**given)[name]
    assert (found.value, found.given) == (True, None)
    assert found.origin == Origin(source="implied", by=by)


def test_what_was_written_is_kept_beside_what_it_comes_to() -> None:
    found = in_force(cycle="auto", cpus=96, shuffle_files=False, shuffle_seed=7)
    assert (found["cycle"].given, found["cycle"].value) == ("auto", 32)
    assert (found["cpus"].given, found["cpus"].value) == (96, 96)  # cycle reads it
    assert (found["shuffle_seed"].given, found["shuffle_seed"].value) == (7, None)  # nothing does
    assert {found[name].origin for name in ("cycle", "cpus", "shuffle_seed")} == {FILE}


def test_the_settings_of_lint_have_the_defaults_of_the_dataset() -> None:
    splits = (Split.even(name="test", num_examples=9, num_shards=1),)
    dataset = Dataset(name="d", splits=splits, file_format="array_record")
    settings = ReadSettings()
    found = lint_in_force({"ignore": ("SC001",)}, Usage(hosts=4), settings, dataset)
    assert (found["specs"], found["hosts"], found["as_data_source"]) == (["test"], 4, True)
    assert (found["ignore"], found["select"], found["eval"]) == (["SC001"], [], [])
    assert (found["fail_on"], found["autocache"]) == ("notice", True)
    unknown = lint_in_force({"hosts": 4}, Usage(hosts=4), settings, None)
    assert (unknown["specs"], unknown["hosts"], unknown["as_data_source"]) == (None, 4, None)


def test_where_a_spec_has_to_be_chosen_there_is_none() -> None:
    splits = tuple(Split.even(name=name, num_examples=9, num_shards=1) for name in ("a", "b"))
    dataset = Dataset(name="d", splits=splits)
    assert lint_in_force({}, Usage(), ReadSettings(), dataset)["specs"] is None


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (Origin(source="environment", by="SHARDCTL_DATASET"), "environment SHARDCTL_DATASET"),
        (Origin(source="file", file="/p/shardctl.yaml", line=2), "../shardctl.yaml line 2"),
        (Origin(source="file", file="/p/shardctl.yaml"), "../shardctl.yaml"),
        (Origin(source="folder"), "this folder"),
        (Origin(source="argument", by="buffer"), "argument buffer="),
        (Origin(source="implied", by="read.shuffle_seed"), "follows from read.shuffle_seed"),
        (Origin(source="implied"), "follows from the others"),
        (Origin(by="TFDS"), "default (TFDS's)"),
    ],
)
def test_an_origin_in_words(origin: Origin, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getcwd", lambda: "/p/a")
    assert origin_words(origin) == words
