"""The name and version of a dataset, by the folder that its files are in."""

from __future__ import annotations

import re

from shardctl.files.stores.stores import is_remote
from shardctl.readers.dataset_name import snake_case, version_key
from shardctl.readers.index.naming.split_words import split_word

# Folders that are called by what is in them. Those that are called by a format, `parquet`, are not
# among them: what is above them is as often a disk, or a project, as a dataset.
_PLAIN = re.compile(
    r"data|dataset|datasets|files|shards?|records?|default|main|raw|tmp|snapshots",
    re.IGNORECASE,
)
# Folders of Hugging Face's caches: fingerprints and commits, and what is of the hub.
_HASH = re.compile(r"[0-9a-f]{16}|[0-9a-f]{40}|[0-9a-f]{64}")
_OF_HUB = re.compile(r"datasets--(.+--)?")


def dataset_of_folder(root: str) -> tuple[str | None, str | None]:
    """Return name and version as folders of TFDS say them, `mnist/3.0.1`, else the folder's name.

    Folders that are called as a split, `data`, or by a hash, say nothing of the name where one
    above does. It
    is made a name that TFDS takes; None where there is nothing to make it of.

    >>> dataset_of_folder("/data/mnist/3.0.1"), dataset_of_folder("/d/ImageNet-1k/data/train")
    (('mnist', '3.0.1'), ('image_net_1k', None))
    >>> dataset_of_folder("cache/squad/plain_text/0.0.0/7b6d24c440a36b68")[0]
    'plain_text'
    >>> dataset_of_folder("hub/datasets--me--digits/snapshots/" + 40 * "a" + "/data")[0]
    'digits'
    >>> dataset_of_folder("gs://bucket"), dataset_of_folder("/data"), dataset_of_folder("/")
    (('bucket', None), ('data', None), (None, None))
    """
    path = root.partition("://")[2] if is_remote(root) else root
    parts = [part for part in path.split("/") if part]
    version = None
    plain = None
    named = [part for part in parts if not _HASH.fullmatch(part)] or parts
    for part in reversed(named):
        if version is None and version_key(part) and plain is None:
            version = part
            continue
        name = valid_name(_OF_HUB.sub("", part, count=1))
        if name is None:
            continue
        if not (_PLAIN.fullmatch(part) or split_word(part)):
            return name, version
        plain = plain or name
    return plain, version


def valid_name(text: str) -> str | None:
    """Return a text as a name that TFDS takes: a letter, then letters, digits and `_`.

    >>> valid_name("My Data-v2"), valid_name("2012"), valid_name("…")
    ('my_data_v2', 'd_2012', None)
    """
    name = re.sub(r"_+", "_", snake_case(re.sub(r"[^A-Za-z0-9_]", "_", text))).strip("_")
    return (name if name[0].isalpha() else f"d_{name}") if name else None
