"""The files of a dataset where they lie, compared with what the metadata says of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.file_finding import FileFinding
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import TFRECORD_FOOTER_BYTES, TFRECORD_HEADER_BYTES
from shardctl.errors import DatasetError, NotThereError, ShardctlError
from shardctl.files.stores.anywhere import files_in
from shardctl.files.stores.remote_path import AnyPath, RemotePath, name_of, path_of

ProblemKind = Literal["missing", "extra", "wrong-count", "empty", "size"]


@dataclass(frozen=True, kw_only=True)
class FileProblem:
    """A file that is not as the metadata says; `text` is one line about it.

    `split` is None for a record file that belongs to no split. A split without any file here, or
    with files of another size, is one problem, with the name of its first file.
    """

    kind: ProblemKind
    split: str | None
    filename: str
    text: str


@dataclass(frozen=True, kw_only=True)
class FilesOnDisk:
    """Size in bytes of each shard's file by split, None where it is missing; and the problems.

    `present` is False where no file of the dataset is here at all; there are then no problems,
    unless files that look alike lie in their place. `unlisted` says why a remote folder cannot be
    listed: then nothing is known of any file.
    """

    present: bool
    shard_bytes: Mapping[str, tuple[int | None, ...]]
    problems: tuple[FileProblem, ...] = ()
    unlisted: str | None = None


def check_files(dataset: Dataset) -> FilesOnDisk:
    """Return the sizes of a dataset's files and where they disagree with its metadata.

    Each folder is listed once. A missing file of a shard without examples is not a problem: nothing
    reads it. Local folders that cannot be listed count as empty.
    """
    folders = _Folders()
    try:
        sizes = {split.name: tuple(_sizes(split, folders)) for split in dataset.splits}
    except ShardctlError as error:
        unknown = {split.name: (None,) * split.num_shards for split in dataset.splits}
        return FilesOnDisk(present=False, shard_bytes=unknown, unlisted=str(error))
    present = any(size is not None for found in sizes.values() for size in found)
    unclaimed: tuple[FileProblem, ...] = ()
    # A reference to files chooses them, so that no other is one too many.
    if not dataset.is_counted and (present or any(folders.listings.values())):
        unclaimed = tuple(_unclaimed_files(dataset, folders))
    if not present and not any(problem.kind == "wrong-count" for problem in unclaimed):
        return FilesOnDisk(present=False, shard_bytes=sizes)
    problems = [
        problem
        for split in dataset.splits
        for problem in (
            *_shard_problems(split, sizes[split.name], folders),
            *(_changed_size if dataset.is_counted else _size_problem)(
                dataset.file_format, split, sizes[split.name]
            ),
        )
    ]
    return FilesOnDisk(
        present=present,
        shard_bytes=sizes,
        problems=(*problems, *unclaimed),
    )


def files_of_another_count(dataset: Dataset) -> list[str]:
    """Return the names of files that would be shards of a dataset, had it another number of them.

    Such as `toy-train.tfrecord-00000-of-00004` of a split that has 8.
    """
    problems = _unclaimed_files(dataset, _Folders())
    return [problem.filename for problem in problems if problem.kind == "wrong-count"]


def with_disk_bytes(dataset: Dataset, files: FilesOnDisk | None = None) -> Dataset:
    """Return the dataset with the sizes of its files, itself where no file is here."""
    files = check_files(dataset) if files is None else files
    if not files.present:
        return dataset
    splits = (replace(split, shard_bytes=files.shard_bytes[split.name]) for split in dataset.splits)
    return replace(dataset, splits=tuple(splits))


def not_listed(files: FilesOnDisk) -> Iterator[str]:
    """Yield, in a sentence, why nothing is known of the files, if a folder cannot be listed."""
    if files.unlisted is not None:
        yield f"the sizes of the files are not known: {files.unlisted}"


@dataclass
class _Folders:
    """Regular files and their sizes, by folder; filled as folders are asked for."""

    listings: dict[str, dict[str, int]] = field(default_factory=dict)

    def sizes(self, folder: str) -> dict[str, int]:
        if folder not in self.listings:
            self.listings[folder] = dict(_list_files(path_of(folder)))
        return self.listings[folder]


def _list_files(folder: AnyPath) -> Iterator[tuple[str, int]]:
    try:
        for file in files_in(folder):
            yield name_of(file.path), file.num_bytes
    except NotThereError:
        return
    except DatasetError:
        if isinstance(folder, RemotePath):
            raise


def _sizes(split: Split, folders: _Folders) -> Iterator[int | None]:
    if not split.files:
        yield from [None] * split.num_shards
    for part in split.files:
        if part.data_dir is None:
            yield from [None] * len(part)
            continue
        if part.names is None and "/" not in part.pattern:
            yield from map(folders.sizes(part.data_dir).get, part)
            continue
        for path in part:
            folder, _, name = path.rpartition("/")
            yield folders.sizes(_below(part.data_dir, folder)).get(name)


def _below(data_dir: str, folder: str) -> str:
    """Return a folder of a data dir, "" being the data dir itself."""
    return os.path.join(data_dir, folder) if folder else data_dir


def _shard_problems(
    split: Split, sizes: tuple[int | None, ...], folders: _Folders
) -> Iterator[FileProblem]:
    # Files without a folder, those of a layout or of the catalog, need not be here.
    placed = [part.data_dir is not None for part in split.files for _ in range(len(part))]
    needed = [i for i, length in enumerate(split.shard_lengths) if length and placed[i]]
    missing = [index for index in needed if sizes[index] is None]
    if missing and len(missing) == len(needed):
        first = split.filename(missing[0])
        yield FileProblem(
            kind="missing",
            split=split.name,
            filename=first,
            text=f"no file of split {quoted(split.name)} is here; the first is {quoted(first)}",
        )
        return
    for index in missing:
        filename = split.filename(index)
        yield FileProblem(
            kind="missing",
            split=split.name,
            filename=filename,
            text=f"{quoted(filename)} is missing: {split.shard_lengths[index]} examples",
        )
    for index in needed:
        if sizes[index] == 0:
            filename = split.filename(index)
            yield FileProblem(
                kind="empty",
                split=split.name,
                filename=filename,
                text=f"{quoted(filename)} has 0 bytes and should hold "
                f"{split.shard_lengths[index]} examples",
            )


def _size_problem(
    file_format: str, split: Split, sizes: tuple[int | None, ...]
) -> Iterator[FileProblem]:
    """Yield that the TFRecord files of a split have another size than the metadata says.

    TFDS states the bytes of all examples of a split (core/shuffle.py, Shuffler.size), and the
    framing adds 16 to each; Beam's writer without a shuffle states the sizes of the files
    (core/file_adapters.py, shard_lengths_and_sizes). 0 stands for a size that is not known. Splits
    of several folders may have parts of unknown size.
    """
    needed = [size for size, length in zip(sizes, split.shard_lengths, strict=True) if length]
    if file_format != "tfrecord" or not split.num_bytes or len(split.files) != 1 or not needed:
        return
    if not all(needed):
        return  # missing or empty files are named one by one
    found = sum(size or 0 for size in needed)
    framing = (TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES) * split.num_examples
    if found in (split.num_bytes + framing, split.num_bytes):
        return
    yield FileProblem(
        kind="size",
        split=split.name,
        filename=split.filename(0),
        text=f"the files of split {quoted(split.name)} have {found:,} bytes, and the metadata says "
        f"{split.num_bytes + framing:,}: {split.num_bytes:,} of examples and 16 for each",
    )


def _changed_size(
    file_format: str, split: Split, sizes: tuple[int | None, ...]
) -> Iterator[FileProblem]:
    """Yield that the files of a split have another size than when they were counted."""
    if split.num_bytes is None or len(split.files) != 1 or None in sizes:
        return
    found = sum(size or 0 for size in sizes)
    if found != split.num_bytes:
        yield FileProblem(
            kind="size",
            split=split.name,
            filename=split.filename(0),
            text=f"the files of split {quoted(split.name)} have {found:,} bytes, and had "
            f"{split.num_bytes:,} when they were counted",
        )


def _unclaimed_files(dataset: Dataset, folders: _Folders) -> Iterator[FileProblem]:
    """Yield the record files that are not shards, in the folders that shards are in."""
    claimed: dict[str, set[str]] = {}
    shapes: list[tuple[Split, ShardFiles, str, re.Pattern[str]]] = []
    for split in dataset.splits:
        for part in split.files:
            if part.data_dir is None:
                continue
            folder, _, base = part.pattern.rpartition("/")
            if part.names is None and "\0" not in folder:
                folder = _below(part.data_dir, folder)
                shapes.append((split, part, folder, _shape(base, part.num_shards)))
                names = claimed.setdefault(folder, set())
                names.update(path.rpartition("/")[2] for path in part)
            else:
                for path in part:
                    folder, _, name = path.rpartition("/")
                    claimed.setdefault(_below(part.data_dir, folder), set()).add(name)
    record_file = re.compile(rf".*\.{re.escape(dataset.file_format)}-\d{{5,}}-of-\d{{5,}}")
    for folder, names in claimed.items():
        for name in sorted(folders.sizes(folder).keys() - names):
            problem = _unclaimed(name, [shape for shape in shapes if shape[2] == folder])
            if problem is not None:
                yield problem
            elif record_file.fullmatch(name):
                yield FileProblem(
                    kind="extra",
                    split=None,
                    filename=name,
                    text=f"{quoted(name)} belongs to no split of the metadata",
                )


def _unclaimed(
    name: str, shapes: list[tuple[Split, ShardFiles, str, re.Pattern[str]]]
) -> FileProblem | None:
    for split, part, _, shape in shapes:
        match = shape.fullmatch(name)
        if match is None:
            continue
        total = match.groupdict().get("total")
        said = f"the metadata has {part.num_shards} shards of split {quoted(split.name)}"
        wrong = total is not None and int(total) != part.num_shards
        return FileProblem(
            kind="wrong-count" if wrong else "extra",
            split=split.name,
            filename=name,
            text=f"{quoted(name)} is one of {int(total)}; {said}"
            if wrong and total is not None
            else f"{quoted(name)} is one too many; {said}",
        )
    return None


def _shape(base: str, num_shards: int) -> re.Pattern[str]:
    """Return the pattern of a split's file names with any index, and any count after `-of-`.

    A name says its index the same wherever it says it, so further ones refer to the first: with a
    choice of its own each would multiply the ways to try.
    """
    digits = max(5, len(str(num_shards)))
    total = f"-of-{num_shards:0{digits}d}"
    pieces = []
    for number, piece in enumerate(base.split("\0")):
        pieces.append({0: "", 1: "(?P<index>[0-9]{5,18})"}.get(number, "(?P=index)"))
        if number and piece.startswith(total):
            said = "(?P=total)" if "(?P<total>" in "".join(pieces) else "(?P<total>[0-9]{5,18})"
            pieces.append(f"-of-{said}{re.escape(piece[len(total) :])}")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces))


# Shards none of whose files is here, said once for all of them, with what is there instead.


def none_here(dataset: Dataset, split: Split, shards: Sequence[int]) -> FileFinding:
    """Return the finding about shards (one at least) of a split of which no file is here.

    It has the name of the first file, and the examples of all.
    """
    reason = "missing"
    if len(shards) > 1:
        reason = (
            f"no file of split {quoted(split.name)} is here: {len(shards):,} files are missing, "
            "of which this is the first"
        )
    alike = files_of_another_count(replace(dataset, splits=(split,)))
    if alike:
        more = "" if len(alike) == 1 else f" and {len(alike) - 1:,} more that look alike"
        reason += f"; in their place: {quoted(alike[0])}{more}"
    return FileFinding(
        filename=split.filename(shards[0]),
        expected=sum(split.shard_lengths[shard] for shard in shards),
        found=None,
        reason=reason,
        kind="missing",
        split=split.name,
        num_files=len(shards),
    )
