"""Errors that are about settings of shardctl.yaml, with the line to look at."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, TypeVar

from shardctl.core.phrase import Argument, named_arguments, spelled
from shardctl.core.settings.document import key_of
from shardctl.core.settings.names import main_name
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.errors import ShardctlError
from shardctl.rendering.text.command_line import option_of

if TYPE_CHECKING:
    from shardctl.readers.project_file import Project

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
