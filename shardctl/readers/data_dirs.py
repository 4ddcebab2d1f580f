"""The folders of prepared datasets, and what is in them: `name[/config]/version`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shardctl.core.phrase import phrase
from shardctl.core.text import choices, quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files.file_text import subfolder_names
from shardctl.files.json_text import read_json
from shardctl.files.stores.stores import is_remote
from shardctl.readers.dataset_name import DatasetName, newest_version, version_key
from shardctl.readers.project_file import Project


@dataclass(frozen=True, kw_only=True)
class FoundDataset:
    """A prepared dataset in a data dir, known by its path alone."""

    name: str
    config: str | None
    version: str
    path: Path

    def __str__(self) -> str:
        return str(DatasetName(name=self.name, config=self.config, version=self.version))


DataDirSource = Literal["option", "file", "environment", "default"]
DATA_DIR_VARIABLE = "TFDS_DATA_DIR"


@dataclass(frozen=True, kw_only=True)
class DataDirs:
    """The folders in which names are looked up, in order, each once, with who names them.

    `sources` says so in words, `named_by` by its kind.

    A remote one, and the caller's own that is not there, is refused when the search comes to it:
    what lies before it may hold the dataset, and a path needs no search at all.
    """

    sources: Mapping[str, str]
    named_by: Mapping[str, DataDirSource]
    given: str | None

    def __iter__(self) -> Iterator[Path]:
        for text, source in self.sources.items():
            if is_remote(text):
                raise DatasetError(phrase("{}: remote paths are {}", source, NOT_SUPPORTED_YET))
            if text == self.given and not os.path.isdir(text):
                raise DatasetError(phrase("{}: no such local folder", source))
            yield Path(text)

    def local(self) -> Iterator[Path]:
        """Yield the folders that can be searched."""
        return (Path(text) for text in self.sources if not is_remote(text))


NOT_SUPPORTED_YET = (
    "not supported yet; describe the dataset in a layout.yaml instead, "
    "as `shardctl help datasets` shows"
)


def data_dirs(
    given: str | os.PathLike[str] | None, env: Mapping[str, str], project: Project
) -> DataDirs:
    """Return the data dirs: `--data-dir`, then `TFDS_DATA_DIR`, then `~/tensorflow_datasets`.

    The data_dir of a project stands in for `--data-dir` where that is not given.

    >>> env = {"HOME": "/home/me", "TFDS_DATA_DIR": "~/tfds"}
    >>> [str(folder) for folder in data_dirs(None, env, Project())]
    ['/home/me/tfds', '/home/me/tensorflow_datasets']
    """
    sources: dict[str, str] = {}
    named_by: dict[str, DataDirSource] = {}
    if given is not None:
        given = expand_home(os.fspath(given), env)
        sources[given] = phrase("{data_dir!}", data_dir=given)
        named_by[given] = "option"
    elif project.data_dir is not None:
        given = project.data_dir
        sources[given] = f"{project.shown_path}: data_dir {quoted(given, 200)}"
        named_by[given] = "file"
    in_environment = env.get(DATA_DIR_VARIABLE)
    if in_environment:
        said = f"{DATA_DIR_VARIABLE} {quoted(in_environment, 200)}"
        folder = expand_home(in_environment, env)
        sources.setdefault(folder, said)
        named_by.setdefault(folder, "environment")
    folder = expand_home("~/tensorflow_datasets", env)
    sources.setdefault(folder, "")
    named_by.setdefault(folder, "default")
    return DataDirs(sources=sources, named_by=named_by, given=given)


def expand_home(text: str, env: Mapping[str, str]) -> str:
    """Return a path with `~` replaced by the home folder of `env`, else of the user."""
    home = env.get("HOME")
    if home and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return os.path.expanduser(text)


def list_datasets(dirs: Iterable[Path]) -> tuple[FoundDataset, ...]:
    """Return the datasets in some data dirs, by name, config and version, newest last.

    Folders of another shape, and those that may not be entered, are skipped in silence.
    """
    dirs = list(dirs)
    return tuple(found for name in dataset_names(dirs) for found in list_datasets_of(dirs, name))


def _sort_key(found: FoundDataset) -> tuple[str, str, tuple[int, int, int]]:
    return found.name, found.config or "", version_key(found.version) or (0, 0, 0)


def dataset_names(dirs: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of the folders in some data dirs, each once, in order."""
    return tuple(sorted({name for data_dir in dirs for name in _subfolders(data_dir)}))


def find_dataset(dirs: Iterable[Path], wanted: DatasetName) -> Path | None:
    """Return the folder of a dataset: the first data dir that has it, the newest version there.

    Without a config TFDS's rule applies (read_only_builder.py, _find_builder_dir): the exact
    version right below the name; else a version of the config that `.config/metadata.json` names as
    the default; where it names none, a version right below the name.

    Raises:
        DatasetError: no config is given, and the dataset is here in configs of which none is the
            default; they are listed as the choices.
    """
    for data_dir in dirs:
        for reading in wanted.readings():
            found = _find_in(data_dir, reading)
            if found is not None:
                return found
    here = [] if wanted.config is not None else list_datasets_of(dirs, wanted.name)
    configs = dict.fromkeys(f"{found.name}/{found.config}" for found in here if found.config)
    if configs:
        raise DatasetError(
            f"{quoted(wanted.said)} has configs, none of them the default; choose one: "
            f"{choices(configs)}"
        )
    return None


def list_datasets_of(dirs: Iterable[Path], name: str) -> tuple[FoundDataset, ...]:
    """Return the datasets of one name."""
    found = []
    for data_dir in dirs:
        for inner in _subfolders(data_dir / name):
            path = data_dir / name / inner
            below = (
                [(None, inner)] if version_key(inner) else [(inner, v) for v in _subfolders(path)]
            )
            for config, version in below:
                folder = path if config is None else path / version
                if version_key(version) and _holds_dataset(folder):
                    found.append(
                        FoundDataset(name=name, config=config, version=version, path=folder)
                    )
    return tuple(sorted(found, key=_sort_key))


def _find_in(data_dir: Path, wanted: DatasetName) -> Path | None:
    root = data_dir / wanted.name
    if wanted.config is not None:
        return _newest_in(root / wanted.config, wanted.version)
    if wanted.version is not None and version_key(wanted.version):
        found = _newest_in(root, wanted.version)
        if found is not None:
            return found
    default = _default_config(root)
    return _newest_in(root if default is None else root / default, wanted.version)


def _newest_in(folder: Path, wanted: str | None) -> Path | None:
    versions = [name for name in _subfolders(folder) if _holds_dataset(folder / name)]
    version = newest_version(versions, wanted)
    return None if version is None else folder / version


def _default_config(root: Path) -> str | None:
    path = root / ".config" / "metadata.json"
    if not os.path.isfile(path):
        return None
    metadata = read_json(path)
    config = metadata.get("default_config_name") if isinstance(metadata, dict) else None
    return config if isinstance(config, str) and config and os.sep not in config else None


def _holds_dataset(folder: Path) -> bool:
    return os.path.isfile(folder / DATASET_INFO_FILENAME)


def _subfolders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder; none where it cannot be listed."""
    try:
        return subfolder_names(folder)
    except DatasetError:
        return []
