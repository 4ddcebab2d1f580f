"""Messages: they name options as they are typed, whoever reads them: `--cycle auto`.

A setting is called the same in shardctl.yaml and in Python, where `-` is `_`.

Only the template of a phrase is read for markers, and it is a literal in our source (a test looks).
What is filled in stays what it is: a split named `{cycle}` is no option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardctl.base.text import printable, quoted
from shardctl.errors import UsageError

# Arguments of Python whose options have other names.
OPTION_BY_ARGUMENT = {
    "code": "--explain",
    "checksums": "--crc",
    "evaluated": "--eval",
    "file_format": "--format-of-files",
    "max_open_files": "--open-files",
    "num_devices": "--devices",  # as the fields of answers are called
    "num_hosts": "--hosts",
    "try_autocache": "--autocache",
}
# Values that are said in another way.
_SAID = {
    ("remainder", "pad"): "--pad",
    ("seen", "CODES"): "--seen FILE",
    ("take", "all"): "--take -1",
}
# {} and {:,} take the next value; {name} is an option, {name=value} one with a value, {name=} one
# whose value is given by keyword, and {name!} such a one that is at fault.
_MARKER = re.compile(
    r"\{(?:(?P<spec>:[^{}]*)?|(?P<name>[a-z_]+)(?:(?P<given>!)|=(?P<value>[^{}]*))?)\}"
)


_TRUTHS = {"True": True, "False": False}


def option_name(argument: str) -> str:
    """Return the option that sets an argument, by the argument's name."""
    return OPTION_BY_ARGUMENT.get(argument) or f"--{printable(argument).replace('_', '-')}"


def option(argument: str, *values: object, given: bool = False) -> str:
    """Return an option as it is typed, with a value or without.

    `given` marks a value that the caller chose and that is at fault; it may be any text.

    >>> option("cycle", "auto"), option("file_order"), option("reshuffle", False)
    ('--cycle auto', '--file-order', '--no-reshuffle')
    >>> option("pass_index", -1, given=True), option("split", {"train": "a-*", "test": "b-*"})
    ("--pass-index '-1'", "--split train='a-*' --split test='b-*'")
    """
    name = option_name(argument)
    if not values:
        return name
    value = values[0]
    if isinstance(value, str) and (argument, value) in _SAID:
        return _SAID[argument, value]
    if given:
        return f"{name} {quoted(value, 80 if isinstance(value, str) else 24)}"
    if isinstance(value, bool):
        return name if value else f"--no-{name.removeprefix('--')}"
    if isinstance(value, Mapping):  # given once for each of its items
        return " ".join(f"{name} {key}={quoted(item, 200)}" for key, item in value.items())
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{name} {printable(text, 80)}"


def phrase(template: str, *values: object, **arguments: object) -> str:
    """Return the text of a template that names options.

    >>> phrase("{cycle=auto} needs {cpus=N}, not {cpus!}: {}", "{cycle}", cpus=0)
    "--cycle auto needs --cpus N, not --cpus '0': {cycle}"
    """
    rest = iter(values)

    def filled(marker: re.Match[str]) -> str:
        name, text = marker["name"], marker["value"]
        if name is None:
            return format(next(rest), (marker["spec"] or ":")[1:])
        if marker["given"]:
            return option(name, arguments[name], given=True)
        if text is None:
            return option(name)
        return option(name, _TRUTHS.get(text, text) if text else arguments[name])

    return _MARKER.sub(filled, template)


def refused(template: str, *values: object, **arguments: object) -> UsageError:
    """Return the error that says a phrase, to be raised."""
    return UsageError(phrase(template, *values, **arguments))


def check_numbers(most: int, **numbers: int | None) -> None:
    """Refuse arguments that are no numbers from 1 to `most`; None is not given.

    >>> check_numbers(8, hosts=3, devices=None)
    >>> check_numbers(8, hosts=9)
    Traceback (most recent call last):
    shardctl.errors.UsageError: --hosts '9': a number from 1 to 8 is needed
    """
    for name, number in numbers.items():
        if number is not None and not 1 <= number <= most:
            given = option(name, number, given=True)
            raise refused("{}: a number from 1 to {} is needed", given, most)
