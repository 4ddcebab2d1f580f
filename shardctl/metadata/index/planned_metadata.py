"""The metadata that makes TFDS read record files as if it had prepared them itself.

TFDS finds the files of a split by a template with the index of the shard in five digits or more
(core/naming.py, `ShardedFileTemplate`). `filepath_template` of dataset_info.json may be any text
around it, and folders below that of the dataset.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.base.columns import Tabular
from shardctl.base.text import choices, quoted
from shardctl.base.tfds_rules import DEFAULT_TEMPLATE, FILE_FORMATS, MIN_SHARD_DIGITS
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.files.fields import template_of
from shardctl.stores.stores import is_remote

_INDEX = "\0"  # stands for the index of the shard, as in ShardFiles
# TFDS core/naming.py, _NAME_CLASS, and core/splits.py, _SUB_SPEC_RE.
_DATASET_NAME = re.compile(r"[a-zA-Z]\w*")
_SPLIT_NAME = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class TfdsSplit:
    """A split as the written metadata describes it.

    template: how its files are named, below the folder of the dataset.
    """

    name: str
    num_examples: int
    num_shards: int
    template: str


@dataclass(frozen=True, kw_only=True, repr=False)
class TfdsMetadata(Tabular):
    """The metadata that TFDS reads a folder of record files by.

    name, version: what TFDS calls the dataset.
    folder: what `tfds.builder_from_directory` is given.
    written: names of the files that were written there.
    """

    name: str
    version: str
    folder: str
    file_format: str
    splits: tuple[TfdsSplit, ...]
    written: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def plan_tfds_metadata(dataset: Dataset, folder: str, version: str) -> TfdsMetadata:
    """Return the metadata for a dataset whose files are in a folder, or below it.

    Raises:
        UsageError: a name, or a place of files, that TFDS's metadata cannot express.
        DatasetError: files that TFDS has no reader for, or whose names follow no template.
    """
    check_readable(dataset)
    splits = []
    for split in dataset.splits:
        files = _below(split, folder)
        template = _template(files, dataset, split)
        if template is None:
            usual = quoted(_usual(dataset, split)[0], 200)
            raise DatasetError(
                f"TFDS has no template for the names of split {quoted(split.name)}: it counts "
                f"shards from 0 in five digits; {quoted(files[0], 200)} would be {usual}"
            )
        splits.append(TfdsSplit(split.name, split.num_examples, split.num_shards, template))
    return TfdsMetadata(
        name=dataset.name,
        version=version,
        folder=folder,
        file_format=dataset.file_format,
        splits=tuple(splits),
        warnings=tuple(
            f"split {quoted(split.name)} has no examples, and TFDS reads no such split: "
            "as_dataset() of all splits fails; name those to read"
            for split in dataset.splits
            if not split.num_examples
        ),
    )


def check_readable(dataset: Dataset) -> None:
    """Refuse what TFDS has no name or no reader for."""
    if dataset.file_format not in FILE_FORMATS:
        raise DatasetError(
            f"TFDS reads no {dataset.file_format} files; it reads {choices(FILE_FORMATS)}"
        )
    if dataset.compression is not None:
        raise DatasetError(
            f"the files are compressed as a whole ({dataset.compression}), and TFDS reads "
            "TFRecord files plain alone; unpack them first"
        )
    if _DATASET_NAME.fullmatch(dataset.name) is None:
        raise UsageError(
            f"TFDS takes no dataset of the name {quoted(dataset.name)}: a letter comes first, then "
            "letters, digits and _; choose another with --name"
        )
    for split in dataset.splits:
        name = split.name
        if name == "all" or not _SPLIT_NAME.fullmatch(name) or not any(map(str.isalnum, name)):
            why = "it means all splits" if name == "all" else "letters, digits, _ and - alone do"
            raise UsageError(
                f"TFDS takes no split of the name {quoted(name)}: {why}; name it another way, as "
                "in --split train='PATTERN'"
            )
        if not split.num_shards:
            raise UsageError(f"split {quoted(name)} has no files; TFDS reads one at least")


def _below(split: Split, folder: str) -> ShardFiles:
    """Return the files of a split by their paths below a folder."""
    split.check_named()
    parts = split.files
    prefixes = [_prefix(part, split, folder) for part in parts]
    if len(parts) == 1 and parts[0].names is None:
        return ShardFiles(pattern=prefixes[0] + parts[0].pattern, num_shards=parts[0].num_shards)
    names = tuple(
        prefix + name for prefix, part in zip(prefixes, parts, strict=True) for name in part
    )
    if len(names) == 1:  # which needs no index
        return ShardFiles(pattern=names[0], num_shards=1)
    return patterned(names) or ShardFiles(names=names, num_shards=len(names))


def _prefix(part: ShardFiles, split: Split, folder: str) -> str:
    """Return the path from a folder to that of some files, with a slash at its end, or ""."""
    there = part.data_dir
    if there is None:
        raise DatasetError(f"the folder of the files of split {quoted(split.name)} is unknown")
    if is_remote(there) or is_remote(folder):
        # A prefix that was not removed leaves a URL, which shows that the folder is elsewhere.
        below = (there.rstrip("/") + "/").removeprefix(folder.rstrip("/") + "/")
        is_below = is_remote(there) and not is_remote(below)
    else:
        # Real paths, so that a link does not make a folder look as if it were elsewhere.
        path = os.path.relpath(os.path.realpath(there), os.path.realpath(folder))
        is_below = path.split(os.sep)[0] != os.pardir
        below = "" if path == os.curdir else path.replace(os.sep, "/") + "/"
    if is_below:
        return below
    raise UsageError(
        f"the files of split {quoted(split.name)} are in {quoted(there, 200)}, which is not below "
        f"{quoted(folder, 200)}: TFDS looks for them beside its metadata; name their folder, or "
        "one above it, or link them there"
    )


def _template(files: ShardFiles, dataset: Dataset, split: Split) -> str | None:
    """Return the template of some files as TFDS writes it, with its usual one where it is that."""
    if files.names is not None or (_INDEX not in files.pattern and files.num_shards > 1):
        return None
    head, slash, base = files.pattern.rpartition("/")
    # TFDS's own template where it fits, so that the metadata looks as TFDS writes it.
    is_usual = base == _usual(dataset, split).pattern
    return template_of(head + slash) + (DEFAULT_TEMPLATE if is_usual else template_of(base))


def _usual(dataset: Dataset, split: Split) -> ShardFiles:
    return ShardFiles.from_template(
        DEFAULT_TEMPLATE,
        dataset=dataset.name,
        split=split.name,
        file_format=dataset.file_format,
        num_shards=split.num_shards,
    )


def patterned(names: Sequence[str], data_dir: str | None = None) -> ShardFiles | None:
    r"""Return names as a pattern with the index of the shard in it, None where they follow none.

    >>> files = patterned(["a-00000-of-00002", "a-00001-of-00002"])
    >>> files and files.pattern.replace("\0", "#")
    'a-#-of-00002'
    """
    zero = "0" * max(MIN_SHARD_DIGITS, len(str(len(names))))
    # A lookahead finds overlapping places: in 000000 the index may begin at each 0.
    for found in re.finditer(f"(?={zero})", names[0]) if names else ():
        pattern = names[0][: found.start()] + "\0" + names[0][found.start() + len(zero) :]
        files = ShardFiles(data_dir=data_dir, pattern=pattern, num_shards=len(names))
        # Only the whole list proves a place: the first name alone fits several.
        if all(files[index] == name for index, name in enumerate(names)):
            return files
    return None
