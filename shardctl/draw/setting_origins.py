"""Where settings were set, for those who are to change one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from shardctl.errors import ShardctlError
from shardctl.settings.names import main_name, setting_called

if TYPE_CHECKING:
    from shardctl.metadata.project_file import Project


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


# Errors that are about settings of shardctl.yaml, with the line to look at.

Section = Literal["read", "lint"]
Error = TypeVar("Error", bound=ShardctlError)
_NAMED = re.compile(r"--(?:no-)?([a-z][a-z-]*)|^([^=:\s]+)(?=[=:])")


def located(error: Error, project: Project, section: Section, given: Collection[str] = ()) -> Error:
    """Return an error with file and line, where it is about what a section of a file states.

    It is so where the first setting that it names, of those that somebody has set, was set there
    and not by an option; `given` holds the arguments that options set. Else it is the same error.
    """
    if str(error).startswith(project.shown_path):
        return error
    stated = project.read if section == "read" else project.lint
    keys = {main_name(key) for key in map(str, stated)}
    options = {main_name(argument) for argument in given}
    for found in _NAMED.finditer(str(error)):
        subject = main_name(found[1] or found[2])
        if subject in options or (subject not in keys and setting_called(subject) is None):
            return error  # an option of something else comes first
        if subject in keys:
            line = project.setting_lines().get(subject)
            place = project.shown_path + ("" if line is None else f":{line}")
            return type(error)(f"{place}: {error}")
    return error
