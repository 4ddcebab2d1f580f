"""Texts that name arguments, spelled as on the command line."""

from __future__ import annotations

from shardctl.core.phrase import option as option_of
from shardctl.core.phrase import option_name

__all__ = ["as_options", "option_name", "option_of"]


def as_options(text: object) -> str:
    """Return a text, or that of an error."""
    return str(text)
