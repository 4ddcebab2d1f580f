"""Pictures of answers in a notebook, above their tables."""

from __future__ import annotations

import base64
from html import escape
from typing import Any


def pictures_html(answer: Any) -> str:
    """Return the pictures of an answer for a notebook; nothing where it has none.

    They are one image: its ids, styles and background are its own, so neither a theme nor another
    answer on the page changes it, and it is light or dark as the browser is. What fails to draw
    leaves the table as it is.
    """
    try:
        return _image(answer)
    except Exception:  # a picture is an extra: whatever is wrong with it, the numbers are not
        return ""


def _image(answer: Any) -> str:
    from shardctl.core.text import printable
    from shardctl.rendering.pictures.drawers import pictures_of
    from shardctl.rendering.pictures.formats.svg import svg_file
    from shardctl.rendering.pictures.picture import MOST_WORDS

    pictures = pictures_of(answer)
    if not pictures:
        return ""
    svg = "".join(svg_file(pictures)).encode()
    said = " ".join(f"{picture.title}: {picture.alternative}" for picture in pictures)
    return (
        '<img style="display:block;max-width:100%;height:auto;margin:0 0 1em" '
        f'alt="{escape(printable(said, MOST_WORDS))}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'
    )
