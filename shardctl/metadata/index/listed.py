"""What `tf.data.Dataset.list_files` makes of record files that were counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from shardctl.base.text import counted, quoted
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.metadata.index.listing import list_files
from shardctl.metadata.index.naming.folders import folders_of
from shardctl.metadata.index.naming.globs import (
    ANY_FOLDERS,
    expanded,
    glob_regex,
    is_glob,
    sharded_regex,
)
from shardctl.stores.paths import absolute, as_bytes, is_remote, split_path
from shardctl.stores.stores import store_of


def listed_spec(pattern: str, dataset: Dataset, *, look: bool = True) -> str:
    """Return the spec that reads all files of a pattern in the order of their paths by bytes.

    dataset: what the pattern means as a reference. look: whether it is looked for what else the
    pattern matches, which tf.data would read too.

    Raises:
        UsageError: a pattern that means another thing to tf.data, or files that only one of the two
            reads, or in another order.
        DatasetError: the files cannot be listed.
    """
    whole = pattern if is_remote(pattern) else absolute(pattern)
    if look:
        _check_pattern(pattern, whole)
        _check_matches(pattern, whole)
    if dataset.file_format != "tfrecord":
        raise UsageError(
            f"list_files: {quoted(pattern, 200)} are {dataset.file_format} files, and "
            "TFRecordDataset reads TFRecord files"
        )
    splits = [split for split in dataset.splits if split.num_shards]
    for split in splits:
        if split.num_empty_shards:
            raise UsageError(
                f"list_files: {counted(split.num_empty_shards, 'file')} of {quoted(pattern, 200)} "
                "without examples: tf.data gives each its turn, which is not followed here; move "
                "them away"
            )
    # The splits as their first files lie, which has to be how all files lie.
    splits.sort(key=lambda split: as_bytes(next(_paths_of(dataset, split.name))))
    paths = chain.from_iterable(_paths_of(dataset, split.name) for split in splits)
    for before, after in pairwise(paths):
        if as_bytes(before) > as_bytes(after):
            names = [quoted(split_path(path)[1], 80) for path in (before, after)]
            raise UsageError(
                f"list_files: {names[0]} is read before {names[1]} here, by their numbers or "
                "splits, and tf.data sorts the paths as text; read(train, data='..', "
                "file_order=[..]) takes a list of the files in that order"
            )
    return "+".join(split.name for split in splits)


def _paths_of(dataset: Dataset, name: str) -> Iterator[str]:
    for part in dataset.split(name).files:
        folder = "" if part.data_dir is None else f"{part.data_dir.rstrip('/')}/"
        yield from (folder + path for path in part)


def _check_pattern(pattern: str, whole: str) -> None:
    name = split_path(pattern)[1]
    braces = next(expanded(pattern)) != pattern
    said = None
    if braces or sharded_regex(name) is not None:
        said = "is not expanded by tf.data; write a glob, as train-*-of-00008"
    elif ANY_FOLDERS in pattern.split("/"):
        said = "has a part **, which tf.data reads as *, one folder"
    elif not is_glob(pattern) and store_of(whole).is_folder(whole):
        said = "is a folder, which tf.data would read as a file; write a glob, as folder/*"
    if said is not None:
        raise UsageError(f"list_files: {quoted(pattern, 200)} {said}")


def _check_matches(pattern: str, whole: str) -> None:
    """Refuse files and folders that tf.data would read as record files, and that are none."""
    folder, name = split_path(whole)
    if not is_glob(pattern):
        return
    listing = list_files([whole])
    matches = glob_regex(name).fullmatch
    others = (file.path for file in (*listing.ignored, *listing.sidecars))
    found = next((path for path in others if matches(split_path(path)[1])), None)
    if found is None:
        found = next(_folders_matching(folder, name), None)
    if found is not None:
        raise UsageError(
            f"list_files: {quoted(pattern, 200)} matches {quoted(found, 200)} too, which is no "
            "record file, and tf.data would read it as one; write a pattern of the record files"
        )


def _folders_matching(folder: str, name: str) -> Iterator[str]:
    store = store_of(folder)
    for inner in folders_of(store, folder):
        for found in store.subfolders(inner.rstrip("/") or "/"):
            if glob_regex(name).fullmatch(found):
                yield inner + found
