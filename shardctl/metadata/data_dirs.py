"""The folders of prepared datasets, and what is in them: `name[/config]/version`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from shardctl.base.phrase import option
from shardctl.base.text import choices, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError, NotThereError
from shardctl.files.parse import read_json
from shardctl.metadata.dataset_name import DatasetName, newest_version, version_key
from shardctl.metadata.project_file import Project
from shardctl.stores.paths import AnyPath, RemotePath, is_remote, path_of
from shardctl.stores.stores import answers, is_file, subfolders


@dataclass(frozen=True, kw_only=True)
class FoundDataset:
    """A prepared dataset in a data dir, known by its path alone."""

    name: str
    config: str | None
    version: str
    path: AnyPath

    def __str__(self) -> str:
        return str(DatasetName(name=self.name, config=self.config, version=self.version))


DataDirSource = Literal["option", "file", "environment", "default"]
DATA_DIR_VARIABLE = "TFDS_DATA_DIR"


@dataclass(frozen=True, kw_only=True)
class DataDirs:
    """The folders in which names are looked up, in order, each once, with who names them.

    `sources` says so in words, `named_by` by its kind.

    The caller's own that is not there is refused when the search comes to it: what lies before it
    may hold the dataset, and a path needs no search at all.
    """

    sources: Mapping[str, str]
    named_by: Mapping[str, DataDirSource]
    given: str | None

    def __iter__(self) -> Iterator[AnyPath]:
        for text, source in self.sources.items():
            path = path_of(text)
            is_there = isinstance(path, RemotePath) or (text and os.path.isdir(path))
            if text == self.given and not is_there:
                raise DatasetError(f"{source}: no such local folder")
            yield path

    def on_disk(self) -> DataDirs:
        """Return those of them that are folders of this machine."""
        return replace(self, sources={k: v for k, v in self.sources.items() if not is_remote(k)})

    def local(self) -> Iterator[Path]:
        """Yield the folders of this machine."""
        return (path for path in map(path_of, self.sources) if isinstance(path, Path))


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
        given = _clean(os.fspath(given), env)
        sources[given] = option("data_dir", given, given=True)
        named_by[given] = "option"
    elif project.data_dir is not None:
        given = project.data_dir
        sources[given] = f"{project.shown_path}: data_dir {quoted(given, 200)}"
        named_by[given] = "file"
    in_environment = env.get(DATA_DIR_VARIABLE)
    if in_environment:
        folder = _clean(in_environment, env)
        said = f"{DATA_DIR_VARIABLE} {quoted(folder if is_remote(folder) else in_environment, 200)}"
        sources.setdefault(folder, said)
        named_by.setdefault(folder, "environment")
    folder = expand_home("~/tensorflow_datasets", env)
    sources.setdefault(folder, "")
    named_by.setdefault(folder, "default")
    return DataDirs(sources=sources, named_by=named_by, given=given)


def _clean(text: str, env: Mapping[str, str]) -> str:
    return str(RemotePath(text)) if is_remote(text) else expand_home(text, env)


def expand_home(text: str, env: Mapping[str, str]) -> str:
    """Return a path with `~` replaced by the home folder of `env`, else of the user."""
    home = env.get("HOME")
    if home and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return os.path.expanduser(text)


def list_datasets(dirs: Iterable[AnyPath]) -> tuple[FoundDataset, ...]:
    """Return the datasets in some data dirs, by name, config and version, newest last.

    Folders of another shape, and local ones that may not be entered, are skipped in silence.
    """
    found: list[FoundDataset] = []
    for data_dir in dirs:
        with _named_by(dirs, data_dir):
            found += _found_in(data_dir, _subfolders(data_dir))
    return tuple(sorted(found, key=_sort_key))


def _sort_key(found: FoundDataset) -> tuple[str, str, tuple[int, int, int]]:
    return found.name, found.config or "", version_key(found.version) or (0, 0, 0)


def dataset_names(dirs: Iterable[AnyPath]) -> tuple[str, ...]:
    """Return the names of the folders in some data dirs, each once, in order."""
    return tuple(sorted({name for data_dir in dirs for name in _subfolders(data_dir)}))


def find_dataset(dirs: Iterable[AnyPath], wanted: DatasetName) -> AnyPath | None:
    """Return the folder of a dataset: the first data dir that has it, the newest version there.

    Without a config TFDS's rule applies (read_only_builder.py, _find_builder_dir): the exact
    version right below the name; else a version of the config that `.config/metadata.json` names as
    the default; where it names none, a version right below the name.

    Raises:
        DatasetError: no config is given, and the dataset is here in configs of which none is the
            default; they are listed as the choices. Or a remote data dir cannot be asked.
    """
    for data_dir in dirs:
        with _named_by(dirs, data_dir):
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


def list_datasets_of(dirs: Iterable[AnyPath], name: str) -> tuple[FoundDataset, ...]:
    """Return the datasets of one name."""
    found = [one for data_dir in dirs for one in _found_in(data_dir, [name])]
    return tuple(sorted(found, key=_sort_key))


@contextlib.contextmanager
def _named_by(dirs: Iterable[AnyPath], data_dir: AnyPath) -> Iterator[None]:
    """Say who named a remote data dir, where it cannot be asked."""
    try:
        yield
    except DatasetError as error:
        source = dirs.sources.get(str(data_dir)) if isinstance(dirs, DataDirs) else None
        if source is None or not isinstance(data_dir, RemotePath):
            raise
        raise DatasetError(f"{source}: {error}") from error


def _found_in(data_dir: AnyPath, names: Iterable[str]) -> Iterator[FoundDataset]:
    at_once = isinstance(data_dir, RemotePath)
    for found in answers(partial(_versions_of, data_dir), names, at_once=at_once):
        yield from found


def _versions_of(data_dir: AnyPath, name: str) -> list[FoundDataset]:
    found = []
    for inner in _subfolders(data_dir / name):
        path = data_dir / name / inner
        below = [(None, inner)] if version_key(inner) else [(inner, v) for v in _subfolders(path)]
        for config, version in below:
            folder = path if config is None else path / version
            if version_key(version) and _holds_dataset(folder):
                found.append(FoundDataset(name=name, config=config, version=version, path=folder))
    return found


def _find_in(data_dir: AnyPath, wanted: DatasetName) -> AnyPath | None:
    root = data_dir / wanted.name
    if wanted.config is not None:
        return _newest_in(root / wanted.config, wanted.version)
    if wanted.version is not None and version_key(wanted.version):
        found = _newest_in(root, wanted.version)
        if found is not None:
            return found
    default = _default_config(root)
    return _newest_in(root if default is None else root / default, wanted.version)


def _newest_in(folder: AnyPath, wanted: str | None) -> AnyPath | None:
    exact = wanted is not None and version_key(wanted) is not None
    versions = [wanted] if exact and wanted is not None else _subfolders(folder)
    while (version := newest_version(versions, wanted)) is not None:
        if _holds_dataset(folder / version):
            return folder / version
        versions.remove(version)
    return None


def _default_config(root: AnyPath) -> str | None:
    path = root / ".config" / "metadata.json"
    if not is_file(path):
        return None
    metadata = read_json(path)
    config = metadata.get("default_config_name") if isinstance(metadata, dict) else None
    return config if isinstance(config, str) and config and os.sep not in config else None


def _holds_dataset(folder: AnyPath) -> bool:
    return is_file(folder / DATASET_INFO_FILENAME)


def _subfolders(folder: AnyPath) -> list[str]:
    """Return the names of the folders in a folder; none where a local one cannot be listed.

    Of a remote one that cannot be asked nobody knows whether it has what is looked for.
    """
    try:
        return subfolders(folder)
    except NotThereError:
        return []
    except DatasetError:
        if isinstance(folder, RemotePath):
            raise
        return []
