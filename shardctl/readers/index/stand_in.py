"""Files of TFDS arranged by their names, until that has a module of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.readers.index.arrangement import ArrangedSplit, Arrangement

_TFDS = re.compile(r"(.+)-([A-Za-z0-9_]+)\.([a-z_]+)-(\d{5,})-of-(\d{5,})")


def arrange(
    paths: Sequence[str], *, splits: Mapping[str, str], name: str | None = None
) -> Arrangement:
    """Return the files of folders as splits, by names as TFDS writes them."""
    found: dict[str, list[StoredFile]] = {}
    file_format, root = "tfrecord", os.path.abspath(paths[0])
    for path in paths:
        for file in store_of(path).scan(os.path.abspath(path)):
            match = _TFDS.fullmatch(os.path.basename(file.path))
            if match:
                found.setdefault(match[2], []).append(file)
                file_format, name = match[3], name or match[1]
    return Arrangement(
        root=root,
        name=name,
        file_format=file_format,
        splits=tuple(
            ArrangedSplit(
                name=split,
                files=tuple(sorted(files, key=lambda file: file.path)),
                template="{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            )
            for split, files in sorted(found.items())
        ),
    )
