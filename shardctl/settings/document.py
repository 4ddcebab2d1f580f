"""Read settings as the mapping that is in shardctl.yaml, in answers, plans and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardctl.errors import UsageError
from shardctl.settings.names import settings_from_document
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTINGS

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
    shardctl.errors.UsageError: pipeline: cycle=0: a number from 1 to 9223372036854775807 is needed

    Raises:
        UsageError: an unknown name, a value outside its range, or two that exclude each other.
    """
    try:
        return ReadSettings(**settings_from_document(document))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
