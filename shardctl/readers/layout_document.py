"""Datasets as layout documents, which `layout_file.py` reads back."""

from __future__ import annotations

import os

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.tfds_rules import DEFAULT_TEMPLATE


def layout_document(dataset: Dataset) -> dict[str, object]:
    """Return the layout document that `dataset_from_layout` reads back as the same dataset.

    A template is written only where the file names are not TFDS's own. Parts in several folders
    are named one by one, from the folder they share.

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> split = Split(name="train", shard_lengths=(3, 4))
    >>> layout_document(Dataset(name="toy", splits=(split,)))["splits"]
    {'train': {'shard_lengths': [3, 4]}}
    """
    folders = {part.data_dir for split in dataset.splits for part in split.files}
    shared = dataset.data_dir
    if len(folders) > 1 and None not in folders:
        shared = os.path.commonpath([folder for folder in folders if folder is not None])
    elif len(folders) == 1:
        shared = folders.pop()
    document: dict[str, object] = {"name": dataset.name}
    optional = {
        "config": dataset.config,
        "version": dataset.version,
        "file_format": dataset.file_format,
        "ordered": dataset.ordered or None,
        "data_dir": shared,
    }
    document |= {key: value for key, value in optional.items() if value is not None}
    document["splits"] = {
        split.name: _split_document(split, dataset, shared) for split in dataset.splits
    }
    return document


def _split_document(split: Split, dataset: Dataset, shared: str | None) -> dict[str, object]:
    document: dict[str, object] = {"shard_lengths": list(split.shard_lengths)}
    if split.num_bytes is not None:
        document["num_bytes"] = split.num_bytes
    if not split.files:
        return document
    part = split.files[0]
    usual = ShardFiles.from_template(
        DEFAULT_TEMPLATE,
        dataset=dataset.name,
        split=split.name,
        file_format=dataset.file_format,
        num_shards=split.num_shards,
        data_dir=shared,
    )
    if len(split.files) > 1 or part.names is not None or part.data_dir != shared:
        document["filenames"] = [
            name
            if part.data_dir == shared
            else os.path.relpath(os.path.join(part.data_dir or "", name), shared)
            for part in split.files
            for name in part
        ]
    elif part != usual:
        pattern = part.pattern.replace("{", "{{").replace("}", "}}")
        document["filepath_template"] = pattern.replace("\0", "{SHARD_INDEX}")
    return document
