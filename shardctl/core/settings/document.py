"""Read settings as the mapping that is in shardctl.yaml, in answers, plans and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardctl.core.phrase import Argument, Placeholder, spelled
from shardctl.core.settings.names import settings_from_document
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTING_BY_FIELD, SETTINGS
from shardctl.core.text import printable, quoted
from shardctl.errors import UsageError

SettingsDocument = dict[str, Any]


def settings_in_force(settings: ReadSettings, *, ordered: bool) -> SettingsDocument:
    """Return every setting by its name, with the defaults that are in force.

    What no part of the pipeline reads is None; who reads is named where it is not TFDS's reader.
    Read back it gives the same order.

    >>> document = settings_in_force(ReadSettings(shuffle_seed=32), ordered=False)
    >>> document["cycle"], document["shuffle_files"], document["reshuffle"], document["buffer"]
    (16, True, True, None)
    """
    document = {}
    for setting in SETTINGS:
        value = setting.value_in_force(settings, ordered=ordered)
        is_said = setting.field != "loader" or not settings.reader.is_default
        if is_said and (value is not None or not setting.is_rare):
            document[setting.name] = value
    return document


def settings_of_document(document: Mapping[str, object], where: str) -> ReadSettings:
    """Return the settings that a mapping holds; `where` names the mapping in errors.

    >>> settings_of_document({"cycle": 0}, "pipeline")
    Traceback (most recent call last):
    ...
    shardctl.errors.UsageError: pipeline.cycle: 0: a number from 1 to 9223372036854775807 is needed

    Raises:
        UsageError: an unknown name, a value outside its range, or two that exclude each other.
    """
    try:
        return ReadSettings(**settings_from_document(document))
    except UsageError as error:
        raise UsageError(as_keys(error, where)) from None


def as_keys(text: object, where: str) -> str:
    """Return a text, or that of an error, that names settings as keys of the mapping `where`.

    >>> from shardctl.core.phrase import phrase
    >>> as_keys(phrase("{cycle=auto} needs {cpus=N}"), "read")
    'read.cycle: auto needs read.cpus: N'
    """
    return spelled(text, lambda argument: key_of(argument, where))


def key_of(argument: Argument, where: str) -> str:
    """Return an argument as a key of the mapping `where`, with its value where it has one."""
    setting = SETTING_BY_FIELD.get(argument.name)
    name = f"{where}.{printable(argument.name if setting is None else setting.name)}"
    return f"{name}: {_yaml(argument.value)}" if argument.has_value else name


def _yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not isinstance(value, Placeholder) and not value.isidentifier():
        return quoted(value)
    return printable(str(value), 80)
