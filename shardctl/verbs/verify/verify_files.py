"""The contents of every file of a dataset, counted and checked beside its metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.progress import Watch
from shardctl.base.text import choices, counted, in_short, quoted
from shardctl.dataset.dataset import (
    Dataset,
    DatasetLike,
    FileFinding,
    FindingKind,
    Split,
    as_dataset,
)
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.files_on_disk import FilesOnDisk, check_files
from shardctl.metadata.index.bare import naming_damaged
from shardctl.metadata.index.workers import RunnerLike, checked_jobs
from shardctl.records.read_file import why_not_read
from shardctl.stores.remote_path import file_in
from shardctl.verbs.verify.file_checks import (
    Place,
    missing_as_one,
    note_finding,
    read_record_files,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitFiles:
    """What was read of a split.

    num_files: files that the metadata names, but for absent ones of shards without examples.
    num_files_read: those that were read to their end, damaged data among them.
    num_records: whole records in all of them.
    num_bytes: the size of all its files; `num_bytes_read` of them were read.
    """

    name: str
    num_examples: int
    num_records: int
    num_files: int
    num_files_read: int
    num_bytes: int
    num_bytes_read: int


@dataclass(frozen=True, kw_only=True)
class FilesVerification(Tabular):
    """What the files of some splits hold, and all that is wrong with them, by split and shard.

    checked: how the files that were read to their end were checked, and how many in each way.
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

    def __repr__(self) -> str:
        return in_short(
            self,
            self.dataset.title,
            counted(self.num_files, "file"),
            counted(len(self.findings), "finding"),
        )


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
        are checked by the checksums that their file has. Contents that are sound and elsewhere
        than they should be are not seen, two shards of equal length that were swapped for one.

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
        raise DatasetError(reason)
    for split in chosen:
        _check_place(dataset, split)
    on_disk = check_files(dataset)
    if on_disk.unlisted is not None:
        raise DatasetError(on_disk.unlisted)
    numbers = [dataset.splits.index(split) for split in chosen]
    tallies = [Counter[str]() for _ in dataset.splits]
    ways = Counter[str]()
    found: dict[Place, FileFinding] = {}
    files = {file[0]: file[1:] for number in numbers for file in _files(dataset, number, on_disk)}
    read = read_record_files(files, dataset.file_format, jobs=jobs, runner=runner, watch=watch)
    for place, contents in read:
        note_finding(found, dataset, place, contents)
        tallies[place[0]].update(
            num_files=1,
            num_files_read=int(contents.whole),
            num_records=contents.num_records or 0,
            num_bytes=contents.num_bytes or 0,
            num_bytes_read=contents.num_bytes_read,
        )
        ways.update([contents.checked] if contents.whole else ())
    needed = [place for place in files if dataset.splits[place[0]].shard_lengths[place[1]]]
    findings = (
        *(one for one in dataset.damaged if one.split in {split.name for split in chosen}),
        *missing_as_one(dataset, sorted({*needed, *found}), found),
        *_findings_of_names(chosen, on_disk, {one.split for one in found.values()}),
    )
    if not files and not findings:
        raise UsageError(
            f"nothing to verify: {choices(split.name for split in chosen)} of {dataset.title} "
            "has no examples, and no files"
        )
    return FilesVerification(
        dataset=dataset,
        splits=tuple(_split_files(dataset.splits[at], tallies[at]) for at in numbers),
        findings=findings,
        checked=dict(sorted(ways.items())),
        notes=tuple(_notes(dataset.file_format, ways, found.values())),
    )


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


def _split_files(split: Split, tally: Counter[str]) -> SplitFiles:
    of_all = dict.fromkeys(
        ("num_records", "num_files", "num_files_read", "num_bytes", "num_bytes_read"), 0
    )
    return SplitFiles(name=split.name, num_examples=split.num_examples, **{**of_all, **tally})


def _findings_of_names(
    splits: Sequence[Split], on_disk: FilesOnDisk, damaged: Collection[str | None]
) -> Iterator[FileFinding]:
    """Yield what listing the folders shows; the size of a split where its files are sound."""
    asked_for = {None, *(split.name for split in splits)}
    for problem in on_disk.problems:
        kind, of_size = problem.kind, problem.kind == "size" and problem.split in damaged
        # What is missing or empty shows in what the files hold.
        if kind in ("missing", "empty") or problem.split not in asked_for or of_size:
            continue
        yield FileFinding(
            filename=problem.filename,
            expected=None,
            found=None,
            reason=problem.text,
            kind=cast(FindingKind, kind),
            split=problem.split,
        )


def _notes(form: str, ways: Mapping[str, int], found: Collection[FileFinding]) -> Iterator[str]:
    if "decoded" in ways:
        none = "checksums (TFDS writes none)" if form == "parquet" else "checksums"
        yield (
            f"the {form} files carry no {none}: every row was decoded; "
            "a changed byte that can still be decoded is not seen"
        )
    if "framing" in ways:
        yield (
            f"the {form} files carry no checksums of their data: headers and sizes were "
            "checked; a changed byte of the data is not seen"
        )
    if form == "parquet" and any(
        one.kind == "count" and (one.found or 0) < (one.expected or 0) for one in found
    ):
        yield "TFDS 4.9.10 drops rows as it writes parquet; shardctl lint --explain SC061 tells"
    if form == "array_record" and ways:
        yield (
            "the signature and the padding of array_record files, which readers skip, "
            "were not checked"
        )
