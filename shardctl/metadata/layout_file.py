"""Layout files: a dataset in a few lines of YAML, whether or not it exists yet.

name: toy
version: 1.0.0
splits:
  train: {num_examples: 1281167, num_shards: 1024, num_bytes: 146999114192}
  test: {shard_lengths: [500, 500, 321]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shardctl.base.text import printable
from shardctl.dataset.dataset import Dataset, Split
from shardctl.files import fields
from shardctl.files.parse import read_document
from shardctl.metadata.index.document import is_index_document, read_index_document
from shardctl.metadata.layout_document import (
    ORIGIN,
    dataset_from_layout,
    dataset_of_document,
    folder_of_layout,
    is_layout_document,
)
from shardctl.stores.paths import AnyPath, RemotePath, absolute


def read_layout_file(path: AnyPath, *, names_only: bool = False) -> Dataset:
    """Return the dataset a layout file describes; `.json` files are read as JSON.

    The document that `layout` writes is one too. With `names_only` its splits have no shards, and
    what else the file says is not looked at: for what must be quick, a TAB.

    Raises:
        DatasetError: the file cannot be read, or breaks a rule of `dataset_from_layout`.
    """
    document = read_document(path)

    def data_dir(value: object) -> str | None:
        return folder_of_layout(value, path.parent)

    with fields.said_about(printable(str(path))):
        if names_only:
            return _split_names(document, path.stem)
        if is_layout_document(document):
            dataset = dataset_of_document(document, data_dir)
        elif is_index_document(document):
            dataset = read_index_document(document, data_dir).dataset
        else:
            dataset = dataset_from_layout(document, stem=path.stem, folder=path.parent)
        remote = isinstance(path, RemotePath)
        return replace(dataset, reference=str(path) if remote else absolute(str(path)))


def _split_names(document: object, name: str) -> Dataset:
    """Return the splits of any layout file, without their shards."""
    items = fields.mapping(document, "a layout").get("splits")
    if not isinstance(items, Mapping):
        items = [
            fields.mapping(item, "a split").get("name") for item in fields.items(items, "splits")
        ]
    splits = (Split(name=fields.split_name(key), shard_lengths=()) for key in items)
    return Dataset(name=name, splits=tuple(splits), origin=ORIGIN)
