"""Read settings as the mapping that is in shardctl.yaml, in answers, plans and snapshots."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from shardctl.core.nearness import did_you_mean
from shardctl.core.phrase import Argument, Placeholder, phrase, spelled
from shardctl.core.settings.names import SETTING_BY_ALIAS, main_names
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTING_BY_FIELD, SETTING_BY_NAME, SETTINGS
from shardctl.core.text import choices, printable, quoted
from shardctl.errors import UsageError

SettingsDocument = dict[str, Any]


def settings_in_force(settings: ReadSettings, *, ordered: bool) -> SettingsDocument:
    """Return every setting by its name, with the defaults that are in force.

    What no part of the pipeline reads is None. Read back it gives the same order.

    >>> document = settings_in_force(ReadSettings(shuffle_seed=32), ordered=False)
    >>> document["cycle"], document["shuffle_files"], document["reshuffle"], document["buffer"]
    (16, True, True, None)
    """
    document = {}
    for setting in SETTINGS:
        value = setting.value_in_force(settings, ordered=ordered)
        if value is not None or not setting.is_rare:
            document[setting.name] = value
    return document


def settings_from_document(document: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of `ReadSettings` that a mapping holds; those that are None left out.

    Names are those of `main_names`. Whether values are in range and fit together is seen when they
    are put into `ReadSettings`: another may take their place before.

    Raises:
        UsageError: an unknown name, two of one setting, or a value of another kind; `as_keys`
            spells it as it is there.

    >>> settings_from_document({"shuffle-seed": 32, "batch_size": 8, "host": "1/4"})
    {'shuffle_seed': 32, 'batch': 8, 'host': Host(index=1, count=4)}
    """
    arguments: dict[str, Any] = {}
    for key, value in main_names(document).items():
        setting = SETTING_BY_NAME.get(key)
        if setting is None:
            raise no_such_setting(key, SETTING_BY_NAME, SETTING_BY_ALIAS)
        if value is None:
            continue
        try:
            arguments[setting.field] = setting.kind.typed(setting.kind.from_document(value))
        except UsageError as error:
            given = Argument(setting.field, value, given=True)
            raise UsageError(phrase("{}: {}", given, error)) from None
    return arguments


def no_such_setting(
    key: object, names: Collection[str], others: Collection[str] = ()
) -> UsageError:
    """Return the error of a key that is none of the names; `others` are understood as well."""
    said, near = choices(names, len(names)), did_you_mean(key, [*names, *others])
    return UsageError(
        phrase("{}: no such setting; {}there are: {}", Argument(str(key)), near, said)
    )


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
