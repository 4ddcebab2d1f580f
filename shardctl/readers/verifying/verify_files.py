"""The contents of every file of a dataset, counted and checked beside its metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, Split, as_dataset
from shardctl.core.dataset.file_finding import FileFinding, FindingKind
from shardctl.core.progress import Watch
from shardctl.core.tabular import Tabular
from shardctl.core.text import choices, counted, in_short, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.files.stores.remote_path import file_in
from shardctl.readers.files_on_disk import FilesOnDisk, ProblemKind, check_files, none_here
from shardctl.readers.index.bare import naming_damaged
from shardctl.readers.index.counting.local_runner import checked_jobs
from shardctl.readers.index.runner import Runner, RunnerLike
from shardctl.readers.records.contents import FileContents
from shardctl.readers.records.read_file import why_not_read
from shardctl.readers.verifying.file_checks import FileToRead, read_record_files

# What names and sizes show, beside what the files hold.
_OF_NAMES: dict[ProblemKind, FindingKind] = {
    "extra": "extra",
    "wrong-count": "wrong-count",
    "size": "size",
}


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
    check = _Check(dataset=dataset, splits=chosen, on_disk=on_disk)
    check.read(jobs, runner, watch)
    found = check.answer()
    if not found.num_files and found.equal:
        raise UsageError(
            f"nothing to verify: {choices(split.name for split in chosen)} of {dataset.title} "
            "has no examples, and no files"
        )
    return found


def _check_place(dataset: Dataset, split: Split) -> None:
    folders = [part.data_dir for part in split.files]
    if split.num_shards and (not folders or None in folders):
        raise DatasetError(
            f"{quoted(dataset.title)} has no files on this machine ({dataset.origin}); name a "
            "prepared dataset, or a layout with data_dir"
        )


class _Check:
    """The files of some splits while they are read."""

    def __init__(
        self, *, dataset: Dataset, splits: tuple[Split, ...], on_disk: FilesOnDisk
    ) -> None:
        self._dataset = dataset
        self._splits = splits
        self._sizes = [on_disk.shard_bytes[split.name] for split in splits]
        self._on_disk = on_disk
        self._found: dict[tuple[int, int], FileFinding] = {}
        self._tallies = [Counter[str]() for _ in splits]
        self._checked = Counter[str]()

    def read(self, jobs: int | None, runner: Runner | None, watch: Watch | None) -> None:
        num_bytes = sum(size or 0 for sizes in self._sizes for size in sizes)
        read = read_record_files(
            self._files(),
            self._dataset.file_format,
            num_bytes=num_bytes,
            jobs=jobs,
            runner=runner,
            watch=watch,
        )
        for file, contents in read:
            self._note(file, contents)

    def _files(self) -> Iterator[FileToRead]:
        for index, split in enumerate(self._splits):
            for shard, length in enumerate(split.shard_lengths):
                folder, name = split.location(shard)
                path = file_in(folder or "", name)
                size = self._sizes[index][shard]
                if length or size is not None:
                    yield FileToRead(split=index, shard=shard, path=path, num_bytes=size or 0)

    def _note(self, file: FileToRead, contents: FileContents) -> None:
        split, tally = self._splits[file.split], self._tallies[file.split]
        finding = contents.finding(
            split.filename(file.shard),
            split.shard_lengths[file.shard],
            split.name,
            self._dataset.compression,
        )
        if finding is not None:
            self._found[file.split, file.shard] = finding
        tally["files"] += 1
        tally["records"] += contents.num_records or 0
        tally["bytes"] += contents.num_bytes or 0
        tally["bytes read"] += contents.num_bytes_read
        if contents.whole:
            tally["read"] += 1
            self._checked[contents.checked] += 1

    def answer(self) -> FilesVerification:
        return FilesVerification(
            dataset=self._dataset,
            splits=tuple(map(self._split_files, self._splits, self._tallies)),
            findings=tuple(self._findings()),
            checked=dict(sorted(self._checked.items())),
            notes=tuple(self._notes()),
        )

    @staticmethod
    def _split_files(split: Split, tally: Counter[str]) -> SplitFiles:
        return SplitFiles(
            name=split.name,
            num_examples=split.num_examples,
            num_records=tally["records"],
            num_files=tally["files"],
            num_files_read=tally["read"],
            num_bytes=tally["bytes"],
            num_bytes_read=tally["bytes read"],
        )

    def _findings(self) -> Iterator[FileFinding]:
        own: list[list[FileFinding]] = [[] for _ in self._splits]
        for place in sorted(self._found):
            own[place[0]].append(self._found[place])
        names = {split.name for split in self._splits}
        yield from (found for found in self._dataset.damaged if found.split in names)
        for split, found in zip(self._splits, own, strict=True):
            needed = [shard for shard, length in enumerate(split.shard_lengths) if length]
            missing = all(file.kind == "missing" for file in found)
            if found and missing and len(found) == len(needed):
                yield none_here(self._dataset, split, needed)
            else:
                yield from found
        yield from self._findings_of_names({found[0].split for found in own if found})

    def _findings_of_names(self, damaged: set[str | None]) -> Iterator[FileFinding]:
        """Yield what listing the folders shows; the size of a split where its files are sound."""
        asked_for = {None, *(split.name for split in self._splits)}
        for problem in self._on_disk.problems:
            kind = _OF_NAMES.get(problem.kind)
            if kind is None or problem.split not in asked_for:
                continue
            if kind == "size" and problem.split in damaged:
                continue
            yield FileFinding(
                filename=problem.filename,
                expected=None,
                found=None,
                reason=problem.text,
                kind=kind,
                split=problem.split,
            )

    def _notes(self) -> Iterator[str]:
        form = self._dataset.file_format
        if self._checked["decoded"]:
            none = "checksums (TFDS writes none)" if form == "parquet" else "checksums"
            yield (
                f"the {form} files carry no {none}: every row was decoded; "
                "a changed byte that can still be decoded is not seen"
            )
        if self._checked["framing"]:
            yield (
                f"the {form} files carry no checksums of their data: headers and sizes were "
                "checked; a changed byte of the data is not seen"
            )
        counted = [found for found in self._found.values() if found.kind == "count"]
        if self._dataset.file_format == "parquet" and any(
            (found.found or 0) < (found.expected or 0) for found in counted
        ):
            yield "TFDS 4.9.10 drops rows as it writes parquet; shardctl lint --explain SC061 tells"
        if self._dataset.file_format == "array_record" and self._checked:
            yield (
                "the signature and the padding of array_record files, which readers skip, "
                "were not checked"
            )
