"""What names of files and folders mean: a split, a dataset and version, a glob, `prefix@N`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from shardctl.base.text import quoted
from shardctl.base.tfds_rules import FILE_FORMATS
from shardctl.errors import UsageError
from shardctl.metadata.dataset_names import snake_case, version_key
from shardctl.records.read_file import format_of_name
from shardctl.stores.stores import is_remote

NUMBER = "\0"  # stands for a number; refused in every path, as is the next
RANDOM = "\1"  # stands for a word that is drawn at random
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


class NamedSplit(NamedTuple):
    """The split that a name says, and the dataset as TFDS's template says it."""

    split: str
    dataset: str | None = None


def named_split(folder: str, text: str) -> NamedSplit | None:
    """Return the split that a name speaks of, None where it speaks of none, or of two.

    folder: below the folder of the dataset, with a slash at its end; "" for that itself. text: the
    name, with marks for numbers.

    >>> named_split("", "mnist-train.tfrecord-\\0-of-\\0")
    NamedSplit(split='train', dataset='mnist')
    >>> named_split("data/val/", "shard.\\0.mds").split
    'val'
    >>> named_split("train/", "test-\\0.tar"), named_split("", "a-\\0.tar")
    (None, None)
    """
    tfds = _TFDS.fullmatch(text)
    if tfds is not None:
        return NamedSplit(tfds["split"], tfds["dataset"])
    if speaks_of_several(folder, text):
        return None
    spoken, word = _folder_words(folder), _WORD.search(text)
    # The deepest folder that is called by a split counts before the name of the file.
    split = spoken[-1] if spoken else word and word[0]
    return NamedSplit(split) if split else None


def _folder_words(folder: str) -> list[str]:
    """Return the splits that parts of a folder's path are called by."""
    return [word for part in folder.split("/")[:-1] if (word := split_word(part))]


def speaks_of_several(folder: str, text: str) -> bool:
    """Return whether a name has words of several splits, so that it tells none.

    >>> speaks_of_several("", "eval-test-\\0.tar"), speaks_of_several("val/", "validation-\\0.tar")
    (True, False)
    """
    words = {word.lower() for word in _WORD.findall(text)}
    # "valid" and "validation" are one split; "train" and "test" in one name tell none.
    families = set(map(_family, [*words, *_folder_words(folder)[-1:]]))
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
    # Two letters tell the families apart: tr, va, te, ho, mi, un; "tst" is te, "dev" is va.
    begin = word[:2].lower()
    return {"ts": "te", "de": "va"}.get(begin, begin)


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
    # A million shards have one shape, whose kind is found once.
    return _kind_of_shape(re.sub("[0-9]+", "0", name))


@lru_cache(maxsize=1 << 12)
def _kind_of_shape(name: str) -> FileKind:
    name = name.lower()
    # In this order: hidden or unfinished counts before everything, and a format before a number.
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
    # From the deepest folder upwards: a version may come first, then the name.
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


# Globs, ranges in braces and `prefix@N`: which names of files a text means.
#
# A glob means what it means in `tf.io.gfile.glob` (TensorFlow's platform/file_system_helper.cc,
# which asks the C library's fnmatch for each part of a path): `*`, `?`, `[a-z]`, `[!a]`, `[^a]`,
# and a backslash that takes the meaning from what follows. TensorFlow reads `**` as `*`; here a
# part that is `**` alone stands for any number of folders, as in bash and zsh.

ANY_FOLDERS = "**"
_MAGIC = re.compile(r"[*?\[\\]")
# Possessive quantifiers (`?+`, `*+`): a bracket that is not closed is found out in linear time.
_TOKEN = re.compile(
    r"\*+|\?|\[(?P<others>[!^]?+)(?P<inside>\]?+(?:\\[^/]|[^]\\/])*+)\]|\\.|.", re.DOTALL
)
_IN_BRACKET = re.compile(r"(?P<first>\\?.)(?:-(?P<last>\\?.))?", re.DOTALL)
_BRACES = re.compile(
    r"\{(?:(?P<first>-?\d+)\.\.(?P<last>-?\d+)|(?P<choices>[^{}]*,[^{}]*))\}", re.DOTALL
)
_SHARDED = re.compile(r"(?P<prefix>.*)@(?P<count>[1-9]\d{0,17}|\*)(?P<suffix>[^@]*)", re.DOTALL)
MOST_EXPANDED = 10_000_000  # paths that braces may stand for


def is_glob(text: str) -> bool:
    """Return whether a text has characters that mean something in a glob.

    >>> is_glob("train-*"), is_glob("train-00000"), is_glob("a[1]")
    (True, False, True)
    """
    return _MAGIC.search(text) is not None


@lru_cache(maxsize=1024)
def path_regex(glob: str) -> re.Pattern[str]:
    """Return the regular expression of a glob of whole paths, or of their last parts.

    >>> bool(path_regex("train-[!0]?.tar").fullmatch("train-10.tar"))
    True
    >>> bool(path_regex("*").fullmatch("a/b")), bool(path_regex("[ab").fullmatch("[ab"))
    (False, True)
    >>> bool(path_regex("data/**/*.tar").fullmatch("data/a/b/x.tar"))
    True
    >>> bool(path_regex("data/**/*.tar").fullmatch("data/x.tar"))
    True
    """
    pieces: list[str] = []
    parts = glob.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == ANY_FOLDERS:
            # `**` in the middle stands for folders, each with its slash; at the end for everything.
            pieces.append(".*" if last else "(?:[^/]+/)*")
        else:
            pieces.append(_translated(part) + ("" if last else "/"))
    return re.compile("".join(pieces), re.DOTALL)


def _translated(glob: str) -> str:
    if "[:" in glob:
        raise UsageError(f"{quoted(glob, 200)}: a class as [:digit:] is not read; write [0-9]")
    return _TOKEN.sub(_piece, glob)


def _piece(found: re.Match[str]) -> str:
    text, inside = found[0], found["inside"]
    if inside is None:
        known = {"*": "[^/]*", "?": "[^/]"}.get(text[0])
        return known or re.escape(text[-1])
    members = ""
    for one in _IN_BRACKET.finditer(inside):
        first, last = one["first"][-1], (one["last"] or one["first"])[-1]
        if first <= last:  # a range that runs backwards holds no character
            members += f"{re.escape(first)}-{re.escape(last)}"
    # "[b-a]" holds nothing: it matches no character, and its opposite every one.
    if not members:
        return "[^/]" if found["others"] else "(?!)"
    # A bracket never matches a slash, as with fnmatch's FNM_PATHNAME.
    return f"(?!/)[{'^' if found['others'] else ''}{members}]"


def expanded(text: str) -> Iterator[str]:
    """Yield what braces in a text stand for: `{000..146}` and `{a,b}`, as in bash and WebDataset.

    >>> list(expanded("train-{08..10}.tar")), list(expanded("{a,b}{1..2}"))
    (['train-08.tar', 'train-09.tar', 'train-10.tar'], ['a1', 'a2', 'b1', 'b2'])
    >>> list(expanded("a{b}c{")), list(expanded("{{a,b}c}"))
    (['a{b}c{'], ['{ac}', '{bc}'])

    Raises:
        UsageError: a range of more than ten million numbers.
    """
    found = _BRACES.search(text)
    if found is None:
        yield text
        return
    for option in _numbers(found, text) if found["first"] else found["choices"].split(","):
        yield from expanded(text[: found.start()] + option + text[found.end() :])


def _numbers(found: re.Match[str], text: str) -> Iterator[str]:
    first, last = int(found["first"]), int(found["last"])
    if abs(last - first) >= MOST_EXPANDED:
        raise UsageError(f"{quoted(text, 200)} stands for more than {MOST_EXPANDED:,} paths")
    # As bash does: one bound with a leading zero pads all numbers to the wider bound.
    padded = any(re.match(r"-?0\d", found[end]) for end in ("first", "last"))
    width = max(len(found["first"]), len(found["last"])) if padded else 0
    step = 1 if first <= last else -1
    return (f"{number:0{width}d}" for number in range(first, last + step, step))


def sharded_regex(name: str) -> tuple[re.Pattern[str], int | None] | None:
    """Return the expression of the names that `prefix@N` means, and N; None where it says no such.

    `prefix@*` means any number of shards. The groups are `index` and `total`, and what follows `@N`
    follows the numbers too. Where nothing does, an ending such as `.parquet` may follow.

    >>> found, total = sharded_regex("mnist-train.tfrecord@10")
    >>> found.fullmatch("mnist-train.tfrecord-00003-of-00010").groupdict(), total
    ({'index': '00003', 'total': '00010'}, 10)
    >>> bool(sharded_regex("data@*.parquet")[0].fullmatch("data-00003-of-00010.parquet"))
    True
    """
    found = _SHARDED.fullmatch(name)
    if found is None:
        return None
    prefix, suffix = found["prefix"], found["suffix"]
    # "data@8" means data-00000-of-00008: between prefix and number stands a separator.
    divided = "" if prefix.endswith(("-", "_", ".", "*")) or not prefix else "[-_.]"
    ending = _translated(suffix) if suffix else r"(?:\.[^/]*)?"
    text = rf"{_translated(prefix)}{divided}(?P<index>[0-9]+)[-_]of[-_](?P<total>[0-9]+){ending}"
    count = None if found["count"] == "*" else int(found["count"])
    return re.compile(text, re.DOTALL), count


def name_matcher(name: str) -> Callable[[str], bool] | None:
    """Return whether a name is one that a glob or `prefix@N` means; None of a plain name."""
    sharded = sharded_regex(name)
    if sharded is not None:
        return shard_matcher(*sharded)
    if is_glob(name):
        regex = path_regex(name)
        return lambda other: regex.fullmatch(other) is not None
    return None


def shard_matcher(
    regex: re.Pattern[str], count: int | None, start: int = 0
) -> Callable[[str], bool]:
    """Return whether a text, from a place on, is that of one of `count` shards."""

    def is_shard(text: str) -> bool:
        found = regex.fullmatch(text, start)
        return found is not None and (count is None or int(found["total"]) == count)

    return is_shard
