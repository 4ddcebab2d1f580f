"""Which split do names speak of: by TFDS's template, by a word in the name, or by a folder?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardctl.base.tfds_rules import FILE_FORMATS

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
