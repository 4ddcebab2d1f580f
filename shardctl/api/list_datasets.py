"""`shardctl.read_dataset` and `list_datasets`: what references and names lead to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from shardctl.base.arguments import checked
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata import dataset_names
from shardctl.metadata.project_file import Project
from shardctl.metadata.reference import read_dataset as read
from shardctl.metadata.tfds_metadata import dataset_in
from shardctl.stores.stores import RemotePath, answers
from shardctl.verbs.list.answer import DatasetList, ListedDataset


def read_dataset(
    *refs: str | os.PathLike[str],
    data_dir: str | os.PathLike[str] | None = None,
    cache: bool = True,
) -> Dataset:
    """Return the dataset that a reference stands for, or several references as one dataset.

    Args:
        refs: each a folder with dataset_info.json, a layout.yaml, `name[/config][:version]`, which
            is looked up in data dirs and then in the built-in catalog, or record files without
            metadata, which are counted: a file, a folder, a glob, `prefix@1024`.
        data_dir: a folder or URL to look into before `TFDS_DATA_DIR` and `~/tensorflow_datasets`.
        cache: take counts of files that have not changed from the user's cache folder, and keep new
            ones there.

    Returns:
        The dataset, which every function takes in place of a reference.

    Raises:
        DatasetError: a reference that leads nowhere, or to something broken.

    >>> import shardctl
    >>> shardctl.read_dataset("mnist")
    <Dataset mnist:3.0.1: train of 60,000 examples in 1 shard, test of 10,000 examples in 1 shard>
    """
    return read(refs, data_dir=data_dir, cache=cache)


@checked
def list_datasets(*words: str, data_dir: str | os.PathLike[str] | None = None) -> DatasetList:
    """Return the datasets that a name leads to: those in data dirs, then the built-in layouts.

    Args:
        words: what each has in its name, config, version or format; all of them for none.
        data_dir: a folder or URL to look into before `TFDS_DATA_DIR` and `~/tensorflow_datasets`.

    Returns:
        The folders that were searched, and the datasets in the order in which a name is looked up;
        those with broken metadata have a `problem`.

    Raises:
        DatasetError: `data_dir` is no folder on this machine, or its place cannot be asked.

    >>> import shardctl
    >>> [found.title for found in shardctl.list_datasets("cifar100").built_in]
    ['cifar100:3.0.2']
    """
    return datasets_in(dataset_names.data_dirs(data_dir, Project()), words)


def datasets_in(dirs: dataset_names.DataDirs, words: Sequence[str] = ()) -> DatasetList:
    """Return the datasets in some data dirs, and the built-in layouts, that have all words."""
    listed = DatasetList(
        data_dirs=tuple(map(str, dirs)),
        in_data_dirs=tuple(_read_all(dataset_names.list_datasets(dirs))),
        built_in=tuple(
            ListedDataset(
                name=dataset.name, config=dataset.config, version=dataset.version, dataset=dataset
            )
            for name in dataset_names.catalog_names()
            for dataset in dataset_names.catalog_datasets(name)
        ),
    )
    return listed.having(words) if words else listed


def _read_all(found: Sequence[dataset_names.FoundDataset]) -> Iterator[ListedDataset]:
    at_once = any(isinstance(one.path, RemotePath) for one in found)
    return answers(_read, found, at_once=at_once)


def _read(found: dataset_names.FoundDataset) -> ListedDataset:
    """Return a dataset with its metadata, or with what is broken in it."""
    dataset, problem = None, None
    try:
        dataset = dataset_in(found.path)
    # One broken folder must not hide the others: what is wrong with it is part of the answer.
    except DatasetError as error:
        problem = str(error)
    return ListedDataset(
        name=found.name,
        config=found.config,
        version=found.version,
        path=str(found.path),
        dataset=dataset,
        problem=problem,
    )
