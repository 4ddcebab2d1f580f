"""Compares the files of a dataset in their folders with what the metadata says of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shardctl.base.text import quoted
from shardctl.base.tfds_rules import TFRECORD_FOOTER_BYTES, TFRECORD_HEADER_BYTES
from shardctl.dataset.dataset import Dataset, FileFinding, FindingKind, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import ShardctlError
from shardctl.stores.stores import files_in, listed, name_of, path_of


@dataclass(frozen=True, kw_only=True)
class FilesOnDisk:
    """Size in bytes of each shard's file by split, None where it is missing; and the problems.

    A problem of a record file that belongs to no split has none. A split without any file here, or
    with files of another size, is one problem, with the name of its first file.
    `present` is False where no file of the dataset is here at all; there are then no problems,
    unless files that look alike lie in their place. `unlisted` says why a remote folder cannot be
    listed: then nothing is known of any file.
    """

    present: bool
    shard_bytes: Mapping[str, tuple[int | None, ...]]
    problems: tuple[FileFinding, ...] = ()
    unlisted: str | None = None


def check_files(dataset: Dataset) -> FilesOnDisk:
    """Return the sizes of a dataset's files and where they disagree with its metadata.

    Each folder is listed once. A missing file of a shard without examples is not a problem: nothing
    reads it. Local folders that cannot be listed count as empty.
    """
    folders = _Folders()
    try:
        sizes = {split.name: _sizes(split, folders) for split in dataset.splits}
    except ShardctlError as error:
        unknown = {split.name: (None,) * split.num_shards for split in dataset.splits}
        return FilesOnDisk(present=False, shard_bytes=unknown, unlisted=str(error))
    # At least one file of any split has a size, so the dataset is meant to be here.
    present = any(found.count(None) < len(found) for found in sizes.values())
    unclaimed: tuple[FileFinding, ...] = ()
    # A reference to files chooses them, so that no other is one too many.
    if not dataset.is_counted and (present or any(folders.values())):
        unclaimed = tuple(_unclaimed_files(dataset, folders))
    if not present and not any(problem.kind == "wrong-count" for problem in unclaimed):
        return FilesOnDisk(present=False, shard_bytes=sizes)
    problems: list[FileFinding] = []
    for split in dataset.splits:
        problems += _shard_problems(split, sizes[split.name])
        problems += _size_problem(dataset, split, sizes[split.name])
    return FilesOnDisk(present=present, shard_bytes=sizes, problems=(*problems, *unclaimed))


def with_disk_bytes(dataset: Dataset, files: FilesOnDisk) -> Dataset:
    """Return the dataset with the sizes of its files, itself where no file is here."""
    if not files.present:
        return dataset
    splits = (replace(split, shard_bytes=files.shard_bytes[split.name]) for split in dataset.splits)
    return replace(dataset, splits=tuple(splits))


def not_listed(files: FilesOnDisk) -> Iterator[str]:
    """Yield, in a sentence, why nothing is known of the files, if a folder cannot be listed."""
    if files.unlisted is not None:
        yield f"the sizes of the files are not known: {files.unlisted}"


class _Folders(dict[str, dict[str, int]]):
    """Regular files and their sizes, by folder; filled as folders are asked for."""

    def __missing__(self, folder: str) -> dict[str, int]:
        found = listed(files_in, path_of(folder))
        self[folder] = {name_of(file.path): file.num_bytes for file in found}
        return self[folder]


def _sizes(split: Split, folders: _Folders) -> tuple[int | None, ...]:
    sizes: list[int | None] = [] if split.files else [None] * split.num_shards
    for part in split.files:
        if part.data_dir is None:
            sizes += [None] * len(part)
        # All in one folder: one look-up each, without taking paths apart.
        elif part.names is None and "/" not in part.pattern:
            sizes += map(folders[part.data_dir].get, part)
        else:
            for path in part:
                folder, name = _placed(part, path)
                sizes.append(None if folder is None else folders[folder].get(name))
    return tuple(sizes)


def _placed(part: ShardFiles, path: str) -> tuple[str | None, str]:
    """Return the folder of a file, None where the part has none, and its name there."""
    folder, _, name = path.rpartition("/")
    if part.data_dir is None or not folder:
        return part.data_dir, name
    return os.path.join(part.data_dir, folder), name


def _shard_problems(split: Split, sizes: tuple[int | None, ...]) -> Iterator[FileFinding]:
    # Files without a folder, those of a layout or of the catalog, need not be here.
    placed = [part.data_dir is not None for part in split.files for _ in range(len(part))]
    needed = [i for i, length in enumerate(split.shard_lengths) if length and placed[i]]
    missing = [index for index in needed if sizes[index] is None]
    # A split that was not downloaded is one finding, not one for each of its shards.
    if missing and len(missing) == len(needed):
        first = split.filename(missing[0])
        text = f"no file of split {quoted(split.name)} is here; the first is {quoted(first)}"
        yield FileFinding(kind="missing", split=split.name, filename=first, reason=text)
        return
    for index in missing:
        name, length = split.filename(index), split.shard_lengths[index]
        text = f"{quoted(name)} is missing: {length} examples"
        yield FileFinding(kind="missing", split=split.name, filename=name, reason=text)
    for index in needed:
        if sizes[index] == 0:
            name, length = split.filename(index), split.shard_lengths[index]
            text = f"{quoted(name)} has 0 bytes and should hold {length} examples"
            yield FileFinding(kind="empty", split=split.name, filename=name, reason=text)


def _size_problem(
    dataset: Dataset, split: Split, sizes: tuple[int | None, ...]
) -> Iterator[FileFinding]:
    """Yield that the files of a split have another size than the metadata says.

    Of counted files that is the size when they were counted. Of TFRecord files TFDS states the
    bytes of all examples of a split (core/shuffle.py, Shuffler.size), and the framing adds 16 to
    each; Beam's writer without a shuffle states the sizes of the files (core/file_adapters.py,
    shard_lengths_and_sizes). 0 stands for a size that is not known. Splits of several folders may
    have parts of unknown size. Missing or empty files are named one by one.
    """
    needed = [size for size, length in zip(sizes, split.shard_lengths, strict=True) if length]
    stated, found = split.num_bytes, sum(size or 0 for size in sizes)
    if stated is None or len(split.files) != 1:
        return
    have = f"the files of split {quoted(split.name)} have"
    if dataset.is_counted:
        wrong = None not in sizes and found != stated
        text = f"{have} {found:,} bytes, and had {stated:,} when they were counted"
    else:
        found = sum(size or 0 for size in needed)
        framing = (TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES) * split.num_examples
        known = dataset.file_format == "tfrecord" and stated and needed and all(needed)
        # Both figures occur in metadata, see above, so either of them is right.
        wrong = bool(known) and found not in (stated + framing, stated)
        text = (
            f"{have} {found:,} bytes, and the metadata says "
            f"{stated + framing:,}: {stated:,} of examples and 16 for each"
        )
    if wrong:
        yield FileFinding(kind="size", split=split.name, filename=split.filename(0), reason=text)


def _unclaimed_files(dataset: Dataset, folders: _Folders) -> Iterator[FileFinding]:
    """Yield the record files that are not shards, in the folders that shards are in."""
    # Names of shards by folder; `shapes` says which split a name without its numbers belongs to.
    claimed: dict[str, set[str]] = {}
    shapes: dict[tuple[str, str], tuple[Split, int]] = {}
    for split in dataset.splits:
        for part in split.files:
            for path in part:
                folder, name = _placed(part, path)
                if folder is not None:
                    claimed.setdefault(folder, set()).add(name)
            # All names of a pattern have one shape, that of the first.
            if part.names is None and len(part):
                folder, name = _placed(part, part[0])
                shapes.setdefault((folder or "", _shape(name)), (split, part.num_shards))
    record_file = re.compile(rf".*\.{re.escape(dataset.file_format)}-\d{{5,}}-of-\d{{5,}}")
    for folder, names in claimed.items():
        for name in sorted(folders[folder].keys() - names):
            alike = shapes.get((folder, _shape(name)))
            if alike is not None:
                split, num_shards = alike
                said = _TOTAL.search(name)
                # `-of-00008` beside a dataset of 4 shards: left over from another preparation.
                total = int(said[1]) if said else num_shards
                what = f"one of {total}" if total != num_shards else "one too many"
                text = f"the metadata has {num_shards} shards of split {quoted(split.name)}"
                text = f"{quoted(name)} is {what}; {text}"
                kind: FindingKind = "extra" if total == num_shards else "wrong-count"
                yield FileFinding(kind=kind, split=split.name, filename=name, reason=text)
            elif record_file.fullmatch(name):
                text = f"{quoted(name)} belongs to no split of the metadata"
                yield FileFinding(kind="extra", split=None, filename=name, reason=text)


_TOTAL = re.compile(r"-of-([0-9]{5,18})(?![0-9])")


def _shape(name: str) -> str:
    """Return a file's name without its numbers: files of another shard, or number of them."""
    return re.sub(r"[0-9]{5,}", "#", name)


# Shards none of whose files is here, said once for all of them.


def none_here(split: Split, shards: Sequence[int]) -> FileFinding:
    """Return the finding about shards (one at least) of a split of which no file is here.

    It has the name of the first file, and the examples of all.
    """
    reason = "missing"
    if len(shards) > 1:
        reason = (
            f"no file of split {quoted(split.name)} is here: {len(shards):,} files are missing, "
            "of which this is the first"
        )
    return FileFinding(
        filename=split.filename(shards[0]),
        expected=sum(split.shard_lengths[shard] for shard in shards),
        reason=reason,
        kind="missing",
        split=split.name,
        num_files=len(shards),
    )
