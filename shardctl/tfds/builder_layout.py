"""The dataset behind a TFDS builder: its splits, shards and files, without reading any of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from shardctl.core.arguments.checked import checked
from shardctl.core.arguments.kinds import Kind
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.folders import folders_of
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.files.stores.remote_path import path_of
from shardctl.readers.features import read_example_size
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.tfds.record_files import RecordFiles


def _is_builder(value: Any) -> Any:
    # By what is used of it, since TFDS is not imported before it is needed.
    if not (hasattr(value, "info") and hasattr(value, "data_dir")):
        raise UsageError('a TFDS builder is needed, as tfds.builder("mnist")')
    return value


Builder = Annotated[Any, Kind(take=_is_builder, needed="a TFDS builder", several="TFDS builders")]


@checked
def dataset_of(builder: Builder) -> Dataset:
    """Return what `builder.info` says of the files, as `shardctl` reads it from the metadata.

    `builder` is any `tfds.core.DatasetBuilder` whose dataset is prepared, also one over several
    folders (`tfds.builder_from_directories`), whose splits TFDS lists in no fixed order.

    Raises:
        DatasetError: the builder has no splits, because nothing is prepared.
    """
    if isinstance(builder, RecordFiles):
        return builder.dataset
    info = builder.info
    splits = list(info.splits.values())
    if not splits:
        raise DatasetError(
            f"{info.full_name} has no splits: it is not prepared in {os.fspath(builder.data_dir)}; "
            "call builder.download_and_prepare() first"
        )
    config = builder.builder_config
    dataset = Dataset(
        name=info.name,
        config=None if config is None else config.name,
        version=str(info.version),
        file_format=info.file_format.value,
        data_dir=os.fspath(builder.data_dir),
        ordered=bool(info.disable_shuffling),
        splits=tuple(_split(split) for split in splits),
        origin="builder",
        features=partial(read_example_size, path_of(os.fspath(builder.data_dir))),
    )
    if not dataset.in_several_folders:
        return dataset
    return replace(dataset, folders=tuple(map(_with_metadata, folders_of(dataset))))


def _with_metadata(folder: Dataset) -> Dataset:
    """Return a folder as its metadata describes it, which a builder over several does not keep.

    Where that cannot be read, or says otherwise by now, it stays as the builder knows it.
    """
    if folder.data_dir is None:
        return folder
    try:
        found = read_tfds_folder(path_of(folder.data_dir))
    except DatasetError:
        return folder
    known, here = ({s.name: s.shard_lengths for s in d.splits} for d in (folder, found))
    return found if known == here else folder


def in_order_of(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """Return the dataset with its splits in the order of `names`, those not named at the end."""
    rank = {name: index for index, name in enumerate(names)}
    splits = sorted(dataset.splits, key=lambda split: rank.get(split.name, len(rank)))
    return replace(dataset, splits=tuple(splits))


def _split(split: Any) -> Split:
    parts = list(_parts(split))
    return Split(
        name=split.name,
        shard_lengths=tuple(length for part in parts for length in part.shard_lengths),
        files=tuple(_files(part) for part in parts),
        num_bytes=int(split.num_bytes) or None,  # TFDS writes 0 where it does not know
    )


def _parts(split: Any) -> Iterator[Any]:
    """Yield the pieces of a split, one for each folder (TFDS core/splits.py, MultiSplitInfo)."""
    parts = getattr(split, "split_infos", None)
    if parts is None:
        yield split
        return
    for part in parts:
        yield from _parts(part)


def _files(split: Any) -> ShardFiles:
    template = split.filename_template
    if template is None:
        raise DatasetError(f"split {split.name!r} has no files that TFDS knows of")
    return ShardFiles.from_template(
        template.template,
        dataset=template.dataset_name or "",
        split=split.name,
        file_format=template.filetype_suffix or "",
        num_shards=len(split.shard_lengths),
        data_dir=os.fspath(template.data_dir),
    )
