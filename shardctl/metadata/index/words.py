"""What names of files and folders say: the kind of a file, its split, the dataset and version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from shardctl.base.tfds_rules import FILE_FORMATS
from shardctl.metadata.names import snake_case, version_key
from shardctl.records.read_file import format_of_name
from shardctl.stores.paths import is_remote

NUMBER = "\0"  # stands for a number; refused in every path, as is the next
RANDOM = "\1"  # stands for a word that is drawn at random
SPLIT = "\2"  # stands where the split is named
_WORDS = (
    "train|training|trn|validation|validate|valid|val|dev|develop|development|test|testing|tst|eval"
    "|evaluation|holdout|heldout|trainval|minival|minitrain|testdev|unlabell?ed|unsupervised"
)
_WORD = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_WORDS})(?:(?:19|20)[0-9][0-9])?(?![A-Za-z0-9])", re.IGNORECASE
)
# `split=extra`, as Hive names folders, may be of any name.
_FOLDER = re.compile(
    rf"(?:{_WORDS})(?:[-_]?(?:19|20)[0-9][0-9])?|(?P<hive>split=)[a-z]\w*", re.IGNORECASE
)
# TFDS core/naming.py, DEFAULT_FILENAME_TEMPLATE and _VAR_REGEX_MAPPING; the format one of TFDS's.
_TFDS = re.compile(
    r"(?P<dataset>[a-zA-Z]\w*)-(?P<split>[\w-]+)"
    rf"\.(?P<format>{'|'.join(FILE_FORMATS)})-{NUMBER}-of-{NUMBER}"
)


@dataclass(frozen=True, kw_only=True)
class NamedSplit:
    """What a name says: a split, and what stays of the name beside it.

    rest: names that differ in it are of other things. dataset: as TFDS's template says it.
    """

    split: str
    rest: str
    dataset: str | None = None


def named_split(folder: str, text: str) -> NamedSplit | None:
    """Return the split that a name speaks of, None where it speaks of none, or of two.

    folder: below the folder of the dataset, with a slash at its end; "" for that itself. text: the
    name, with marks for numbers.

    >>> named_split("", "mnist-train.tfrecord-\\0-of-\\0")
    NamedSplit(split='train', rest='mnist-\\x02.tfrecord-\\x00-of-\\x00', dataset='mnist')
    >>> named_split("data/val/", "shard.\\0.mds").split
    'val'
    >>> named_split("train/", "test-\\0.tar"), named_split("", "a-\\0.tar")
    (None, None)
    """
    parts, spoken = _folders(folder)
    tfds = _TFDS.fullmatch(text)
    if tfds is not None:
        rest = f"{folder}{text[: tfds.start('split')]}{SPLIT}{text[tfds.end('split') :]}"
        return NamedSplit(split=tfds["split"], rest=rest, dataset=tfds["dataset"])
    if speaks_of_several(folder, text):
        return None
    word = _WORD.search(text)
    if not spoken:
        if word is None:
            return None
        rest = f"{folder}{text[: word.start()]}{SPLIT}{text[word.end() :]}"
        return NamedSplit(split=word[0], rest=rest)
    at, name = spoken[-1]
    rest = "/".join([*parts[:at], parts[at][: -len(name)] + SPLIT, *parts[at + 1 :], ""])
    return NamedSplit(split=name, rest=rest)


def _folders(folder: str) -> tuple[list[str], list[tuple[int, str]]]:
    """Return the parts of a folder's path, and which of them are called as a split."""
    parts = folder.split("/")[:-1]
    return parts, [(at, word) for at, part in enumerate(parts) if (word := split_word(part))]


def speaks_of_several(folder: str, text: str) -> bool:
    """Return whether a name has words of several splits, so that it tells none.

    >>> speaks_of_several("", "eval-test-\\0.tar"), speaks_of_several("val/", "validation-\\0.tar")
    (True, False)
    """
    words = {word.lower() for word in _WORD.findall(text)}
    families = {_family(word) for word in words} | {_family(w) for _, w in _folders(folder)[1][-1:]}
    return len(words) > 1 or (bool(words) and len(families) > 1)


def split_word(name: str) -> str | None:
    """Return the split that a folder is called by, None where it is called something else.

    >>> split_word("train"), split_word("split=val"), split_word("train2017"), split_word("mnist")
    ('train', 'val', 'train2017', None)
    """
    found = _FOLDER.fullmatch(name)
    return name[len(found["hive"] or "") :] if found else None


def _family(word: str) -> str:
    """Return what names of the same split have in common: `val`, `valid`, `validation`."""
    begin = word[:2].lower()
    return {"ts": "te", "de": "va"}.get(begin, begin)


def split_in_place(rest: str, folder: str, text: str) -> str | None:
    """Return what a name has where others that are alike name their split.

    >>> split_in_place("\\2/", "extra/", "a-\\0.tar")
    'extra'
    """
    whole = folder if rest.endswith("/") else folder + text
    before, _, after = rest.partition(SPLIT)
    if not (whole.startswith(before) and whole.endswith(after)):
        return None
    found = whole[len(before) : len(whole) - len(after)]
    return found if re.fullmatch(r"[A-Za-z]\w*", found) else None


# What is a file, by its name: of records, about records, or something else?


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


# The name and version of a dataset, by the folder that its files are in.

# Folders that are called by what is in them. Those that are called by a format, `parquet`, are not
# among them: what is above them is as often a disk, or a project, as a dataset.
_PLAIN = re.compile(
    r"data|dataset|datasets|files|shards?|records?|default|main|raw|tmp|snapshots", re.IGNORECASE
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
