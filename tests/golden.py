"""Texts that a test compares whole, each in a file beside the tests."""

from __future__ import annotations

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    """Fail unless a text is that of its file; SHARDCTL_GOLDEN=write writes the file anew.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "one.txt")
    >>> _ = file.write_text("a table")
    >>> assert_golden(file, "a table")
    """
    if os.environ.get("SHARDCTL_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"{path.name} differs; SHARDCTL_GOLDEN=write writes it anew"
