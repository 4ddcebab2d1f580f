"""What `lint:` in a shardctl.yaml says: which specs a project reads, how, and which rules count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError


def lint_arguments(document: Mapping[str, object], where: str) -> dict[str, Any]:
    """Return the arguments that the mapping holds; those that are None left out.

    Names may be written with `-` or `_`; what is a list may be a single value, and codes and seeds
    also one text with commas. `where` names the file in errors.

    >>> lint_arguments({"ignore": "SC003, SC035", "eval": ["train[90%:]"]}, "shardctl.yaml")
    {'ignore': ('SC003', 'SC035'), 'eval': ('train[90%:]',)}

    Raises:
        UsageError: an unknown name, or a value of another kind; the message says which.
    """
    arguments: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).replace("-", "_")
        if name not in _KINDS:
            raise UsageError(f"{where}: no setting {quoted(key)}; there are: {choices(_KINDS, 20)}")
        if name in arguments:
            raise UsageError(f"{where}: setting {quoted(key)} is there twice")
        if value is not None:
            arguments[name] = _KINDS[name](value, f"{where}: {name}")
    return arguments


def comma_separated(text: str) -> list[str]:
    """Return the parts of a text between commas, without blanks around them.

    >>> comma_separated("SC001, SC02")
    ['SC001', 'SC02']
    """
    return [part.strip() for part in text.split(",")]


def parse_seeds(text: str, what: str) -> tuple[int, ...]:
    """Return the seeds in a text with commas, of any size.

    >>> parse_seeds("0, -1,2147483647", "--seeds")
    (0, -1, 2147483647)
    """
    try:
        return tuple(map(int, comma_separated(text)))
    except ValueError:
        raise UsageError(f"{what} {quoted(text)}: whole numbers, with commas, are needed") from None


def _texts(value: object, what: str) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) and item for item in items):
        raise UsageError(f"{what} {quoted(value)}: text, or a list of texts, is needed")
    return tuple(items)


def _codes(value: object, what: str) -> tuple[str, ...]:
    return tuple(code for text in _texts(value, what) for code in comma_separated(text))


def _seeds(value: object, what: str) -> tuple[int, ...]:
    if isinstance(value, str):
        return parse_seeds(value, what)
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise UsageError(f"{what} {quoted(value)}: a list of whole numbers is needed")
    return tuple(items)


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{what} {quoted(value)}: a whole number, at least 1, is needed")
    return value


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{what} {quoted(value)}: true or false is needed")
    return value


_KINDS: dict[str, Callable[[object, str], object]] = {
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
}
