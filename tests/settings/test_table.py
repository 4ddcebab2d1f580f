"""The table of settings: an entry reaches every place that lists settings."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.phrase import option_name
from shardctl.cli.options.order import OrderOptions
from shardctl.draw.step_rows import settings_words
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.settings import read_settings
from shardctl.settings.names import settings_from_document
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.settings.table import SETTINGS, BufferSize, Setting, SettingKind, Switch, WholeNumber
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages
from shardctl.verbs.diff.causes import setting_causes

REPOSITORY = Path(__file__).resolve().parents[2]

# What else has to be set for a setting to be taken, and values of each; the first is no default.
NEEDS: dict[str, dict[str, Any]] = {
    "cpus": {"cycle": "auto"},
    "shuffle_seed": {"shuffle_files": True},
    "reshuffle": {"shuffle_seed": 1},
    "buffer_seed": {"buffer": 5},
    "buffer_reshuffle": {"buffer": 5},
    "host_by": {"host": Host(index=0, count=2)},
    "drop_remainder": {"batch": 4},
    "loader_version": {"loader": "torch"},
    **{
        setting.field: {"loader": next((n for n in LOADERS if setting.is_read_by(n)), "hf")}
        for setting in SETTINGS
        if setting.about == "loader" and not setting.field.startswith("loader")
    },
}
VALUES: dict[str, tuple[Any, ...]] = {
    "cycle": (3, "auto"),
    "buffer": (7, -2),
    "file_order": (("b", "a"),),
    "host": (Host(index=1, count=3),),
    "host_by": ("files", "examples"),
    "stages": (parse_stages("repeat(2) | shuffle(9, seed=3)"), parse_stages("train | cache")),
    "loop": ("keras-fit",),
    "reshuffle": (False, True),
    "buffer_reshuffle": (False, True),
    "loader": ("torch",),
    "loader_version": ("2.12.0", "2.9"),
    "shuffle": (True, False),
    "streaming": (False, True),
    "arrow": (False, True),
    "before_shuffle": ("map", "select_columns"),
}


def values_of(setting: Setting) -> tuple[Any, ...]:
    if setting.name in VALUES:
        return VALUES[setting.name]
    default = {field.name: field.default for field in fields(ReadSettings)}[setting.field]
    return (default is not True, True, False) if isinstance(setting.kind, Switch) else (5, 1)


def settings_with(setting: Setting, value: Any) -> ReadSettings:
    needed = {**NEEDS.get(setting.name, {}), setting.field: value}
    if needed.get("cycle") == "auto":
        needed.setdefault("cpus", 7)
    return ReadSettings(**needed)


each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=[s.name for s in SETTINGS])


def test_the_table_the_fields_the_options_and_the_documents_list_the_same() -> None:
    names = [setting.field for setting in SETTINGS]
    assert names == [field.name for field in fields(ReadSettings)]
    assert names == [parameter.name for parameter in OrderOptions.parameters()]
    in_force = settings_in_force(ReadSettings(), ordered=False)
    assert [s.name for s in SETTINGS if not s.is_rare] == list(in_force)


@each_setting
def test_an_entry_says_what_it_is(setting: Setting) -> None:
    assert setting.help[0].isupper() or setting.help.startswith(("ds.", "tf"))
    assert setting.help.endswith(".")
    assert setting.stands_for
    assert setting.kind.metavar or isinstance(setting.kind, Switch)
    assert option_name(setting.field) == setting.option


@each_setting
def test_the_class_documents_it(setting: Setting) -> None:
    """Beside the field there is a line, in which the words of TFDS or tf.data stand."""
    lines = inspect.cleandoc(ReadSettings.__doc__ or "")
    assert re.search(rf"^([a-z_]+, )*{setting.field}(, [a-z_]+)*:", lines, re.MULTILINE)
    source = ast.parse(inspect.getsource(read_settings))
    annotated = {n.target.id for n in ast.walk(source) if isinstance(n, ast.AnnAssign)}  # type: ignore[union-attr]
    assert setting.field in annotated


@each_setting
def test_the_guide_names_its_option(setting: Setting) -> None:
    guide = (REPOSITORY / "shardctl" / "guide" / "orders.md").read_text("utf-8")
    assert re.search(rf"`[^`]*--(no-)?{setting.option.removeprefix('--')}\b(?!-)", guide)


@each_setting
def test_a_default_named_in_the_help_is_that_of_the_field(setting: Setting) -> None:
    default = {field.name: field.default for field in fields(ReadSettings)}[setting.field]
    said = re.search(r"\[default: ([\w-]+)\]", setting.help)
    if said is not None and said[1] != "yes":
        assert said[1] == str(default)


@each_setting
def test_a_document_gives_back_what_is_set(setting: Setting) -> None:
    for value in values_of(setting):
        if setting.name == "cycle" and value == "auto":
            continue  # a document has the number that it comes to
        settings = settings_with(setting, value)
        shown = settings_in_force(settings, ordered=False)
        if setting.name != "cpus":
            assert settings_from_document(shown)[setting.field] == value
        stated = {setting.name: setting.kind.to_document(value)}
        assert settings_from_document(stated) == {setting.field: value}


# What is in force with a setting besides itself.
WITH = {"shuffle_files": ["reshuffle"], "buffer": ["buffer_reshuffle"]}
SILENT = {"deterministic", "buffer_reshuffle"}  # no line of an answer names them


@each_setting
def test_a_change_is_a_cause_and_is_said(setting: Setting) -> None:
    value = values_of(setting)[0]
    changed = settings_in_force(settings_with(setting, value), ordered=False)
    needed = dict(NEEDS.get(setting.name, {}))
    if setting.name == "cpus":
        needed["cpus"] = 1
    before = settings_in_force(ReadSettings(**needed), ordered=False)
    if setting.name == "loader":  # of the others the first decides
        assert [cause.name for cause in setting_causes(before, changed)] == ["loader"]
        assert settings_words(before) != settings_words(changed)
        return
    named = [cause.name for cause in setting_causes(before, changed)]
    # CPUs are in force as the cycle length that they come to.
    assert named == [
        "cycle" if setting.name == "cpus" else setting.name,
        *WITH.get(setting.name, ()),
    ]
    if setting.name not in SILENT:
        assert settings_words(before) != settings_words(changed)


@each_setting
def test_none_is_taken_where_it_is_the_default_and_only_there(setting: Setting) -> None:
    default = {field.name: field.default for field in fields(ReadSettings)}[setting.field]
    nothing: dict[str, Any] = {setting.field: None}
    if default is None:
        assert getattr(ReadSettings(**nothing), setting.field) is None
        return
    with pytest.raises(UsageError, match=rf"^{setting.field}=None: "):
        ReadSettings(**nothing)


WRONG: dict[type[SettingKind], tuple[Any, ...]] = {
    WholeNumber: ("3", 1.5, True, [1]),
    BufferSize: ("3", 1.5, False, 0, -1, -3),
    Switch: ("no", 1, 0.0, []),
}


@each_setting
def test_a_value_of_another_kind_is_refused(setting: Setting) -> None:
    for wrong in WRONG.get(type(setting.kind), (3, True, 2.5)):
        with pytest.raises(UsageError, match=rf"^{setting.field}=.*: .*"):
            ReadSettings(**{**NEEDS.get(setting.name, {}), setting.field: wrong})


def test_a_whole_number_of_numpy_is_one() -> None:
    np = pytest.importorskip("numpy")
    assert ReadSettings(batch=np.int32(4)).batch == 4
    with pytest.raises(UsageError, match="a number from 1"):
        ReadSettings(batch=np.int64(0))
