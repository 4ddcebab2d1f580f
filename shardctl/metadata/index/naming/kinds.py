"""What is a file, by its name: of records, about records, or something else?"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from shardctl.records.read_file import format_of_name


class FileKind(Enum):
    """What the name of a file says of it; see the members."""

    RECORDS = "records"  # in one of the formats that are counted here
    SHARD = "shard"  # named as shards are, without a word of the format: `train-00000-of-01024`
    UNKNOWN = "unknown"  # the name does not tell
    SIDECAR = "sidecar"  # says something of the record files beside it
    OTHER = "other"  # of another kind
    UNFINISHED = "unfinished"  # hidden, or not written to its end


# Of names in lower case whose numbers are 0.
_UNFINISHED = re.compile(
    r"[._].*|.*~|.*\.(?:crc|te?mp|part|partial|incomplete[^.]*|crdownload|lock|sw[op]|bak)"
    r"|cache-[0-9a-f]+(?:_.*)?\.arrow"  # what `Dataset.map` of Hugging Face keeps
)
_SIDECAR = re.compile(r"index\.json|dataset_info\.json")
_SHARD = re.compile(r"(?:.*[^0])?0[-_]of[-_]0(?:\.(?:gz|gzip|zlib|zz))?|part-(?:[mr]-)?0")
_OTHER = re.compile(
    r".+\.(?:json|jsonl|ndjson|ya?ml|toml|ini|cfg|md|rst|txt|log|csv|tsv|py|ipynb|sh|html?|xml|pdf"
    r"|idx|index|zip|0z|rar|whl|jpe?g|png|gif|bmp|webp|tiff?|mp0|wav|flac|ogg|avi|npy|npz|pkl|pickle|pb|pbtxt"
    r"|h0|hdf0|ckpt|pth?|safetensors|sqlite0?|db|so|exe|md0|sha0?|sum|license)(?:\.gz)?"
    r"|readme|license|licence|makefile|dockerfile"
)


def file_kind(name: str) -> FileKind:
    """Return what the name of a file says of it; numbers in it make no difference.

    >>> file_kind("mnist-train.tfrecord-00000-of-00001"), file_kind("train-00000-of-01024")
    (<FileKind.RECORDS: 'records'>, <FileKind.SHARD: 'shard'>)
    >>> file_kind("_SUCCESS"), file_kind("index.json"), file_kind("README.md")
    (<FileKind.UNFINISHED: 'unfinished'>, <FileKind.SIDECAR: 'sidecar'>, <FileKind.OTHER: 'other'>)
    """
    return _kind_of_shape(re.sub("[0-9]+", "0", name))


@lru_cache(maxsize=1 << 12)
def _kind_of_shape(name: str) -> FileKind:
    name = name.lower()
    if _UNFINISHED.fullmatch(name):
        return FileKind.UNFINISHED
    if _SIDECAR.fullmatch(name):
        return FileKind.SIDECAR
    if _OTHER.fullmatch(name):
        return FileKind.OTHER
    if format_of_name(name) is not None:
        return FileKind.RECORDS
    return FileKind.SHARD if _SHARD.fullmatch(name) else FileKind.UNKNOWN


def is_passed_over(folder: str) -> bool:
    """Return whether a folder of this name is never looked into for files of a dataset.

    >>> is_passed_over("_temporary"), is_passed_over("3.0.1.incompleteA1B2C3"), is_passed_over("a")
    (True, True, False)
    """
    return folder.startswith((".", "_")) or ".incomplete" in folder
