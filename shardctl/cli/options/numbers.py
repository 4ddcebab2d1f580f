"""Option values: text to numbers, refused with the option, the value and the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardctl.core.text import quoted
from shardctl.errors import UsageError


def whole_number(
    option: str, *, minimum: int | None = None, maximum: int | None = None
) -> Callable[[Any], int]:
    """Return a parser of whole numbers for an option; `_` may group digits, as in a spec.

    >>> whole_number("--take")("1_000")
    1000
    """
    rule = "a whole number is needed"
    if minimum is not None:
        rule = f"a whole number, at least {minimum}, is needed"
    if maximum is not None:
        rule = f"a whole number from {minimum} to {maximum} is needed"

    def parse(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            raise UsageError(f"{option} {quoted(text)}: {rule}") from None
        if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
            raise UsageError(f"{option} {quoted(text)}: {rule}")
        return number

    return parse
