"""The version that pages and manuals name."""

from __future__ import annotations

import shardctl
from shardctl.files.version import own_version


def test_the_version_is_that_of_the_package() -> None:
    assert own_version() == shardctl.__version__
