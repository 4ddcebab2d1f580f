"""Makes the man pages that the wheel installs: a build hook of hatch.

They are what `shardctl help --man-pages` writes, so that they say what `-h` says. The program
itself is asked, in a process of its own: for its pages it needs Typer and nothing else.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPages(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `share/man` to what a wheel puts beside the program."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages into a folder that lasts until the wheel is built."""
        self._folder = TemporaryDirectory()
        before = os.environ.get("PYTHONPATH")  # where pip has put what the build needs
        path = os.pathsep.join(filter(None, [self.root, before]))
        subprocess.run(  # noqa: S603  # the program that is built
            [sys.executable, "-m", "shardctl", "help", "--man-pages", self._folder.name],
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            check=True,
        )
        for page in sorted(Path(self._folder.name).glob("man*/*")):
            installed = f"share/man/{page.parent.name}/{page.name}"
            build_data["shared_data"][str(page)] = installed

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the pages, which the wheel holds now."""
        self._folder.cleanup()
