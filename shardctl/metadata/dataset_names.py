"""Names of datasets, looked up in data dirs and then in the built-in catalog."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal

from shardctl.base.phrase import option
from shardctl.base.text import choices, dataset_title, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.files.parse import read_json
from shardctl.metadata.layouts import dataset_from_layout
from shardctl.metadata.project_file import Project
from shardctl.stores.stores import (
    AnyPath,
    RemotePath,
    answers,
    is_file,
    is_remote,
    listed,
    path_of,
    subfolders,
)

# TFDS core/naming.py, _NAME_REG, without namespaces and builder arguments.
_NAME = re.compile(
    r"(?P<name>[a-zA-Z][a-zA-Z0-9_]*)"
    r"(?:/(?P<config>[\w+.-]+))?"
    r"(?::(?P<version>(?:[0-9]+|\*)(?:\.(?:[0-9]+|\*)){2}))?"
)
_VERSION = re.compile(r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})")


@dataclass(frozen=True, kw_only=True)
class DatasetName:
    """A name to look up; `version` may have wildcards, None is the newest.

    `typed` is the name as the user wrote it, "" where it was not typed.
    """

    name: str
    config: str | None = None
    version: str | None = None
    typed: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return dataset_title(self.name, self.config, self.version)

    @property
    def shown(self) -> str:
        """The name as messages repeat it: as it was typed."""
        return self.typed or str(self)

    def readings(self) -> Iterator[DatasetName]:
        """Yield the name itself, then the reading of `mnist/3.0.1` as TFDS prints full names.

        >>> [str(name) for name in DatasetName(name="mnist", config="3.0.1").readings()]
        ['mnist/3.0.1', 'mnist:3.0.1']
        """
        yield self
        if self.config is not None and self.version is None and version_key(self.config):
            yield replace(self, config=None, version=self.config)


@dataclass(frozen=True, kw_only=True)
class FoundDataset(DatasetName):
    """A prepared dataset in a data dir, known by its path alone."""

    path: AnyPath


def parse_dataset_name(text: str) -> DatasetName | None:
    """Return the parts of a dataset name, None where the text is not a dataset name.

    CamelCase becomes snake_case, as in TFDS; `name/config/1.0.0`, the full name that TFDS prints,
    is `name/config:1.0.0`.

    >>> parse_dataset_name("FashionMnist:3.*.*")
    DatasetName(name='fashion_mnist', config=None, version='3.*.*')
    """
    folder, _, last = text.rpartition("/")
    match = _NAME.fullmatch(f"{folder}:{last}" if "/" in folder and version_key(last) else text)
    if match is None:
        return None
    name = snake_case(match["name"])
    return DatasetName(name=name, config=match["config"], version=match["version"], typed=text)


def snake_case(name: str) -> str:
    """Return CamelCase as snake_case (TFDS core/naming.py, camelcase_to_snakecase)."""
    name = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub("([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def version_key(text: str) -> tuple[int, int, int] | None:
    """Return what versions are sorted by, None where the text is not a version x.y.z.

    >>> version_key("10.0.2"), version_key("1.0"), version_key("01.0.0")
    ((10, 0, 2), None, None)
    """
    match = _VERSION.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def newest_version(versions: Iterable[str], wanted: str | None = None) -> str | None:
    """Return the newest of some versions that matches the wanted one, None where none does.

    >>> newest_version(["3.9.0", "3.10.0", "4.0.0"], "3.*.*")
    '3.10.0'
    """
    keys = {version: key for version in versions if (key := version_key(version))}
    matching = (version for version in keys if fnmatchcase(version, wanted or "*"))
    return max(matching, key=lambda version: keys[version], default=None)


# Data dirs: folders of prepared datasets, name[/config]/version.

DataDirSource = Literal["option", "file", "environment", "default"]
DATA_DIR_VARIABLE = "TFDS_DATA_DIR"


@dataclass(frozen=True, kw_only=True)
class DataDirs:
    """The folders in which names are looked up, in order, each once, with where each comes from.

    `sources` are where each comes from: its kind, and words for messages. A given folder that is
    not there is refused only when the search comes to it: a folder before it may hold the dataset,
    and a path needs no search at all.
    """

    sources: Mapping[str, tuple[DataDirSource, str]]
    given: str | None

    def __iter__(self) -> Iterator[AnyPath]:
        for text, (_, source) in self.sources.items():
            path = path_of(text)
            # A remote place is not asked before something is looked up in it.
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


def data_dirs(given: str | os.PathLike[str] | None, project: Project) -> DataDirs:
    """Return the data dirs: `--data-dir`, then `TFDS_DATA_DIR`, then `~/tensorflow_datasets`.

    The data_dir of a project is used where `--data-dir` is not given.

    >>> [kind for kind, _ in data_dirs("~/tensorflow_datasets", Project()).sources.values()]
    ['option']
    """
    sources: dict[str, tuple[DataDirSource, str]] = {}
    if given is not None:
        given = _clean(os.fspath(given))
        sources[given] = ("option", option("data_dir", given, given=True))
    elif project.data_dir is not None:
        given = project.data_dir
        sources[given] = ("file", f"{project.shown_path}: data_dir {quoted(given, 200)}")
    # Of a folder that is named twice the first source stays.
    if in_environment := os.environ.get(DATA_DIR_VARIABLE):
        folder = _clean(in_environment)
        shown = quoted(folder if is_remote(folder) else in_environment, 200)
        sources.setdefault(folder, ("environment", f"{DATA_DIR_VARIABLE} {shown}"))
    sources.setdefault(os.path.expanduser("~/tensorflow_datasets"), ("default", ""))
    return DataDirs(sources=sources, given=given)


def _clean(text: str) -> str:
    return str(RemotePath(text)) if is_remote(text) else os.path.expanduser(text)


def list_datasets(dirs: Iterable[AnyPath], name: str | None = None) -> tuple[FoundDataset, ...]:
    """Return the datasets in some data dirs, or those of one name, sorted, newest version last.

    Folders of another shape, and local ones that may not be entered, are skipped in silence.
    """
    found: list[FoundDataset] = []
    for data_dir in dirs:
        names = listed(subfolders, data_dir) if name is None else [name]
        at_once = isinstance(data_dir, RemotePath)
        for versions in answers(partial(_versions_of, data_dir), names, at_once=at_once):
            found += versions
    found.sort(key=lambda one: (one.name, one.config or "", version_key(one.version or "") or ()))
    return tuple(found)


def dataset_names(dirs: Iterable[AnyPath]) -> tuple[str, ...]:
    """Return the names of the folders in some data dirs, each once, in order."""
    return tuple(sorted({name for data_dir in dirs for name in listed(subfolders, data_dir)}))


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
        # Both readings in one data dir before the next one: its order counts most.
        for reading in wanted.readings():
            found = _find_in(data_dir, reading)
            if found is not None:
                return found
    here = [] if wanted.config is not None else list_datasets(dirs, wanted.name)
    configs = dict.fromkeys(f"{found.name}/{found.config}" for found in here if found.config)
    if configs:
        raise DatasetError(
            f"{quoted(wanted.shown)} has configs, none of them the default; choose one: "
            f"{choices(configs)}"
        )
    return None


def _versions_of(data_dir: AnyPath, name: str) -> list[FoundDataset]:
    found = []
    for inner in listed(subfolders, data_dir / name):
        path = data_dir / name / inner
        # A folder that is called as a version has no config above it.
        versions = listed(subfolders, path)
        below = [(None, inner)] if version_key(inner) else [(inner, each) for each in versions]
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
    versions = [wanted] if exact and wanted is not None else listed(subfolders, folder)
    # The newest that holds a dataset: a folder that TFDS left unfinished is no version.
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
    # A separator would lead out of the folder of the dataset.
    return config if isinstance(config, str) and config and os.sep not in config else None


def _holds_dataset(folder: AnyPath) -> bool:
    return is_file(folder / DATASET_INFO_FILENAME)


# The built-in catalog: layouts of well-known datasets, as their publishers state them.

_ORIGIN = "built-in catalog"
CATALOG = Path(__file__).with_name("catalog")  # importlib.resources would take 4 ms to import


def catalog_names() -> tuple[str, ...]:
    """Return the names of the datasets in the catalog, sorted."""
    return tuple(sorted(path.stem for path in CATALOG.glob("*.json")))


def catalog_dataset(
    name: str, config: str | None = None, version: str | None = None, *, shown: str = ""
) -> Dataset | None:
    """Return a dataset of the catalog, None where it has no such config or version.

    Without a version the newest is meant; `version` may have wildcards. Without a config it is
    TFDS's default config, or the only one. `shown` is the name as errors repeat it.

    Raises:
        DatasetError: the dataset has several configs here, and the default one is not among them.
    """
    document = _catalog_document(name)
    entries = document["entries"]
    if config is None:
        configs = list(dict.fromkeys(entry["config"] for entry in entries))
        config = document.get("default_config")
        if config not in configs and len(configs) > 1:
            listed = choices(f"{name}/{config}" for config in configs)
            raise DatasetError(
                f"{quoted(shown or name)} has configs in the catalog; choose one: {listed}"
            )
        if config not in configs and configs:
            config = configs[0]
    of_config = {entry["version"]: entry for entry in entries if entry["config"] == config}
    found = newest_version(of_config, version)
    return None if found is None else _dataset_of_entry(name, of_config[found])


def catalog_datasets(name: str) -> tuple[Dataset, ...]:
    """Return the datasets of every entry under a name."""
    entries = _catalog_document(name)["entries"]
    return tuple(_dataset_of_entry(name, entry) for entry in entries)


def catalog_titles(name: str) -> tuple[str, ...]:
    """Return name, config and version of every entry under a name."""
    return tuple(dataset.title for dataset in catalog_datasets(name))


def _catalog_document(name: str) -> dict[str, Any]:
    path = CATALOG / f"{name}.json"
    if name not in catalog_names():
        return {"entries": []}
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _dataset_of_entry(name: str, entry: Mapping[str, Any]) -> Dataset:
    layout = {**entry, "name": name}
    layout.pop("source", None)
    return replace(dataset_from_layout(layout, stem=name, folder=CATALOG), origin=_ORIGIN)
