"""Which datasets do names lead to, on this machine and in the built-in catalog?"""

from __future__ import annotations

import os

from shardctl.core.arguments.checked import checked
from shardctl.planning.list import DatasetList, ListedDataset
from shardctl.readers.catalog import catalog_names, catalog_titles
from shardctl.readers.data_dirs import DataDirs, data_dirs
from shardctl.readers.data_dirs import list_datasets as found_in
from shardctl.readers.dataset_name import parse_dataset_name
from shardctl.readers.project_file import Project


@checked
def list_datasets(data_dir: str | os.PathLike[str] | None = None) -> DatasetList:
    """Return the datasets that a name leads to: those in data dirs, then the built-in layouts.

    Args:
        data_dir: a folder to look into before `TFDS_DATA_DIR` and `~/tensorflow_datasets`.

    Returns:
        The folders that were searched, and the datasets in the order in which a name is looked up.

    Raises:
        DatasetError: `data_dir` is no folder on this machine.

    >>> import shardctl
    >>> [found.title for found in shardctl.list_datasets().built_in if found.name == "mnist"]
    ['mnist:3.0.1']
    """
    return datasets_in(data_dirs(data_dir, os.environ, Project()))


def datasets_in(dirs: DataDirs) -> DatasetList:
    """Return the datasets in some data dirs, and the built-in layouts."""
    titles = [title for name in catalog_names() for title in catalog_titles(name)]
    return DatasetList(
        data_dirs=tuple(map(str, dirs.local())),
        in_data_dirs=tuple(
            ListedDataset(
                name=found.name, config=found.config, version=found.version, path=str(found.path)
            )
            for found in found_in(dirs)
        ),
        built_in=tuple(
            ListedDataset(name=parts.name, config=parts.config, version=parts.version)
            for title in titles
            if (parts := parse_dataset_name(title)) is not None
        ),
    )
