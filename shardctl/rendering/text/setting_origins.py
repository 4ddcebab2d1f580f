"""Where settings were set, for those who are to change one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SettingOrigins:
    """Where settings were set: lines, from 1, of a file, by the settings' names.

    `file` is None where there is none; what the command line set has no line.
    """

    file: str | None = None
    lines: Mapping[str, int]

    def place(self, settings: Iterable[str]) -> tuple[str | None, int | None]:
        """Return the file and the line to look at first, (None, None) where there is none.

        >>> origins = SettingOrigins(file="shardctl.yaml", lines={"block": 3})
        >>> origins.place(["cycle", "block"]), origins.place(["cycle"])
        (('shardctl.yaml', 3), (None, None))
        """
        for name in settings:
            if name in self.lines:
                return self.file, self.lines[name]
        return None, None

    def in_words(self, settings: Iterable[str]) -> str:
        """Return that place as it stands behind a sentence, "" where there is none.

        >>> SettingOrigins(file="shardctl.yaml", lines={"block": 3}).in_words(["block"])
        ' (shardctl.yaml:3)'
        """
        file, line = self.place(settings)
        return "" if file is None else f" ({file}:{line})"


NOWHERE = SettingOrigins(lines={})
