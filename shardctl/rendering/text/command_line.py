"""Texts that name arguments, spelled as on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from shardctl.core.phrase import Argument, Placeholder, spelled
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.core.text import printable, quoted

# Arguments of the functions whose options have other names; those of settings are in their table.
OPTION_BY_ARGUMENT = {
    "code": "--explain",
    "checksums": "--crc",
    "evaluated": "--eval",
    "file_format": "--format-of-files",
    "max_open_files": "--open-files",
    "num_classes": "--classes",
    "num_devices": "--devices",  # as the fields of answers are called
    "num_hosts": "--hosts",
    "try_autocache": "--autocache",
}
# Values that the command line says in another way.
_SAID = {
    ("remainder", "pad"): "--pad",
    ("seen", "CODES"): "--seen FILE",
    ("take", "all"): "--take -1",
}


def as_options(text: object) -> str:
    """Return a text, or that of an error, with its arguments spelled as options.

    >>> from shardctl.core.phrase import phrase
    >>> as_options(phrase("{cycle=auto} needs {cpus=N}; {pass_index!}, {reshuffle=False}",
    ...                   pass_index=-1))
    "--cycle auto needs --cpus N; --pass '-1', --no-reshuffle"
    """
    return spelled(text, option_of)


def option_of(argument: Argument) -> str:
    """Return an argument as it is written on the command line.

    >>> option_of(Argument("ignore", ["SC014", "SC02"])), option_of(Argument("file_order"))
    ('--ignore SC014,SC02', '--file-order')
    >>> option_of(Argument("split", {"train": "a-*", "test": "b-*"}))
    "--split train='a-*' --split test='b-*'"
    """
    value = argument.value if argument.has_value else None
    if isinstance(value, str) and (argument.name, value) in _SAID:
        return _SAID[argument.name, str(value)]
    name = option_name(argument.name)
    if not argument.has_value:
        return name
    if argument.given:
        return f"{name} {quoted(value, 80 if isinstance(value, str) else 24)}"
    if isinstance(value, bool):
        return name if value else f"--no-{name.removeprefix('--')}"
    if isinstance(value, list):
        return f"{name} {','.join(map(str, value))}"
    if isinstance(value, Mapping):  # given once for each of its items
        return " ".join(f"{name} {key}={quoted(item, 200)}" for key, item in value.items())
    return f"{name} {value if isinstance(value, Placeholder) else printable(str(value), 80)}"


def option_name(argument: str) -> str:
    """Return the option that sets an argument, by the argument's name."""
    if argument in SETTING_BY_FIELD:
        return SETTING_BY_FIELD[argument].option
    return OPTION_BY_ARGUMENT.get(argument) or f"--{printable(argument).replace('_', '-')}"
