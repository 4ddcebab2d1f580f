"""Where settings were set, for those who are to change one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from shardctl.core.phrase import Argument, named_arguments, spelled
from shardctl.core.settings.document import key_of
from shardctl.core.settings.names import main_name
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.errors import ShardctlError
from shardctl.rendering.text.command_line import option_of

if TYPE_CHECKING:
    from shardctl.readers.project_file import Project


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


def located(error: Error, project: Project, section: Section, given: Collection[str] = ()) -> Error:
    """Return an error with file, line and key, where it is about what a section of a file states.

    It is so where the first argument that it names, of those that somebody has set, was set there
    and not by an option; `given` holds the arguments that options set. Else it is the same error.
    """
    stated = project.read if section == "read" else project.lint
    keys = {name for key in map(str, stated) for name in (key.replace("-", "_"), main_name(key))}
    subject = next((a for a in named_arguments(error) if _is_set(a, keys, given)), None)
    if subject is None or subject.name in given or _key(subject) not in keys:
        return error

    def spell(argument: Argument) -> str:
        known = argument.name in SETTING_BY_FIELD or _key(argument) in keys
        by_option = argument.name in given or not known
        return option_of(argument) if by_option else key_of(argument, section)

    line = project.setting_lines().get(_key(subject))
    place = project.shown_path + ("" if line is None else f":{line}")
    name, text = key_of(Argument(subject.name), section), spelled(error, spell)
    return type(error)(f"{place}: {text if text.startswith(name) else f'{name}: {text}'}")


def _is_set(argument: Argument, keys: Collection[str], given: Collection[str]) -> bool:
    """Return whether an argument was set; one that is not a setting is an option's."""
    is_setting = argument.name in SETTING_BY_FIELD
    return not is_setting or argument.name in given or _key(argument) in keys


def _key(argument: Argument) -> str:
    setting = SETTING_BY_FIELD.get(argument.name)
    return argument.name.replace("-", "_") if setting is None else setting.name
