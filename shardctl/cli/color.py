"""Whether what is written is coloured: decided here and nowhere else, for stdout and stderr each.

The first of these that says something decides, as it does in Rich, CMake and ripgrep:
`--color always|never`; `NO_COLOR` (https://no-color.org), which is set and not empty: none;
`FORCE_COLOR` (https://force-color.org) or `CLICOLOR_FORCE`, set and neither empty nor 0: colour,
also where TERM is dumb, as it is on CI; TERM=dumb: none; else colour on a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

OPTION = "--color"
CHOICES = ("auto", "always", "never")
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")


class _Choice:
    """What `--color` says; kept from the first word on, since errors come before options."""

    when = "auto"


_CHOICE = _Choice()


def choose(arguments: Sequence[str]) -> None:
    """Keep what `--color` says among arguments, the last one where there are several."""
    _CHOICE.when = "auto"
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        said = value if equals else following
        if option == OPTION and said in CHOICES:  # any other is refused with all other options
            _CHOICE.when = said


def before_command(arguments: Sequence[str]) -> int:
    """Return how many words at the start are `--color` and its value.

    >>> before_command(["--color", "never", "--color=auto", "plan"]), before_command(["--color"])
    (3, 1)
    """
    count = 0
    while count < len(arguments) and arguments[count].partition("=")[0] == OPTION:
        count += 1 if "=" in arguments[count] else 2
    return min(count, len(arguments))


def behind_command(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a `--color` that stands before the command behind it.

    Without a command they ask for the help page, as no arguments do.

    >>> behind_command(["--color", "never", "plan", "train"])
    ['plan', '--color', 'never', 'train']
    """
    count = before_command(arguments)
    if count == len(arguments):
        has_value = count and arguments[-1] != OPTION
        return [*arguments, "--help"] if has_value else list(arguments)
    if arguments[count].startswith("-"):
        return list(arguments)
    return [arguments[count], *arguments[:count], *arguments[count + 1 :]]


def is_colored(stream: TextIO | None) -> bool:
    """Return whether text for a stream is coloured; None is a stream that is closed."""
    if stream is None or _CHOICE.when == "never":
        return False
    if _CHOICE.when == "always":
        return True
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in ("", "0") for name in _FORCING):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()
