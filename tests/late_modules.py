"""Modules of other libraries that are imported when a test uses them, not when it is collected."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class LateModule:
    """A module that is imported once a public name of it is asked for; pytest asks for others."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def needs(*names: str, reason: str) -> pytest.MarkDecorator:
    """Return a mark that skips tests where a package is not installed, and imports none."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=reason)
