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
from dataclasses import replace
from pathlib import Path

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.text import choices, printable, quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME, DEFAULT_TEMPLATE, FEATURES_FILENAME
from shardctl.errors import DatasetError, UsageError
from shardctl.files.stores.stores import is_remote
from shardctl.readers.index.tfds_metadata import TfdsMetadata, plan_tfds_metadata
from shardctl.tfds.imports import (
    OtherThreadsAlone,
    quiet_tensorflow,
    tensorflow,
    tensorflow_datasets,
)
from shardctl.tfds.metadata.features import FeaturesLike, FoundFeatures, find_features
from shardctl.tfds.metadata.first_records import check_first_records
from shardctl.tfds.metadata.place import place_files

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
        # What it says of its progress is for notebooks; what other threads print is shown.
        with contextlib.redirect_stdout(OtherThreadsAlone(sys.stdout)):
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
