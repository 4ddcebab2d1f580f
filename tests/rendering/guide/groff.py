"""What groff shows of a man page."""

from __future__ import annotations

import shutil
import subprocess

import pytest

needs_groff = pytest.mark.skipif(shutil.which("groff") is None, reason="groff shows the pages")


def shown(page: str) -> str:
    """Return a page as groff lays it out; it has no warning for it."""
    ran = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-c", "-rLL=78n", "-rHY=0"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == ""
    return without_overstrikes(ran.stdout)


def without_overstrikes(text: str) -> str:
    """Return text of a printer that strikes twice for bold, as it is read."""
    made: list[str] = []
    for char in text:
        if char == "\b":
            made.pop()
        else:
            made.append(char)
    return "".join(made)
