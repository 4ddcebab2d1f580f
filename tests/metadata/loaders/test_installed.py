"""Which version is installed."""

from __future__ import annotations

import subprocess
import sys

from shardctl.metadata.loader_versions import installed_version


def test_a_version_is_read_without_importing_the_package() -> None:
    program = (
        "import sys; from shardctl.metadata.loader_versions import installed_version as v;"
        "assert v('numpy'); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"False\n"


def test_what_is_not_installed_has_none() -> None:
    assert installed_version("no-such-package") is None
