"""Listings of files that are only names, for tests of what names say."""

from __future__ import annotations

from collections.abc import Iterable

from shardctl.metadata.index.listing import Listing
from shardctl.stores.store import StoredFile

ROOT = "/data/digits"


def files_named(names: Iterable[str], folder: str = ROOT) -> list[StoredFile]:
    """Return files of one byte with these names below a folder."""
    return [StoredFile(path=f"{folder}/{name}", num_bytes=1) for name in names]


def listing_of(names: Iterable[str], folder: str = ROOT) -> Listing:
    """Return a listing of files with these names below a folder."""
    return Listing(root=folder, files=files_named(names, folder))


def tfds_names(
    dataset: str, split: str, num_shards: int, file_format: str = "tfrecord"
) -> list[str]:
    """Return names as TFDS's default template has them."""
    return [
        f"{dataset}-{split}.{file_format}-{index:05d}-of-{num_shards:05d}"
        for index in range(num_shards)
    ]
