"""A dataset by reference: a folder, a layout file, or a name to look up; one or several."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.nearness import nearest, nearest_first
from shardctl.core.secrets import public_url
from shardctl.core.text import choices, printable, quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError, NotThereError
from shardctl.files.fields import said_about
from shardctl.files.stores.anywhere import is_file, is_folder
from shardctl.files.stores.remote_path import AnyPath, RemotePath, path_of
from shardctl.files.stores.stores import is_remote
from shardctl.readers.catalog import catalog_dataset, catalog_names, catalog_titles
from shardctl.readers.data_dirs import (
    DataDirs,
    data_dirs,
    dataset_names,
    expand_home,
    find_dataset,
    list_datasets_of,
)
from shardctl.readers.dataset_name import DatasetName, parse_dataset_name
from shardctl.readers.project_file import Project
from shardctl.readers.several_folders import merge_datasets
from shardctl.readers.tfds_metadata import (
    dataset_in,
    only_folder,
    read_tfds_folder,
    tfds_folders,
)

ENVIRONMENT_VARIABLE = "SHARDCTL_DATASET"
DEFAULT_DATASET = "imagenet2012"
_LATER = (
    "not supported yet; describe the dataset in a layout.yaml instead, "
    "as `shardctl help datasets` shows"
)
LAYOUT_SUFFIXES = (".yaml", ".yml", ".json")


Source = Literal["option", "environment", "file", "folder", "default"]
Chooser = Literal[Source, "fallback"]


@dataclass(frozen=True, kw_only=True)
class ChosenDataset:
    """The dataset a command works on; `note` is a line for stderr where nobody chose it.

    `refs` are the references that chose it, their paths relative to `folder`, and `by` says who
    gave them; "file" is shardctl.yaml.
    """

    dataset: Dataset
    note: str | None = None
    refs: tuple[str, ...] = ()
    folder: Path = Path()
    by: Chooser = "default"


def choose_dataset(
    refs: Sequence[str],
    *,
    project: Project,
    data_dir: str | os.PathLike[str] | None,
    env: Mapping[str, str],
    cwd: Path,
    fallback: Fallback | None = None,
    on_disk: bool = False,
) -> ChosenDataset:
    """Return the dataset chosen by the first of: options, environment, shardctl.yaml, folder.

    `SHARDCTL_DATASET` holds one reference: no character could separate several, since names and
    paths have colons, commas and spaces. With none of these it is `fallback`, or else the built-in
    imagenet2012. With `on_disk` nothing is asked of a network.

    Raises:
        DatasetError: what was chosen is not there or broken, or is remote and may not be asked.
    """
    dirs = data_dirs(data_dir, env, project)
    search = _Search(dirs=dirs.on_disk() if on_disk else dirs, env=env, cwd=cwd, on_disk=on_disk)
    named = named_dataset(refs, project=project, env=env, cwd=cwd)
    refs, folder = named.refs, cwd
    by: Chooser = named.source
    if named.source == "option":
        dataset = _read_all(refs, search)
    elif named.source == "environment":
        with said_about(ENVIRONMENT_VARIABLE):
            dataset = _read_all(refs, search)
    elif named.source == "file" and project.path is not None:
        folder = project.path.parent
        with said_about(project.shown_path):
            dataset = _read_all(refs, replace(search, cwd=folder))
    elif named.source == "folder":
        dataset = read_tfds_folder(cwd)
    elif fallback is not None:
        refs, folder, by = tuple(fallback.refs), cwd / fallback.folder, "fallback"
        with said_about(fallback.said_by):
            dataset = _fallen_back(fallback, search)
    else:
        built_in = catalog_dataset(DEFAULT_DATASET)
        if built_in is None:
            raise DatasetError("no dataset chosen; choose one with --dataset")
        return ChosenDataset(
            dataset=built_in,
            note=f"no dataset chosen: using the built-in {DEFAULT_DATASET} layout; "
            "choose one with --dataset",
        )
    return ChosenDataset(dataset=dataset, refs=refs, folder=folder, by=by)


@dataclass(frozen=True, kw_only=True)
class NamedDataset:
    """The references of a dataset, and who names them; those of a file are relative to it."""

    refs: tuple[str, ...]
    source: Source


def named_dataset(
    refs: Sequence[str], *, project: Project, env: Mapping[str, str], cwd: Path
) -> NamedDataset:
    """Return which dataset is chosen, and by whom, whether or not it is there; see above."""
    if refs:
        return NamedDataset(refs=tuple(map(public_url, refs)), source="option")
    if env.get(ENVIRONMENT_VARIABLE):
        return NamedDataset(refs=(public_url(env[ENVIRONMENT_VARIABLE]),), source="environment")
    if project.dataset and project.path is not None:
        return NamedDataset(refs=tuple(map(public_url, project.dataset)), source="file")
    if os.path.isfile(cwd / DATASET_INFO_FILENAME):
        return NamedDataset(refs=(".",), source="folder")
    return NamedDataset(refs=(DEFAULT_DATASET,), source="default")


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """The references of a file (`said_by`) that names a dataset; paths are relative to `folder`."""

    refs: Sequence[str]
    folder: Path
    said_by: str


def _fallen_back(fallback: Fallback, search: _Search) -> Dataset:
    try:
        return _read_all(fallback.refs, replace(search, cwd=search.cwd / fallback.folder))
    except DatasetError as error:
        raise DatasetError(f"{error}; say where the dataset is with --dataset REF") from error


def refs_found_again(
    refs: Sequence[str], *, cwd: Path, folder: Path, on_this_machine: bool = False
) -> tuple[str, ...]:
    """Return references as a file in `folder` keeps them, none where it need not or cannot.

    A relative path becomes one from that folder, a name stays as it is. A single name needs no
    keeping, since the dataset's own finds it. An absolute path, or one from a home, would be
    another on the next machine: then none is kept, unless the file is for this machine alone. A
    URL is the same on all of them; passwords and signatures in it are not kept.
    """
    refs = tuple(dict.fromkeys(refs))
    fixed = any(map(is_fixed, refs))
    if fixed and not on_this_machine:
        return ()
    kept = tuple(ref_from(ref, cwd=cwd, folder=folder) for ref in refs)
    return kept if fixed or len(kept) > 1 or any(_is_path(ref, cwd) for ref in refs) else ()


def is_fixed(ref: str) -> bool:
    """Return whether a reference is a path of this machine alone: absolute, or from a home."""
    return os.path.isabs(ref) or ref.startswith("~")


def ref_from(ref: str, *, cwd: Path, folder: Path) -> str:
    """Return a reference as a file in `folder` states it: of a relative path the one from there."""
    if is_remote(ref):
        return public_url(ref)
    if is_fixed(ref) or not _is_path(ref, cwd):
        return ref
    relative = Path(os.path.relpath(cwd / ref, cwd / folder)).as_posix()
    is_clear = "/" in relative or relative.startswith(".") or (cwd / ref).is_file()
    return relative if is_clear else f"./{relative}"


def _is_path(ref: str, cwd: Path) -> bool:
    if is_remote(ref):
        return True
    path = cwd / ref
    return os.path.exists(path) and not _is_name_of_a_plain_folder(ref, path)


def _is_name_of_a_plain_folder(ref: str, path: Path) -> bool:
    if not path.is_dir() or parse_dataset_name(ref) is None:
        return False
    return len(tfds_folders(path)) != 1


@checked
def read_dataset(
    refs: Sequence[str | os.PathLike[str]],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    env: Mapping[str, str],
    cwd: Path,
) -> Dataset:
    """Return the dataset that one reference names, or several references as one dataset.

    A folder or file that exists wins over a name. As in `tfds.builder_from_directories`, the same
    reference given twice is read once.

    Raises:
        DatasetError: a reference that leads nowhere, or to something broken.
    """
    return _read_all(refs, _Search(dirs=data_dirs(data_dir, env, Project()), env=env, cwd=cwd))


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Where references are looked up."""

    dirs: DataDirs
    env: Mapping[str, str]
    cwd: Path
    on_disk: bool = False

    def path(self, ref: str) -> AnyPath:
        return path_of(expand_home(ref, self.env), self.cwd)


def _read_all(refs: Sequence[str | os.PathLike[str]], search: _Search) -> Dataset:
    return merge_datasets(
        [_read(ref, search) for ref in dict.fromkeys(public_url(os.fspath(ref)) for ref in refs)]
    )


def _read(ref: str, search: _Search) -> Dataset:
    if not ref or "\0" in ref:
        raise DatasetError(f"no dataset {quoted(ref)}; {_FORMS}")
    if search.on_disk and is_remote(ref):
        raise DatasetError(f"{quoted(ref, 200)} is not on a disk")
    for read in _KINDS:
        dataset = read(ref, search)
        if dataset is not None:
            return dataset
    close = nearest(ref, _known_names(search)) if re.fullmatch(r"[\w .-]+", ref) else []
    near = f"close names: {choices(close)}; " if close else ""
    raise DatasetError(f"no dataset {quoted(ref, 200)}; {near}{_FORMS}")


_FORMS = "a dataset is a folder with dataset_info.json, a layout.yaml, or a name like mnist:3.0.1"


def _folder(ref: str, search: _Search) -> Dataset | None:
    path = search.path(ref)
    if _names_a_file(path) if isinstance(path, RemotePath) else not os.path.isdir(path):
        return None
    if isinstance(path, RemotePath):
        return _remote_folder(ref, path)
    found = tfds_folders(path)
    name = parse_dataset_name(ref)
    if len(found) != 1 and name is not None:  # a folder that just has the name of a dataset
        dataset = _look_up(name, search)
        if dataset is not None:
            return dataset
    if not found and _has_record_files(path):
        raise DatasetError(
            f"{quoted(ref, 200)} holds record files and no {DATASET_INFO_FILENAME}; such folders "
            f"are {_LATER}"
        )
    return dataset_in(only_folder(found, path))


def _remote_folder(ref: str, path: RemotePath) -> Dataset:
    with contextlib.suppress(NotThereError):  # as a rule it is there, so that nothing else is asked
        return dataset_in(path)
    try:
        found = tfds_folders(path)
        if not found and not is_folder(path):
            raise NotThereError
    except NotThereError as error:
        raise DatasetError(f"no file or folder {quoted(ref, 200)}") from error
    return dataset_in(only_folder(found, path))


_RECORD_FILE = re.compile(r"record|riegeli|parquet|-of-\d")
_SEVERAL_FILES = re.compile(r"[*?\[]|@(\d+|\*)")


def _names_a_file(path: RemotePath) -> bool:
    """Return whether a URL is that of a file; where its name leaves it open the place is asked."""
    if path.name == DATASET_INFO_FILENAME or path.suffix in LAYOUT_SUFFIXES:
        return True
    if _SEVERAL_FILES.search(path.name):
        return True
    return _RECORD_FILE.search(path.name) is not None and is_file(path)


def _has_record_files(path: Path) -> bool:
    with os.scandir(path) as entries:
        return any(_RECORD_FILE.search(entry.name) for entry in entries)


def _file(ref: str, search: _Search) -> Dataset | None:
    path = search.path(ref)
    if isinstance(path, Path) and not os.path.exists(path):
        return None
    if path.name == DATASET_INFO_FILENAME:
        return dataset_in(path.parent)
    if path.suffix in LAYOUT_SUFFIXES:
        from shardctl.readers.layout_file import read_layout_file

        return read_layout_file(path)
    if _RECORD_FILE.search(path.name) or isinstance(path, RemotePath):
        raise DatasetError(f"{quoted(ref, 200)}: record files without metadata are {_LATER}")
    raise DatasetError(
        f"{quoted(ref, 200)} is not a layout file; their names end in {choices(LAYOUT_SUFFIXES)}"
    )


def _bad_version(ref: str, search: _Search) -> Dataset | None:
    if re.fullmatch(r"[A-Za-z][\w/+.-]*:[^/]*", ref) and parse_dataset_name(ref) is None:
        raise DatasetError(
            f"no dataset {quoted(ref)}; a version is three numbers or *, as in mnist:3.*.*, "
            "and namespaces are not looked up"
        )
    return None


def _record_files(ref: str, search: _Search) -> Dataset | None:
    if _SEVERAL_FILES.search(ref) and parse_dataset_name(ref) is None:
        raise DatasetError(f"{quoted(ref, 200)}: record files without metadata are {_LATER}")
    return None


def _missing_path(ref: str, search: _Search) -> Dataset | None:
    if re.match(r"[a-z][a-z0-9]+:/[^/]", ref):
        raise DatasetError(
            f"no file or folder {quoted(ref, 200)}; a URL has two slashes, of which pathlib makes "
            "one: give it as text"
        )
    if ref.endswith(LAYOUT_SUFFIXES) or re.match(r"[./~\\]", ref) or ref.endswith("/"):
        raise DatasetError(f"no file or folder {quoted(ref, 200)}")
    return None


def _name(ref: str, search: _Search) -> Dataset | None:
    name = parse_dataset_name(ref)
    if name is None:
        return None
    dataset = _look_up(name, search)
    if dataset is None:
        raise _unknown_name(name, search)
    return dataset


# Asked in this order; each kind of reference returns a dataset, passes, or says what is wrong.
_KINDS: tuple[Callable[[str, _Search], Dataset | None], ...] = (
    _folder,
    _file,
    _bad_version,
    _record_files,
    _missing_path,
    _name,
)


def _look_up(name: DatasetName, search: _Search) -> Dataset | None:
    folder = find_dataset(search.dirs, name)
    if folder is not None:
        return dataset_in(folder)
    for reading in name.readings():
        dataset = catalog_dataset(reading.name, reading.config, reading.version, said=name.said)
        if dataset is not None:
            return dataset
    return None


def _unknown_name(name: DatasetName, search: _Search) -> DatasetError:
    places = ", ".join(printable(str(folder)) for folder in search.dirs)
    said = f"no dataset {quoted(name.said)} in {places} or the built-in catalog"
    here = [str(found) for found in list_datasets_of(search.dirs, name.name)]
    here += catalog_titles(name.name)
    if here:
        here = nearest_first(name.said, here) if name.config else list(dict.fromkeys(here))
        return DatasetError(f"{said}; there is: {choices(here)}")
    names = sorted({*dataset_names(search.dirs), *catalog_names()})
    close = nearest(name.said.partition("/")[0].partition(":")[0], names, 5)
    if close:
        return DatasetError(f"{said}; close names: {choices(close)}")
    return DatasetError(f"{said}; there is: {choices(names)}")


def _known_names(search: _Search) -> list[str]:
    return sorted({*dataset_names(search.dirs.local()), *catalog_names()})
