"""shardctl.yaml: a project's dataset and reading order, found from any folder inside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shardctl.core.text import printable
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.yaml_text import read_yaml

FILENAME = "shardctl.yaml"
KEYS = ("dataset", "data_dir", "read", "lint")


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a shardctl.yaml says; `read` and `lint` are checked by those who use them."""

    path: Path
    dataset: tuple[str, ...] = ()
    data_dir: str | None = None
    read: Mapping[str, object] = field(default_factory=dict)
    lint: Mapping[str, object] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return self.path.parent


def find_config(start: Path) -> Config | None:
    """Return the nearest shardctl.yaml, in a folder or the ones above it; None without one.

    Raises:
        DatasetError: the nearest one cannot be read or breaks a rule of `read_config`.
    """
    folder = Path(os.path.abspath(start))
    for candidate in (folder, *folder.parents):
        path = candidate / FILENAME
        if os.path.lexists(path):
            return read_config(path)
    return None


def read_config(path: Path) -> Config:
    """Return the settings of one shardctl.yaml; an empty file has none.

    Raises:
        DatasetError: no YAML, an unknown key, or a value of the wrong kind.
    """
    document = read_yaml(path)
    with fields.said_about(printable(str(path))):
        settings = fields.mapping({} if document is None else document, "the file")
        fields.only_keys(settings, KEYS, "the file")
        return Config(
            path=path,
            dataset=_dataset(settings.get("dataset")),
            data_dir=_data_dir(settings.get("data_dir"), path.parent),
            read=_section(settings, "read"),
            lint=_section(settings, "lint"),
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
    if "://" in value:
        return value
    return os.path.abspath(folder / os.path.expanduser(value))


def _section(settings: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = settings.get(key)
    return {} if value is None else fields.mapping(value, key)
