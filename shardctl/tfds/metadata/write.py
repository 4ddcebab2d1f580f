"""The metadata of TFDS for record files without: dataset_info.json and features.json, beside them.

TFDS's own `write_metadata` makes them, in a temporary folder with one empty file a split, whose
names tell it the splits; the templates of the real files come with the lengths. Then the files that
it wrote are moved to their place, dataset_info.json last: a folder without it is no dataset.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.phrase import phrase
from shardctl.core.text import choices, printable, quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME, DEFAULT_TEMPLATE, FEATURES_FILENAME
from shardctl.errors import DatasetError, ShardctlError, UsageError
from shardctl.files.atomic import new_file
from shardctl.files.stores.stores import is_remote
from shardctl.readers.index.tfds_metadata import TfdsMetadata, plan_tfds_metadata
from shardctl.tfds.imports import quiet_tensorflow, tensorflow, tensorflow_datasets
from shardctl.tfds.metadata.features import (
    FeaturesLike,
    FoundFeatures,
    check_first_records,
    find_features,
)

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


@checked
def write_metadata(
    dataset: DatasetLike,
    folder: str | os.PathLike[str],
    features: FeaturesLike,
    *,
    force: bool = False,
) -> TfdsMetadata:
    """Write the metadata by which `tfds.builder_from_directory(folder)` reads record files.

    Args:
        dataset: the files with their lengths, as `shardctl.index` counts them, or a layout file.
        folder: the folder of the files, or one above it; remote where TensorFlow reads, as gs://.
        features: of TFDS, or the path of a features.json, `module:function` that returns them,
            `module:Builder`, or the name of a dataset of TFDS that has the same.
        force: replace metadata that is there already.

    Returns:
        A TfdsMetadata; where `renames` has files whose names TFDS cannot be told of, nothing was
        written.

    Raises:
        UsageError: metadata is there already; a name or a place that TFDS does not take.
        DatasetError: files that TFDS does not read, or features that do not fit the records.
        MissingDependencyError: TensorFlow or TFDS is not installed.
    """
    dataset = as_dataset(dataset)
    folder = os.fspath(folder)
    folder = folder if is_remote(folder) else os.path.expanduser(folder)
    planned = plan_tfds_metadata(dataset, folder, _version(dataset, folder))
    if not planned.readable:
        return planned
    with quiet_tensorflow():
        check_folder(folder)
        found = find_features(features)
        doubts = check_first_records(dataset, found.features)
        with tempfile.TemporaryDirectory() as made:
            _make(dataset, planned, found, made)
            if _is_own(found.source, folder):
                Path(made, FEATURES_FILENAME).unlink()
            written = place_files(Path(made), folder, last=DATASET_INFO_FILENAME, force=force)
    return replace(planned, written=tuple(written), warnings=(*planned.warnings, *doubts))


def _version(dataset: Dataset, folder: str) -> str:
    """Return the version that the dataset has, else that its folder is named, else 1.0.0."""
    if dataset.version is not None:
        if not _VERSION.fullmatch(dataset.version):
            raise UsageError(
                f"version {quoted(dataset.version)}: TFDS takes three numbers, as in 1.0.0"
            )
        return dataset.version
    path = folder if is_remote(folder) else os.path.abspath(folder)
    name = path.rstrip("/").rpartition("/")[2]
    return name if _VERSION.fullmatch(name) else "1.0.0"


def _is_own(source: str, folder: str) -> bool:
    """Return whether the features are those that lie there already; the file stays as it is."""
    own = f"{folder.rstrip('/')}/{FEATURES_FILENAME}"
    if is_remote(source) or is_remote(own):
        return source == own
    return os.path.realpath(source) == os.path.realpath(own)


def _make(dataset: Dataset, planned: TfdsMetadata, found: FoundFeatures, folder: str) -> None:
    tfds = tensorflow_datasets()
    naming = tensorflow_datasets("core.naming")
    split_info = tensorflow_datasets("core.splits").SplitInfo
    infos, placeholders = [], []
    for split, told in zip(dataset.splits, planned.splits, strict=True):
        template = naming.ShardedFileTemplate(
            data_dir=folder,
            template=DEFAULT_TEMPLATE,
            dataset_name=dataset.name,
            split=split.name,
            filetype_suffix=dataset.file_format,
        )
        placeholders.append(Path(template.sharded_filepath(shard_index=0, num_shards=1)))
        placeholders[-1].touch()
        infos.append(
            split_info(
                name=split.name,
                shard_lengths=list(split.shard_lengths),
                num_bytes=split.num_bytes or 0,
                filename_template=template.replace(template=told.template),
            )
        )
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it says of its progress is no answer
            tfds.folder_dataset.write_metadata(
                data_dir=folder,
                features=found.features,
                split_infos=infos,
                version=planned.version,
                check_data=False,
                disable_shuffling=dataset.ordered,
                **found.said,
            )
    except Exception as error:
        said = printable(" ".join(str(error).split()), 300)
        raise DatasetError(f"TFDS writes no metadata of {quoted(dataset.title)}: {said}") from error
    for placeholder in placeholders:
        placeholder.unlink()


def check_folder(folder: str) -> None:
    """Refuse a remote folder that TFDS would not read.

    Where TensorFlow is installed, TFDS goes to all that is remote through its file systems.

    Raises:
        UsageError: it has none for the place.
    """
    scheme, separator, _ = folder.partition("://")
    schemes: list[str] = tensorflow().io.gfile.get_registered_schemes() if separator else []
    if separator and scheme not in schemes:
        known = choices(f"{known}://" for known in sorted(schemes) if known not in ("", "ram"))
        raise UsageError(
            f"{quoted(folder, 200)}: TFDS reads there through TensorFlow, which has no file system "
            f"for {scheme}:// here; it has {known}. Copy the files, or write a layout with -o"
        )


# Several files of one folder put into another, all or none.


def place_files(made: Path, folder: str, *, last: str, force: bool) -> list[str]:
    """Put the files of `made` into a folder, one of them last, and return the names of them all.

    A file that is there with the same contents stays as it is. Where one cannot be written, those
    before it are as they were.

    Raises:
        UsageError: other files of these names are there, and `force` was not said; or one cannot
            be written.
    """
    names = sorted(os.listdir(made), key=lambda name: (name == last, name))
    target = _Folder(folder)
    contents = {name: (made / name).read_bytes() for name in names}
    there = {name: target.read(name) for name in names}
    changed = [name for name in names if there[name] != contents[name]]
    in_the_way = [name for name in changed if there[name] is not None]
    if in_the_way and not force:
        raise UsageError(
            phrase(
                "{} has {} already, of other contents; {force=True} replaces what is there",
                quoted(folder, 200),
                choices(in_the_way),
            )
        )
    done: list[str] = []
    try:
        for name in changed:
            done.append(name)
            target.write(name, contents[name])
    except BaseException:
        for name in reversed(done):
            with contextlib.suppress(Exception):
                target.restore(name, there[name])
        raise
    return names


class _Folder:
    """A folder that epath reaches, as TFDS does; a file or object is there whole or not at all."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path: Any = Path(folder)
        if is_remote(folder):
            self._path = tensorflow_datasets("core.utils.file_utils").epath.Path(folder)

    @contextlib.contextmanager
    def _failing(self, name: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, ShardctlError):
            raise
        except Exception as error:
            lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
            said = printable(lines[0] if lines else type(error).__name__, 200)
            path = quoted(f"{self._folder}/{name}", 200)
            raise UsageError(f"cannot write {path}: {said}") from error

    def read(self, name: str) -> bytes | None:
        try:
            with self._failing(name):
                data: bytes = (self._path / name).read_bytes()
                return data
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with self._failing(name):
            if not isinstance(self._path, Path):
                (self._path / name).write_bytes(data)
                return
            with new_file(str(self._path / name)) as file:
                file.write(data)

    def restore(self, name: str, data: bytes | None) -> None:
        if data is None:
            (self._path / name).unlink()
        else:
            self.write(name, data)
