"""What of a page overlaps, is cut or sticks out, by the boxes in which its text is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Boxes of text have the height of a whole font, of which letters fill the middle.
_FAULTS = Path(__file__).with_suffix(".js").read_text("utf-8")


def faults(page: Any) -> list[str]:
    """Return what of a page overlaps, is cut or sticks out, a line each; none where all is well."""
    found: list[str] = page.evaluate(_FAULTS)
    return found
