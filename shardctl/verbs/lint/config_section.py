"""What `lint:` in a shardctl.yaml says: which specs a project reads, how, and which rules count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shardctl.base.phrase import option
from shardctl.base.text import choices, nearest_first
from shardctl.errors import UsageError
from shardctl.settings.names import no_such_setting
from shardctl.verbs.lint.rule import SEVERITIES


def lint_arguments(document: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments that the mapping holds; those that are None left out.

    Names may be written with `-` or `_`; what is a list may be a single value, and codes and seeds
    also one text with commas.

    >>> lint_arguments({"ignore": "SC003, SC035", "eval": ["train[90%:]"]})
    {'ignore': ('SC003', 'SC035'), 'eval': ('train[90%:]',)}

    Raises:
        UsageError: an unknown name, or a value of another kind; the message says which.
    """
    arguments: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).replace("-", "_")
        if name not in _KINDS:
            raise no_such_setting(key, _KINDS)
        if name in arguments:
            raise UsageError(f"{option(str(key))}: the setting is there twice")
        if value is None:
            continue
        try:
            arguments[name] = _KINDS[name](value)
        except UsageError as error:
            given = option(name, value, given=True)
            raise UsageError(f"{given}: {error}") from None
    return arguments


def comma_separated(text: str) -> list[str]:
    """Return the parts of a text between commas, without blanks around them.

    >>> comma_separated("SC001, SC02")
    ['SC001', 'SC02']
    """
    return [part.strip() for part in text.split(",")]


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds in a text with commas, of any size.

    >>> parse_seeds("0, -1,2147483647")
    (0, -1, 2147483647)
    """
    try:
        return tuple(map(int, comma_separated(text)))
    except ValueError:
        raise UsageError("whole numbers, with commas, are needed") from None


def _list_of(kind: type, needed: str) -> Callable[[object], tuple[Any, ...]]:
    """Return what takes a value of a kind, or a list of such values."""

    def take(value: object) -> tuple[Any, ...]:
        items = value if isinstance(value, list) else [value]
        if not all(type(item) is kind and item != "" for item in items):
            raise UsageError(f"{needed} is needed")
        return tuple(items)

    return take


_texts = _list_of(str, "text, or a list of texts,")
_numbers = _list_of(int, "a list of whole numbers")


def _codes(value: object) -> tuple[str, ...]:
    return tuple(code for text in _texts(value) for code in comma_separated(text))


def _seeds(value: object) -> tuple[int, ...]:
    return parse_seeds(value) if isinstance(value, str) else _numbers(value)


def _severity(value: object) -> str:
    if value not in SEVERITIES:
        raise UsageError(f"choose from {choices(nearest_first(value, SEVERITIES))}")
    return str(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError("a whole number, at least 1, is needed")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError("true or false is needed")
    return value


_KINDS: dict[str, Callable[[object], object]] = {
    "specs": _texts,
    "eval": _texts,
    "hosts": _count,
    "take": _count,
    "as_data_source": _flag,
    "assert_cardinality": _flag,
    "autocache": _flag,
    "seeds": _seeds,
    "open_files": _count,
    "select": _codes,
    "ignore": _codes,
    "fail_on": _severity,
}
LINT_KEYS = tuple(_KINDS)
