"""A dataset by reference: a folder, a layout file, record files or a name; several become one."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

from shardctl.base.arguments import checked
from shardctl.base.text import (
    choices,
    either,
    nearest,
    nearest_first,
    printable,
    public_url,
    quoted,
)
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.dataset.dataset import Dataset, Split, source_dataset
from shardctl.dataset.folders import folders_of
from shardctl.errors import DatasetError, NotThereError
from shardctl.files.fields import said_about
from shardctl.metadata import dataset_names, tfds_metadata
from shardctl.metadata.index import bare
from shardctl.metadata.project_file import Project
from shardctl.stores import stores

ENVIRONMENT_VARIABLE = "SHARDCTL_DATASET"
DEFAULT_DATASET = "imagenet2012"
LAYOUT_SUFFIXES = (".yaml", ".yml", ".json")


# Which references are chosen, and where they come from.

Source = Literal["option", "environment", "file", "folder", "default", "fallback"]


@dataclass(frozen=True, kw_only=True)
class NamedDataset:
    """The references of a dataset, their source, and the folder that they are relative to.

    source: "file" is shardctl.yaml. said_by: what stands before an error about them, as the file
        that names a `fallback`.
    """

    refs: tuple[str, ...]
    source: Source = "fallback"
    folder: Path
    said_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenDataset(NamedDataset):
    """The dataset a command works on; `note` is a line for stderr where none was chosen."""

    dataset: Dataset
    note: str | None = None


def choose_dataset(
    refs: Sequence[str],
    *,
    project: Project,
    data_dir: str | os.PathLike[str] | None = None,
    cwd: Path | None = None,
    fallback: NamedDataset | None = None,
    counting: bare.Counting = "cached",
    on_disk: bool = False,
) -> ChosenDataset:
    """Return the dataset chosen by the first of: options, environment, shardctl.yaml, folder.

    `SHARDCTL_DATASET` holds one reference: no character could separate several, since names and
    paths have colons, commas and spaces. With none of these it is `fallback`, or else the built-in
    imagenet2012. `counting` says how record files without metadata are read; with `on_disk` nothing
    is asked of a network.

    Raises:
        DatasetError: what was chosen is not there or broken, or is remote and may not be asked.
    """
    dirs = dataset_names.data_dirs(data_dir, project)
    named = named_dataset(refs, project=project, cwd=cwd, fallback=fallback)
    if named.source == "default":
        built_in = dataset_names.catalog_dataset(DEFAULT_DATASET)
        assert built_in is not None  # it is in the catalog
        note = (
            f"no dataset chosen: using the built-in {DEFAULT_DATASET} layout; "
            "choose one with --dataset"
        )
        return ChosenDataset(**vars(replace(named, refs=())), dataset=built_in, note=note)
    search = _Search(
        dirs=dirs.on_disk() if on_disk else dirs,
        cwd=named.folder,
        counting=counting,
        on_disk=on_disk,
    )
    try:
        with said_about(named.said_by) if named.said_by else contextlib.nullcontext():
            if named.source == "folder":
                dataset = tfds_metadata.read_tfds_folder(named.folder)
            else:
                dataset = _read_all(named.refs, search)
    except DatasetError as error:
        if named.source != "fallback":
            raise
        raise DatasetError(f"{error}; say where the dataset is with --dataset REF") from error
    return ChosenDataset(**vars(named), dataset=dataset)


def named_dataset(
    refs: Sequence[str],
    *,
    project: Project,
    cwd: Path | None = None,
    fallback: NamedDataset | None = None,
) -> NamedDataset:
    """Return which dataset is chosen, and from where, whether or not it is there; see above."""
    source: Source = "option"
    folder = cwd = cwd or stores.working_folder()
    said_by = None
    # The order of these branches is the precedence that `choose_dataset` promises.
    if not refs and (named := os.environ.get(ENVIRONMENT_VARIABLE)):
        refs, source, said_by = [named], "environment", ENVIRONMENT_VARIABLE
    elif not refs and project.dataset and project.path is not None:
        refs, source, said_by = project.dataset, "file", project.shown_path
        folder = project.path.parent
    elif not refs and tfds_metadata.holds_tfds_metadata(cwd):
        refs, source = ["."], "folder"
    elif not refs and fallback is not None:
        return replace(fallback, folder=cwd / fallback.folder)
    elif not refs:
        refs, source = [DEFAULT_DATASET], "default"
    # From here on no reference has a password in it; the store remembers what was given.
    public = tuple(map(public_url, refs))
    return NamedDataset(refs=public, source=source, folder=folder, said_by=said_by)


# References as files keep them, to be read from another folder.


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
    # One reference that cannot be kept makes all of them useless: none is kept then.
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
    if stores.is_remote(ref):
        return public_url(ref)
    if is_fixed(ref) or not _is_path(ref, cwd):
        return ref
    relative = Path(os.path.relpath(cwd / ref, cwd / folder)).as_posix()
    # A folder called "mnist" must not be read as the dataset of that name.
    is_clear = "/" in relative or relative.startswith(".") or not (cwd / ref).is_dir()
    return relative if is_clear else f"./{relative}"


def _is_path(ref: str, cwd: Path) -> bool:
    if stores.is_remote(ref):
        return True
    path = cwd / ref
    if not os.path.exists(path):
        return _means_record_files(ref)
    if not path.is_dir() or dataset_names.parse_dataset_name(ref) is None:
        return True
    # A folder that just has the name of a dataset is no path.
    return len(tfds_metadata.tfds_folders(path)) == 1 or bare.holds_record_files(str(path))


# Each kind of reference returns a dataset, passes, or says what is wrong.


@checked
def read_dataset(
    refs: Sequence[str | os.PathLike[str]],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    cwd: Path | None = None,
    cache: bool = True,
) -> Dataset:
    """Return the dataset that one reference names, or several references as one dataset.

    A folder or file that exists wins over a name. As in `tfds.builder_from_directories`, the same
    reference given twice is read once.

    Raises:
        DatasetError: a reference that leads nowhere, or to something broken.
    """
    dirs = dataset_names.data_dirs(data_dir, Project())
    counting: bare.Counting = "cached" if cache else "anew"
    return _read_all(
        refs, _Search(dirs=dirs, cwd=cwd or stores.working_folder(), counting=counting)
    )


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Where references are looked up."""

    dirs: dataset_names.DataDirs
    cwd: Path
    counting: bare.Counting
    on_disk: bool = False

    def path(self, ref: str) -> stores.AnyPath:
        return stores.path_of(os.path.expanduser(ref), self.cwd)


def _read_all(refs: Sequence[str | os.PathLike[str]], search: _Search) -> Dataset:
    return merge_datasets(
        [_read(ref, search) for ref in dict.fromkeys(public_url(os.fspath(ref)) for ref in refs)]
    )


def _read(ref: str, search: _Search) -> Dataset:
    if not ref or "\0" in ref:
        raise DatasetError(f"no dataset {quoted(ref)}; {_FORMS}")
    if (source := source_dataset(ref)) is not None:
        return source
    if search.on_disk and stores.is_remote(ref):
        raise DatasetError(f"{quoted(ref, 200)} is not on a disk")
    # The order matters: what exists wins over what it could mean as a name.
    for read in (_folder, _file, _record_files, _name):
        dataset = read(ref, search)
        if dataset is not None:
            return dataset
    known = sorted(
        {*dataset_names.dataset_names(search.dirs.local()), *dataset_names.catalog_names()}
    )
    # Only what could be a name is compared with names; a path is not.
    close = nearest(ref, known) if re.fullmatch(r"[\w .-]+", ref) else []
    cure = f"did you mean {either(close)}?" if close else _FORMS
    raise DatasetError(f"no dataset {quoted(ref, 200)}; {cure}")


_FORMS = (
    "a dataset is a folder with dataset_info.json, a layout.yaml, a name like mnist:3.0.1, "
    "record files (a folder, a pattern, prefix@N), or range(N) for N elements of any source"
)


def _folder(ref: str, search: _Search) -> Dataset | None:
    path = search.path(ref)
    if isinstance(path, stores.RemotePath):
        return None if _names_a_file(path) else _remote_folder(ref, path, search)
    if not os.path.isdir(path):
        return None
    found = tfds_metadata.tfds_folders(path)
    name = None if found == [path] else dataset_names.parse_dataset_name(ref)
    if name is not None and len(found) != 1 and not bare.holds_record_files(str(path)):
        # A folder that just has the name of a dataset.
        dataset = _look_up(name, search)
        if dataset is not None:
            return dataset
    return _with_records(ref, path, found, search)


def _remote_folder(ref: str, path: stores.RemotePath, search: _Search) -> Dataset:
    with contextlib.suppress(NotThereError):  # as a rule it is there, so that nothing else is asked
        return tfds_metadata.dataset_in(path)
    try:
        found = [folder for folder in tfds_metadata.tfds_folders(path) if folder != path]
        if not found and not stores.is_folder(path):
            raise NotThereError
    except NotThereError as error:
        raise DatasetError(f"no file or folder {quoted(ref, 200)}") from error
    return _with_records(ref, path, found, search)


def _with_records(
    ref: str, path: stores.AnyPath, found: Sequence[stores.AnyPath], search: _Search
) -> Dataset:
    """Return the dataset of a folder in which, or below which, datasets with metadata were found.

    Where it holds record files beside those below, either may be meant.
    """
    if found == [path]:
        return tfds_metadata.dataset_in(path)
    holds_records = bare.holds_record_files(str(path))
    if found and holds_records:
        below = choices(stores.way_below(path, folder) for folder in found)
        raise DatasetError(
            f"{quoted(ref, 200)} holds record files, and below it are datasets with "
            f"{DATASET_INFO_FILENAME}: {below}; name one of these, or the files by a pattern as "
            f"{quoted(os.path.join(ref, '*'), 200)}"
        )
    if found:
        return tfds_metadata.dataset_in(tfds_metadata.only_folder(found, path))
    try:
        return bare.read_bare(str(path), search.counting)
    except DatasetError as error:
        # The files are there, so what is wrong with them is the answer; else that nothing is there.
        if holds_records:
            raise
        from shardctl.metadata.index.sidecars import dataset_of_index

        if (stated := dataset_of_index(str(path))) is not None:
            return stated
        raise DatasetError(
            f"{quoted(ref, 200)} holds no {DATASET_INFO_FILENAME}, nor does a folder below it; "
            f"{error}"
        ) from error


def _names_a_file(path: stores.RemotePath) -> bool:
    """Return whether a URL is that of a file; where its name does not tell, the store is asked."""
    if path.name == DATASET_INFO_FILENAME or path.suffix in LAYOUT_SUFFIXES:
        return True
    if _means_record_files(path.name):
        return True
    return bare.looks_like_records(path.name) and stores.is_file(path)


def _file(ref: str, search: _Search) -> Dataset | None:
    path = search.path(ref)
    if isinstance(path, Path) and not os.path.exists(path):
        return None
    if path.name == DATASET_INFO_FILENAME:
        return _folder(os.path.dirname(ref) or ".", search)
    if path.suffix in LAYOUT_SUFFIXES:
        from shardctl.metadata.layouts import read_layout_file

        return read_layout_file(path)
    if isinstance(path, stores.RemotePath) and _means_record_files(path.name):
        return None
    if not bare.is_record_file(str(path)):
        raise DatasetError(
            f"{quoted(ref, 200)} is neither a layout file, whose name ends in "
            f"{choices(LAYOUT_SUFFIXES)}, nor a file of records"
        )
    return bare.read_bare(str(path), search.counting)


def _means_record_files(ref: str) -> bool:
    """Return whether a reference to no file or folder means several files.

    >>> [_means_record_files(ref) for ref in ("train-*.tfrecord", "data/train@1024", "mnist:3.*.*")]
    [True, True, False]
    >>> _means_record_files("shard-{000..146}.tar"), _means_record_files("data/train.tfrecord")
    (True, False)
    """
    if dataset_names.parse_dataset_name(ref) is not None:
        return False
    from shardctl.metadata.index.name_words import expanded, is_glob, sharded_regex

    name = ref.rpartition("/")[2]
    return is_glob(ref) or sharded_regex(name) is not None or next(expanded(ref)) != ref


def _record_files(ref: str, search: _Search) -> Dataset | None:
    if not _means_record_files(ref):
        return None
    return bare.read_bare(str(search.path(ref)), search.counting)


def _name(ref: str, search: _Search) -> Dataset | None:
    if stores.has_lost_a_slash(ref):
        raise DatasetError(f"no file or folder {quoted(ref, 200)}; {stores.A_SLASH_LOST}")
    if ref.endswith((*LAYOUT_SUFFIXES, "/")) or re.match(r"[./~\\]", ref):
        raise DatasetError(f"no file or folder {quoted(ref, 200)}")
    name = dataset_names.parse_dataset_name(ref)
    if name is None:
        return None
    dataset = _look_up(name, search)
    if dataset is None:
        raise _unknown_name(name, search)
    return dataset


def _look_up(name: dataset_names.DatasetName, search: _Search) -> Dataset | None:
    folder = dataset_names.find_dataset(search.dirs, name)
    if folder is not None:
        return tfds_metadata.dataset_in(folder)
    for reading in name.readings():
        dataset = dataset_names.catalog_dataset(
            reading.name, reading.config, reading.version, shown=name.shown
        )
        if dataset is not None:
            return dataset
    return None


def _unknown_name(name: dataset_names.DatasetName, search: _Search) -> DatasetError:
    folders = ", ".join(printable(str(folder)) for folder in search.dirs)
    text = f"no dataset {quoted(name.shown)} in {folders} or the built-in catalog"
    here = [str(found) for found in dataset_names.list_datasets(search.dirs, name.name)]
    here += dataset_names.catalog_titles(name.name)
    if here:
        here = nearest_first(name.shown, here) if name.config else list(dict.fromkeys(here))
        return DatasetError(f"{text}; there is: {choices(here)}")
    known = sorted({*dataset_names.dataset_names(search.dirs), *dataset_names.catalog_names()})
    close = nearest(name.shown.partition("/")[0].partition(":")[0], known)
    cure = f"did you mean {either(close)}?" if close else "shardctl list shows what there is"
    return DatasetError(f"{text}; {cure}")


# Several datasets read as one, split by split.


def merge_datasets(datasets: Sequence[Dataset]) -> Dataset:
    """Return one dataset whose splits are those of all, one dataset's shards after another's.

    Name, config, version and order are the first one's, and the splits are in the order in which
    they first appear (`tfds.builder_from_directories`; its own order of splits is random). The
    names of the datasets may differ, as in TFDS; their file formats may not, since one reader
    reads them all.

    Raises:
        DatasetError: no dataset, two file formats or compressions, or a record file that is
            counted twice.
    """
    if not datasets:
        raise DatasetError("no dataset given")
    first, *others = datasets
    if not others:
        return first
    for other in others:
        for mine, theirs in (
            (f"{first.file_format} files", f"{other.file_format} files"),
            (first.compression or "no compression", other.compression or "no compression"),
        ):
            if mine != theirs:
                raise DatasetError(
                    f"{quoted(first.title)} has {mine} and {quoted(other.title)} {theirs}; "
                    "datasets read as one have one file format and one compression"
                )
    _refuse_files_twice(datasets)
    # In the order in which splits first appear, each with its parts in the order of the datasets.
    parts: dict[str, list[Split]] = {}
    for dataset in datasets:
        for split in dataset.splits:
            parts.setdefault(split.name, []).append(split)
    return replace(
        first,
        splits=tuple(_joined(splits) for splits in parts.values()),
        folders=tuple(folder for dataset in datasets for folder in folders_of(dataset)),
        notes=tuple(note for dataset in datasets for note in dataset.notes),
        damaged=tuple(finding for dataset in datasets for finding in dataset.damaged),
    )


def _refuse_files_twice(datasets: Sequence[Dataset]) -> None:
    """Refuse a record file that two patterns mean; of metadata TFDS reads a folder twice, too."""
    paths = Counter(
        os.path.join(files.data_dir or "", name)
        for dataset in datasets
        if dataset.is_counted
        for split in dataset.splits
        for files in split.files
        for name in files
    )
    twice = [path for path, count in paths.items() if count > 1]
    if twice:
        raise DatasetError(
            f"record file {quoted(min(twice), 200)} is there twice; datasets read as "
            "one have files of their own"
        )


def _joined(parts: Sequence[Split]) -> Split:
    if len(parts) == 1:
        return parts[0]
    stated = [part.num_bytes for part in parts if part.num_bytes is not None]
    on_disk = [part.shard_bytes for part in parts if part.shard_bytes is not None]
    sizes = tuple(size for sizes in on_disk for size in sizes)
    digests = [part.shard_digests or (None,) * part.num_shards for part in parts]
    return Split(
        name=parts[0].name,
        shard_lengths=tuple(length for part in parts for length in part.shard_lengths),
        files=tuple(files for part in parts for files in part.files),
        num_bytes=sum(stated) if stated else None,
        shard_bytes=sizes if len(on_disk) == len(parts) else None,
        shard_digests=tuple(chain(*digests)) if any(map(any, digests)) else None,
    )
