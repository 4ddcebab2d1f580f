"""Layout files: a dataset in a few lines of YAML, whether or not it exists yet.

name: toy
version: 1.0.0
splits:
  train: {num_examples: 1281167, num_shards: 1024, num_bytes: 146999114192}
  test: {shard_lengths: [500, 500, 321]}
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.packed_ints import PackedInts
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.text import printable, quoted
from shardctl.core.tfds_rules import DEFAULT_FILE_FORMAT, DEFAULT_TEMPLATE
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.file_text import absolute
from shardctl.files.stores.remote_path import AnyPath, RemotePath
from shardctl.files.yaml_text import read_document
from shardctl.readers.index.document import is_index_document, read_index_document
from shardctl.readers.layout_document import (
    ORIGIN,
    check_totals,
    dataset_of_document,
    folder_of_layout,
    is_layout_document,
    path_text,
)

MAX_NUM_SHARDS = 10_000_000
LAYOUT_KEYS = (
    "name", "config", "version", "file_format", "ordered", "disable_shuffling",
    "filepath_template", "data_dir", "splits",
)  # fmt: skip
SPLIT_KEYS = (
    "shard_lengths", "num_examples", "num_shards", "num_bytes", "filepath_template", "filenames",
)  # fmt: skip


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


def dataset_from_layout(document: object, *, stem: str, folder: AnyPath) -> Dataset:
    """Return the dataset a parsed layout describes.

    `name` is the file's stem where it is not given; `data_dir` is relative to the file's folder;
    `ordered` may also be called `disable_shuffling`, as in TFDS.

    Raises:
        DatasetError: an unknown key, a missing or an ill-formed one.
    """
    layout = fields.mapping(document, "a layout")
    fields.only_keys(layout, LAYOUT_KEYS, "a layout")
    if "ordered" in layout and "disable_shuffling" in layout:
        raise DatasetError("ordered and disable_shuffling are one setting; give one of them")
    naming = _Naming(
        dataset=fields.name(_given(layout, "name", stem), "name"),
        file_format=fields.file_format(_given(layout, "file_format", DEFAULT_FILE_FORMAT)),
        data_dir=folder_of_layout(layout.get("data_dir"), folder),
        template=_given(layout, "filepath_template", DEFAULT_TEMPLATE),
    )
    return Dataset(
        name=naming.dataset,
        config=fields.optional_name(layout.get("config"), "config"),
        version=fields.optional_name(layout.get("version"), "version"),
        file_format=naming.file_format,
        data_dir=naming.data_dir,
        ordered=any(
            fields.flag(_given(layout, key, False), key) for key in ("ordered", "disable_shuffling")
        ),
        splits=tuple(_splits(_given(layout, "splits", None), naming)),
        origin=ORIGIN,
    )


@dataclass(frozen=True, kw_only=True)
class _Naming:
    """What the file names of every split are made of."""

    dataset: str
    file_format: str
    data_dir: str | None
    template: object

    def files(self, split: Mapping[str, object], name: str, num_shards: int) -> ShardFiles:
        """Return the shards' files: named one by one, or from the split's or layout's template."""
        filenames = _given(split, "filenames", None)
        if filenames is not None:
            names = tuple(_filenames(filenames))
            return ShardFiles(data_dir=self.data_dir, num_shards=num_shards, names=names)
        return ShardFiles.from_template(
            path_text(_given(split, "filepath_template", self.template), "filepath_template"),
            dataset=self.dataset,
            split=name,
            file_format=self.file_format,
            num_shards=num_shards,
            data_dir=self.data_dir,
        )


def _given(value: Mapping[str, object], key: str, default: object) -> object:
    """Return the value of a key; nothing (null) is the same as no key."""
    found = value.get(key)
    return default if found is None else found


def _filenames(value: object) -> Iterator[str]:
    for item in fields.items(value, "filenames"):
        path = path_text(item, "a file name")
        parts = path.replace("\\", "/").split("/")
        if os.path.isabs(path) or ".." in parts or parts[-1] in ("", "."):
            raise DatasetError(f"file name {quoted(path)} leaves the dataset's folder")
        yield path


def _splits(value: object, naming: _Naming) -> Iterator[Split]:
    if isinstance(value, list):
        items = [(fields.mapping(item, "a split").get("name"), item) for item in value]
    elif isinstance(value, Mapping):
        items = list(value.items())
    else:
        raise DatasetError(
            f"splits must be a mapping of split names, not {fields.shown(value)}; "
            "as in: splits: {train: {shard_lengths: [10, 10]}}"
        )
    known = ("name", *SPLIT_KEYS) if isinstance(value, list) else SPLIT_KEYS
    for key, item in items:
        name = fields.split_name(key)
        with fields.said_about(f"split {quoted(name)}"):
            split = fields.mapping(item, "its value")
            fields.only_keys(split, known, "a split")
            yield _split(name, split, naming)


def _split(name: str, split: Mapping[str, object], naming: _Naming) -> Split:
    stated = {
        key: fields.count(split[key], key)
        for key in ("num_examples", "num_shards", "num_bytes")
        if split.get(key) is not None
    }
    num_bytes = stated.get("num_bytes")
    if split.get("shard_lengths") is not None:
        lengths = _shard_lengths(split["shard_lengths"])
        check_totals(stated, lengths, hint="; give one of them")
        files = naming.files(split, name, len(lengths))
        return Split(name=name, shard_lengths=lengths, files=(files,), num_bytes=num_bytes)
    missing = [key for key in ("num_examples", "num_shards") if key not in stated]
    if missing:
        raise DatasetError(
            f"no {' and no '.join(missing)}; give shard_lengths, or num_examples and num_shards"
        )
    num_examples, num_shards = stated["num_examples"], stated["num_shards"]
    if not 1 <= num_shards <= MAX_NUM_SHARDS:
        raise DatasetError(f"num_shards {num_shards} is not between 1 and {MAX_NUM_SHARDS}")
    if round(num_examples * num_shards / num_shards) != num_examples:
        raise DatasetError(
            f"num_examples {num_examples} is too large for TFDS's boundaries, which are floats; "
            "give shard_lengths"
        )
    return Split.even(
        name=name,
        num_examples=num_examples,
        num_shards=num_shards,
        files=(naming.files(split, name, num_shards),),
        num_bytes=num_bytes,
    )


def _shard_lengths(value: object) -> PackedInts:
    lengths = fields.items(value, "shard_lengths")
    if len(lengths) > MAX_NUM_SHARDS:
        raise DatasetError(f"{len(lengths)} shard_lengths; at most {MAX_NUM_SHARDS} are read")
    return fields.counts(lengths, "length of shard {}")
