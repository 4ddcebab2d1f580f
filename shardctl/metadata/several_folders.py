"""Several datasets read as one, split by split."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shardctl.base.text import quoted
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import folders_of
from shardctl.errors import DatasetError


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
        if other.file_format != first.file_format:
            raise DatasetError(
                f"{quoted(first.title)} is in {first.file_format} and {quoted(other.title)} "
                f"in {other.file_format}; datasets read as one must have one file format"
            )
        if other.compression != first.compression:
            said = (dataset.compression or "no compression" for dataset in (first, other))
            raise DatasetError(
                f"{quoted(first.title)} and {quoted(other.title)} have {' and '.join(said)}; "
                "tf.data reads files of one compression"
            )
    _refuse_files_twice(datasets)
    parts: dict[str, list[Split]] = {}
    for dataset in datasets:
        for split in dataset.splits:
            parts.setdefault(split.name, []).append(split)
    joined = tuple(_joined(splits) for splits in parts.values())
    return replace(
        first,
        splits=joined,
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
    return Split(
        name=parts[0].name,
        shard_lengths=tuple(length for part in parts for length in part.shard_lengths),
        files=tuple(files for part in parts for files in part.files),
        num_bytes=sum(stated) if stated else None,
        shard_bytes=tuple(size for sizes in on_disk for size in sizes)
        if len(on_disk) == len(parts)
        else None,
    )
