"""The contents of every file of a dataset, counted and checked beside its metadata."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.progress import Watch
from shardctl.base.text import choices, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME, POSITIONS
from shardctl.dataset.dataset import DEADLY, Dataset, DatasetLike, FileFinding, Split, as_dataset
from shardctl.errors import DatasetError, MissingDependencyError, UsageError
from shardctl.metadata.files_on_disk import FilesOnDisk, check_files, none_here
from shardctl.metadata.index.bare import naming_damaged
from shardctl.metadata.index.count import count_files
from shardctl.metadata.index.workers import Runner, RunnerLike, checked_jobs
from shardctl.records.contents import Damage, FileContents
from shardctl.records.read_file import why_not_read
from shardctl.spec.reads import Reads
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import RemotePath, answers, file_in, is_file, is_remote, path_of


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitFiles:
    """What was read of a split.

    num_files: files that the metadata names, but for absent ones of shards without examples.
    num_files_read: those that were read to their end, damaged data among them.
    num_records: whole records in all of them.
    num_bytes: the size of all its files; `num_bytes_read` of them were read.
    checked: how the files that were read to their end were checked, and how many in each way.
    """

    name: str
    num_examples: int
    num_records: int
    num_files: int
    num_files_read: int
    num_bytes: int
    num_bytes_read: int
    checked: dict[str, int]


@dataclass(frozen=True, kw_only=True, repr=False)
class FilesVerification(Tabular):
    """What the files of some splits hold, and all that is wrong with them, by split and shard.

    checked: as of a split, of all of them: "digest" where all bytes were, by the layout's digests.
    notes: what was not, or could not be, checked.
    """

    dataset: Dataset
    splits: tuple[SplitFiles, ...]
    findings: tuple[FileFinding, ...]
    checked: dict[str, int]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def num_files(self) -> int:
        """Files of all splits, see `SplitFiles`."""
        return sum(split.num_files for split in self.splits)


@naming_damaged()  # while `checked` reads the dataset
@checked
def verify_files(
    dataset: DatasetLike,
    *splits: str,
    jobs: int | None = None,
    runner: RunnerLike | None = None,
    watch: Watch | None = None,
) -> FilesVerification:
    """Read every record of every file of some splits, without TensorFlow, and say what is wrong.

    Args:
        dataset: a reference, a path, a list of these, or a Dataset; its files may be remote.
        splits: names of splits; all of them for none.
        jobs: how many processes read, else as many as there are processors.
        runner: what reads the files instead of processes of this machine.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        A FilesVerification; `findings` name files that are damaged, missing or too many. Records
        are checked by the checksums that their file has, and all bytes by the digest that a layout
        of `index(digest=True)` has. Without it contents that are sound and elsewhere than they
        should be are not seen, two shards of equal length that were swapped for one.

    Raises:
        UsageError: no such split, or nothing to verify: the splits have no examples and no files.
        DatasetError: the dataset names no folder of files, they are in a format not read here, or a
            remote folder cannot be listed.
        MissingDependencyError: a package that the format needs is not installed.

    >>> import shardctl
    >>> shardctl.verify_files("mnist", "test")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    shardctl.errors.DatasetError: 'mnist:3.0.1' has no files on this machine (built-in catalog); ...
    """
    jobs = checked_jobs(jobs, runner)
    dataset = as_dataset(dataset)
    chosen = dataset.whole_splits(splits, "files are checked by whole splits")
    reason = why_not_read(dataset.file_format)
    if reason is not None:
        has_none = dataset.file_format == POSITIONS
        raise DatasetError(f"{dataset.title} has no files to check" if has_none else reason)
    for split in chosen:
        _check_place(dataset, split)
    on_disk = check_files(dataset)
    if on_disk.unlisted is not None:
        raise DatasetError(on_disk.unlisted)
    # By index: splits are told apart by their place in the dataset.
    numbers = [dataset.splits.index(split) for split in chosen]
    files = {file[0]: file[1:] for number in numbers for file in _files(dataset, number, on_disk)}
    digest = any(any(split.shard_digests or ()) for split in chosen)
    how: dict[str, Any] = {"digest": digest, "jobs": jobs, "runner": runner, "watch": watch}
    read = read_record_files(files, dataset.file_format, **how)
    found = _findings(dataset, read)
    # Empty shards may be absent.
    needed = [place for place in files if dataset.splits[place[0]].shard_lengths[place[1]]]
    # Per-file findings, then those of the listing that do not repeat them.
    findings = (
        *(one for one in dataset.damaged if one.split in {split.name for split in chosen}),
        *_missing_as_one(dataset, sorted({*needed, *found}), found),
        *_findings_of_names(chosen, on_disk, {one.split for one in found.values()}),
    )
    if not files and not findings:
        raise UsageError(
            f"nothing to verify: {choices(split.name for split in chosen)} of {dataset.title} "
            "has no examples, and no files"
        )
    of_splits = tuple(
        _split_files(split, {place[1]: one for place, one in read.items() if place[0] == number})
        for number, split in zip(numbers, chosen, strict=True)
    )
    ways = sum((Counter(split.checked) for split in of_splits), Counter[str]())
    return FilesVerification(
        dataset=dataset,
        splits=of_splits,
        findings=findings,
        checked=dict(sorted(ways.items())),
        notes=tuple(
            text.format(dataset.file_format)
            for what, text in _NOTES.items()
            if what in ways or (what == dataset.file_format and set(ways) - {"digest"})
        ),
    )


_NOTES = {
    "decoded": "every row of the {} files was decoded; where they carry no checksums (TFDS writes "
    "none), a changed byte that can still be decoded is not seen",
    "framing": "the {} files carry no checksums of their data: headers and sizes were checked; "
    "a changed byte of the data is not seen",
    "array_record": "the signature and the padding of {} files, which readers skip, were not "
    "checked",
}


def _check_place(dataset: Dataset, split: Split) -> None:
    folders = [part.data_dir for part in split.files]
    if split.num_shards and (not folders or None in folders):
        raise DatasetError(
            f"{quoted(dataset.title)} has no files on this machine ({dataset.origin}); name a "
            "prepared dataset, or a layout with data_dir"
        )


def _files(dataset: Dataset, number: int, on_disk: FilesOnDisk) -> Iterator[tuple[Place, str, int]]:
    """Yield the files of a split; those of shards without examples need not be there."""
    split = dataset.splits[number]
    for shard, (length, size) in enumerate(
        zip(split.shard_lengths, on_disk.shard_bytes[split.name], strict=True)
    ):
        if length or size is not None:
            folder, name = split.location(shard)
            yield (number, shard), file_in(folder or "", name), size or 0


def _split_files(split: Split, of_shards: Mapping[int, FileContents]) -> SplitFiles:
    read = of_shards.values()
    ways = Counter(
        "digest" if _digest(split, shard) and one.digest else one.checked
        for shard, one in of_shards.items()
        if one.whole
    )
    return SplitFiles(
        name=split.name,
        num_examples=split.num_examples,
        num_records=sum(one.num_records or 0 for one in read),
        num_files=len(read),
        num_files_read=sum(one.whole for one in read),
        num_bytes=sum(one.num_bytes or 0 for one in read),
        num_bytes_read=sum(one.num_bytes_read for one in read),
        checked=dict(sorted(ways.items())),
    )


def _digest(split: Split, shard: int) -> str | None:
    return None if split.shard_digests is None else split.shard_digests[shard]


def _findings_of_names(
    splits: Sequence[Split], on_disk: FilesOnDisk, damaged: Collection[str | None]
) -> Iterator[FileFinding]:
    """Yield what listing the folders shows; the size of a split where its files are sound."""
    asked_for = {None, *(split.name for split in splits)}
    for problem in on_disk.problems:
        of_size = problem.kind == "size" and problem.split in damaged
        # What is missing or empty shows in what the files hold.
        if problem.kind not in ("missing", "empty") and problem.split in asked_for and not of_size:
            yield problem


# The contents of the files of an order, checked before a library opens the first of them.

Place = tuple[int, int]  # of a file: a split and a shard of it, by their indices


@dataclass(frozen=True, kw_only=True)
class FileChecks:
    """How many files were checked, what is wrong with which, and what was not checked."""

    num_files: int
    findings: tuple[FileFinding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def deadly(self) -> str | None:
        """Why TensorFlow must not open the files: its reader would hang or die at one of them."""
        for finding in self.findings:
            if finding.kind in DEADLY:
                return (
                    f"TensorFlow does not open the files, since it would hang or die at "
                    f"{quoted(finding.filename)}"
                )
        return None


def check_files_read(reads: Reads, watch: Watch | None = None) -> FileChecks:
    """Count and check every example in the files that rows read, whole files.

    Where none of the files is here, they are missing if metadata lies in their folder, which says
    that it holds them; a layout or a catalog entry says no such thing, and nothing is checked.
    Neither is what nothing here reads, as a note then says.
    """
    dataset = reads.dataset
    # Each file once: unique columns of (split, shard).
    pairs = np.unique(np.stack([reads.split, reads.shard]), axis=1).T.tolist()
    places = [(split, shard) for split, shard in pairs]
    # No file here: only metadata beside them says that they should be.
    if first_file_here(reads) is None:
        read = {one: _MISSING for one in places if _is_said_to_be_here(dataset.splits[one[0]])}
    elif (reason := why_not_read(dataset.file_format)) is not None:
        return FileChecks(num_files=0, notes=(reason,))
    else:
        paths = {place: file_path(dataset, *place) for place in places}
        files = {place: (path, _size(path)) for place, path in paths.items() if path is not None}
        # What is named but cannot be read counts as missing.
        read = dict.fromkeys(places, _MISSING)
        try:
            read |= read_record_files(files, dataset.file_format, watch=watch)
        except MissingDependencyError as error:
            return FileChecks(num_files=0, notes=(f"the files are not checked: {error}",))
    findings = tuple(_missing_as_one(dataset, list(read), _findings(dataset, read)))
    return FileChecks(num_files=len(read), findings=findings)


def _is_said_to_be_here(split: Split) -> bool:
    folders = {part.data_dir for part in split.files if part.data_dir is not None}
    return any(exists(file_in(folder, DATASET_INFO_FILENAME)) for folder in folders)


def _findings(dataset: Dataset, read: Mapping[Place, FileContents]) -> dict[Place, FileFinding]:
    """Return what is wrong with files beside what the metadata says of them."""
    found = {}
    for (number, shard), contents in read.items():
        split = dataset.splits[number]
        expected, filename = split.shard_lengths[shard], split.filename(shard)
        digest = _digest(split, shard) or contents.digest
        is_other = contents.damage is None and contents.digest not in (None, digest)
        held = replace(contents, damage=_OTHER_BYTES) if is_other else contents
        finding = held.finding(filename, expected, split.name, dataset.compression)
        if finding is not None:
            found[number, shard] = finding
    return found


def _missing_as_one(
    dataset: Dataset, places: Sequence[Place], found: Mapping[Place, FileFinding]
) -> Iterator[FileFinding]:
    """Yield findings by place, one for a split of which none of the files at `places` is here."""
    # Findings come split by split.
    for index, of_split in groupby(places, key=itemgetter(0)):
        shards = [shard for _, shard in of_split]
        here = [found[index, shard] for shard in shards if (index, shard) in found]
        if len(here) == len(shards) and all(finding.kind == "missing" for finding in here):
            yield none_here(dataset.splits[index], shards)
        else:
            yield from here


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


_OTHER_BYTES = Damage(kind="digest", text="its bytes are not those when it was indexed")
_MISSING = FileContents(num_records=None, damage=Damage(kind="missing", text="missing"))


# Which files of a dataset are here: in local folders, or behind URLs.


def file_path(dataset: Dataset, split: int, shard: int) -> str | None:
    """Return where a shard's file lies, None where the dataset has no folder."""
    if not dataset.splits[split].files:
        return None
    folder, name = dataset.splits[split].location(shard)
    return None if folder is None else file_in(folder, name)


def exists(path: str) -> bool:
    """Return whether a file is there, in a local folder or behind a URL.

    Raises:
        DatasetError: the place behind the URL cannot be asked.
    """
    place = path_of(path)
    return is_file(place) if isinstance(place, RemotePath) else os.path.exists(place)


def first_file_here(reads: Reads) -> str | None:
    """Return the first file there is of those that rows read, None where there is none."""
    places = dict.fromkeys(zip(reads.split.tolist(), reads.shard.tolist(), strict=True))
    paths = (file_path(reads.dataset, split, shard) for split, shard in places)
    known = [path for path in paths if path is not None]
    # Remote places are asked several at a time, and no further once one has answered.
    with contextlib.closing(answers(exists, known, at_once=any(map(is_remote, known)))) as here:
        return next((path for path, found in zip(known, here, strict=True) if found), None)


def read_record_files(
    files: Mapping[Place, tuple[str, int]],
    file_format: str,
    *,
    digest: bool = False,
    jobs: int | None = None,
    runner: Runner | None = None,
    watch: Watch | None = None,
) -> dict[Place, FileContents]:
    """Return what files hold, each by its path, and its size where that is known.

    Raises:
        MissingDependencyError: a package that the format needs is not installed.
        DatasetError: a process was ended from outside.
    """
    counts = count_files(
        [StoredFile(path=path, num_bytes=num_bytes) for path, num_bytes in files.values()],
        file_format,
        checksums=True,
        digest=digest,
        runner=runner,
        jobs=jobs,
        keep_going=True,
        listed=False,
        watch=watch,
    )
    held = enumerate(zip(files, counts.contents, strict=True))
    return {place: contents or counts.broken[number] for number, (place, contents) in held}
