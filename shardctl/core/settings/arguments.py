"""A mapping of settings as the arguments of `ReadSettings`, whatever names they have there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from shardctl.core.nearness import did_you_mean
from shardctl.core.phrase import Argument, phrase
from shardctl.core.settings.names import SETTING_BY_ALIAS, main_names
from shardctl.core.settings.table import SETTING_BY_NAME
from shardctl.core.text import choices
from shardctl.errors import UsageError


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
