"""shardctl.yaml: a project's dataset and reading order, found from any folder inside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shardctl.core.text import printable
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.file_text import decode, read_file
from shardctl.files.yaml_text import parse_yaml
from shardctl.readers.dataset_name import is_remote

PROJECT_FILENAME = "shardctl.yaml"
PROJECT_KEYS = ("dataset", "data_dir", "read", "lint")
_SECTIONS = ("read", "lint")


@dataclass(frozen=True, kw_only=True)
class Project:
    """What the shardctl.yaml of a project says; `path` is None where there is no such file.

    `read` and `lint` are checked by those who use them.
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
        import yaml

        from shardctl.core.settings.names import main_name

        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # only texts and lines are asked
        root = yaml.compose(decode(self.text, source=self.shown_path), Loader=loader)
        if not isinstance(root, yaml.MappingNode):
            return {}
        return {
            known_as: name.start_mark.line + 1
            for key, section in root.value
            if key.value in _SECTIONS and isinstance(section, yaml.MappingNode)
            for name, _ in section.value
            for known_as in (str(name.value).replace("-", "_"), main_name(str(name.value)))
        }


def find_project(start: Path) -> Project:
    """Return the project of a folder: the nearest shardctl.yaml, in it or the ones above it.

    A working folder that was deleted has none.

    Raises:
        DatasetError: the nearest one cannot be read or breaks a rule of `read_project`.
    """
    try:
        folder = Path(os.path.abspath(start))
    except FileNotFoundError:
        return Project()
    for candidate in (folder, *folder.parents):
        path = candidate / PROJECT_FILENAME
        if os.path.lexists(path):
            return read_project(path)
    return Project()


def read_project(path: Path) -> Project:
    """Return what one shardctl.yaml says; an empty file says nothing.

    Raises:
        DatasetError: no YAML, an unknown key, or a value of the wrong kind.
    """
    text = read_file(path)
    document = parse_yaml(text, source=printable(str(path)))
    with fields.said_about(printable(str(path))):
        settings = fields.mapping({} if document is None else document, "the file")
        fields.only_keys(settings, PROJECT_KEYS, "the file")
        return Project(
            path=path,
            dataset=_dataset(settings.get("dataset")),
            data_dir=_data_dir(settings.get("data_dir"), path.parent),
            read=_section(settings, "read"),
            lint=_section(settings, "lint"),
            text=text,
        )


def _dataset(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str) or not item:
            raise DatasetError(f"dataset must be text or a list of texts, not {fields.shown(item)}")
    return tuple(items)


def _data_dir(value: object, folder: Path) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        raise DatasetError(f"data_dir must be the path of a folder, not {fields.shown(value)}")
    return value if is_remote(value) else os.path.abspath(folder / os.path.expanduser(value))


def _section(settings: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = settings.get(key)
    return {} if value is None else fields.mapping(value, key)
