"""shardctl.yaml: a project's dataset and reading order, found from any folder inside it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from shardctl.base.text import near_or_all, printable, quoted
from shardctl.errors import DatasetError, ShardctlError
from shardctl.files import fields
from shardctl.files.parse import decode, parse_yaml
from shardctl.metadata.layouts import data_dir_of
from shardctl.settings.names import main_name, setting_called
from shardctl.stores.stores import read_file

PROJECT_FILENAME = "shardctl.yaml"
# Settings that may be beside `read:` as well, as the loader and the stages behind it.
_BESIDE_READ = ("loader", "stages")
_MAX_NUM_BYTES = 1 << 21  # two seconds of work; the text of `stages` has 1,000,000 at most
PROJECT_KEYS = ("dataset", "data_dir", "loader", "read", "stages", "lint")
_SECTIONS = ("read", "lint")


@dataclass(frozen=True, kw_only=True)
class Project:
    """What the shardctl.yaml of a project says; `path` is None where there is no such file.

    `read` and `lint` are checked by those who use them; `loader` and `stages` are in `read`.
    """

    path: Path | None = None
    dataset: tuple[str, ...] = ()
    data_dir: str | None = None
    read: Mapping[str, object] = field(default_factory=dict)
    lint: Mapping[str, object] = field(default_factory=dict)
    text: bytes = field(default=b"", repr=False)

    @property
    def shown_path(self) -> str:
        """The file as messages name it."""
        return printable(str(self.path))

    def setting_lines(self) -> dict[str, int]:
        """Return the line, from 1, of each setting under `read:` and `lint:`, its name with `_`.

        One that is written under an alias is there under both names.
        """
        return {
            name: line
            for key, line in self.lines().items()
            for section, _, name in [key.partition(".")]
            if section in _SECTIONS and name
        }

    def lines(self) -> dict[str, int]:
        """Return the line, from 1, of each key, as in `dataset` and `read.shuffle_seed`."""
        return _lines(self.text, self.shown_path)


def find_project(start: Path = Path()) -> Project:
    """Return the project of a folder: the nearest shardctl.yaml, in it or the ones above it.

    A working folder that was deleted has none.

    Raises:
        DatasetError: the nearest one cannot be read or breaks a rule of `read_project`.
    """
    path = next(project_files(start), None)
    return Project() if path is None else read_project(path)


def project_files(start: Path) -> Iterator[Path]:
    """Yield each shardctl.yaml in a folder and in those above it; only the first is read."""
    try:
        folder = Path(os.path.abspath(start))
    except FileNotFoundError:
        return
    for candidate in (folder, *folder.parents):
        path = candidate / PROJECT_FILENAME
        # lexists: a link to nowhere is found too, and its error is better than silence.
        if os.path.lexists(path):
            yield path


def read_project(path: Path) -> Project:
    """Return what one shardctl.yaml says; an empty file says nothing.

    Raises:
        DatasetError: no YAML, an unknown key, or a value of the wrong kind.
    """
    return project_of(read_file(path), path)


def project_of(text: bytes, path: Path) -> Project:
    """Return what the text of a shardctl.yaml at a path says, see `read_project`."""
    source = printable(str(path))
    if len(text) > _MAX_NUM_BYTES:
        raise DatasetError(
            f"{source}: {len(text):,} bytes; at most {_MAX_NUM_BYTES:,} are read of settings: "
            "shorten its lists, or give them as options"
        )
    document = parse_yaml(text, source=source)
    with fields.said_about(source):
        settings = fields.mapping({} if document is None else document, "the file")
    # Outside `said_about`, since the error names file and line itself.
    for key in settings:
        if key not in PROJECT_KEYS:
            raise _unknown_key(key, text, source)
    with fields.said_about(source):
        return Project(
            path=path,
            dataset=_dataset(settings.get("dataset")),
            data_dir=data_dir_of(settings.get("data_dir"), path.parent),
            read=_read(settings),
            lint=_section(settings, "lint"),
            text=text,
        )


def _unknown_key(key: str, text: bytes, source: str) -> DatasetError:
    line = _lines(text, source).get(key)
    where = source if line is None else f"{source}:{line}"
    if setting_called(key) is not None:
        cure = f"it belongs under read:, as in read: {{{printable(key)}: ..}}"
    else:
        cure = near_or_all(key, PROJECT_KEYS)
    return DatasetError(f"{where}: unknown key {quoted(key)}; {cure}")


def _lines(text: bytes, source: str) -> dict[str, int]:
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # only texts and lines are asked
    root = yaml.compose(decode(text, source=source), Loader=loader)
    if not isinstance(root, yaml.MappingNode):
        return {}
    lines = {}
    for key, section in root.value:
        lines[str(key.value)] = key.start_mark.line + 1
        if key.value in _BESIDE_READ:  # is read as one of the settings
            lines[f"read.{key.value}"] = key.start_mark.line + 1
        if isinstance(section, yaml.MappingNode):
            for name, _ in section.value:
                written = str(name.value).replace("-", "_")
                for known_as in (written, main_name(written)):
                    lines[f"{key.value}.{known_as}"] = name.start_mark.line + 1
    return lines


def _dataset(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str) or not item:
            raise DatasetError(f"dataset must be text or a list of texts, not {fields.shown(item)}")
    return tuple(items)


def _read(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings under `read:`, and those that are beside it."""
    read = _section(settings, "read")
    for name in _BESIDE_READ:
        if settings.get(name) is None:
            continue
        if read.get(name) is not None:
            raise DatasetError(f"{name} and read.{name} are one setting; keep one")
        read = {**read, name: settings[name]}
    return read


def _section(settings: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = settings.get(key)
    return {} if value is None else fields.mapping(value, key)


# Where settings were set, for those who are to change one.


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

    It is so where the first setting that it names, of those that are set, was set there
    and not by an option; `given` holds the arguments that options set. Else it is the same error.
    """
    if str(error).startswith(project.shown_path):
        return error
    stated = project.read if section == "read" else project.lint
    keys = {main_name(key) for key in map(str, stated)}
    options = {main_name(argument) for argument in given}
    for found in _NAMED.finditer(str(error)):
        # An option (--name) anywhere in the text, or the word before the first = or :.
        subject = main_name(found[1] or found[2])
        if subject in options or (subject not in keys and setting_called(subject) is None):
            return error  # an option of something else comes first
        if subject in keys:
            line = project.setting_lines().get(subject)
            place = project.shown_path + ("" if line is None else f":{line}")
            return type(error)(f"{place}: {error}")
    return error
