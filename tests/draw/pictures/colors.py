"""The colours of pictures, light and dark, by the names of their classes."""

from __future__ import annotations

import re

from shardctl.draw.svg import STYLE

LIGHT, DARK = (
    dict(re.findall(r"\.picture \.(\w+)\{(?:fill|stroke):(#\w+)\}", part))
    for part in STYLE.split("@media screen and (prefers-color-scheme:dark)")
)
