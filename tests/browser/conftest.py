"""A real browser for tests of pages: Chromium of this machine, started once a process, offline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.chromium import started

# Tests have an environment without these, see tests/conftest.py.
_REQUIRED = os.environ.get("SHARDCTL_BROWSER") == "required"
_CHROMIUM = os.environ.get("SHARDCTL_CHROMIUM")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser of Playwright; without one tests are skipped, or fail where it is required."""
    with started(_CHROMIUM) as found:
        if isinstance(found, str):
            if _REQUIRED:
                pytest.fail(f"SHARDCTL_BROWSER=required, and there is no browser: {found}")
            pytest.skip(found)
        yield found
