"""Text that names arguments, spelled in the language of whoever reads it.

From Python an argument is `cycle="auto"`, on the command line `--cycle auto`, in a file of settings
`cycle: auto`. A phrase is the Python text, a `str` like any other, and remembers its arguments, so
that the edge that shows it can spell them its own way.

Only the template of a phrase is read for markers, and it is a literal in our source (a test looks).
What is filled in stays what it is: a split named `{cycle}` is no argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from shardctl.core.text import printable
from shardctl.errors import UsageError


class Placeholder(str):
    """What stands for a value that the reader has to choose, as the N of `cpus=N`."""


class _Absent(Enum):
    """No value; None is one. A member stays the same when an error is pickled or copied."""

    ABSENT = "absent"


@dataclass(frozen=True, eq=False)
class Argument:
    """An argument by the name it has in Python, with a value or without.

    `given` marks a value that the caller chose and that is at fault; it may be any text.

    >>> print(Argument("cycle", "auto"), Argument("cpus", Placeholder("N")), Argument("reverse"))
    cycle="auto" cpus=N reverse
    """

    name: str
    value: Any = _Absent.ABSENT
    given: bool = False

    @property
    def has_value(self) -> bool:
        """Whether more than the name is meant; the value may be None."""
        return self.value is not _Absent.ABSENT

    def __str__(self) -> str:
        name = printable(self.name)
        return f"{name}={_python(self.value)}" if self.has_value else name


def _python(value: object) -> str:
    if isinstance(value, Placeholder):
        return value
    if isinstance(value, str):
        return '"' + printable(value, 80).replace('"', '\\"') + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    return printable(repr(value), 80)


class Phrase(str):
    """A text in its Python form that knows which arguments it names.

    Put into an f-string it is that form for good; `phrase` composes phrases without losing more.
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, parts: Iterable[str | Argument]) -> Phrase:
        """Join parts, of which text is taken as it is."""
        kept = tuple(parts)
        made = super().__new__(cls, "".join(map(str, kept)))
        made.parts = kept
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.parts,)


# {} and {:,} take the next value; {name} is an argument, {name=value} one with a value, {name=} one
# whose value is given by keyword, and {name!} such a one that is at fault.
_MARKER = re.compile(
    r"\{(?:(?P<spec>:[^{}]*)?|(?P<name>[a-z_]+)(?:(?P<given>!)|=(?P<value>[^{}]*))?)\}"
)
_PLACEHOLDER = re.compile(r"[A-Z]+(/[A-Z]+)?")


def phrase(template: str, *values: object, **arguments: object) -> Phrase:
    """Return the text of a template, whose arguments can be spelled in other ways as well.

    Values may be phrases, arguments and errors, which keep what they know.

    >>> text = phrase("{cycle=auto} needs {cpus=N}, not {cpus!}", cpus=0)
    >>> text
    'cycle="auto" needs cpus=N, not cpus=0'
    >>> spelled(text, lambda argument: f"--{argument.name}")
    '--cycle needs --cpus, not --cpus'
    >>> spelled(phrase("no split {}", "{cycle}"), lambda argument: "never")
    'no split {cycle}'
    """
    return Phrase(_filled(template, iter(values), arguments))


def misuse(template: str, *values: object, **arguments: object) -> UsageError:
    """Return the error of a value that breaks a rule, said by a phrase.

    >>> raise misuse("{cycle=}: a number is needed", cycle="x")
    Traceback (most recent call last):
    shardctl.errors.UsageError: cycle="x": a number is needed
    """
    return UsageError(phrase(template, *values, **arguments))


def _filled(
    template: str, values: Iterator[object], arguments: dict[str, object]
) -> Iterator[str | Argument]:
    at = 0
    for marker in _MARKER.finditer(template):
        yield template[at : marker.start()]
        at = marker.end()
        name = marker["name"]
        if name is None:
            yield from _parts(next(values), (marker["spec"] or ":")[1:])
        elif marker["given"]:
            yield Argument(name, arguments[name], given=True)
        elif marker["value"] is None:
            yield Argument(name)
        else:
            text = marker["value"]
            yield Argument(name, _literal(text) if text else arguments[name])
    yield template[at:]


def _parts(value: object, spec: str = "") -> Iterator[str | Argument]:
    if isinstance(value, BaseException):
        value = value.args[0] if value.args and isinstance(value.args[0], Phrase) else str(value)
    if isinstance(value, Phrase):
        yield from value.parts
    elif isinstance(value, Argument):
        yield value
    else:
        yield format(value, spec)


def _literal(text: str) -> object:
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("["):
        return text[1:-1].split(",")
    if text.lstrip("-").isdecimal():
        return int(text)
    return Placeholder(text) if _PLACEHOLDER.fullmatch(text) else text


def listed(items: Iterable[str | Argument], between: str = " and ") -> Phrase:
    """Return items one after the other.

    >>> listed([Argument("reverse"), Argument("block", 2)])
    'reverse and block=2'
    """
    parts: list[str | Argument] = []
    for item in items:
        parts += [between, *_parts(item)] if parts else _parts(item)
    return Phrase(parts)


def spelled(text: object, spell: Callable[[Argument], str]) -> str:
    """Return a text, or that of an error, with its arguments spelled by a function."""
    return "".join(spell(part) if isinstance(part, Argument) else part for part in _parts(text))


def named_arguments(text: object) -> tuple[Argument, ...]:
    """Return the arguments that a text, or an error, names, in order."""
    return tuple(part for part in _parts(text) if isinstance(part, Argument))
