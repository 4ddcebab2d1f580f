"""Record files without metadata become a dataset: found, put in order, counted."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Split
from shardctl.core.dataset.packed_ints import PackedInts
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.on_demand import OnDemand
from shardctl.core.phrase import phrase
from shardctl.core.progress import Watch
from shardctl.core.secrets import public_url
from shardctl.core.text import quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.answer import BrokenFile, Index, IndexedSplit
from shardctl.readers.index.arrangement import ArrangedSplit, Arrangement, NameProblem
from shardctl.readers.index.counting.counting import COMPRESSIONS, Counts, count_files
from shardctl.readers.index.counting.known import known_counts
from shardctl.readers.index.counting.local_runner import LocalRunner, checked_jobs
from shardctl.readers.index.listing import list_files
from shardctl.readers.index.names import arrange
from shardctl.readers.index.runner import Runner
from shardctl.readers.records.contents import Compression, Damage, FileContents
from shardctl.readers.records.read_file import format_of, why_not_read
from shardctl.readers.records.sidecars.sidecars import Sidecars


@checked
def index(
    *paths: str | os.PathLike[str],
    split: Mapping[str, str] | None = None,
    name: str | None = None,
    file_format: str | None = None,
    checksums: bool = False,
    keep_going: bool = False,
    jobs: int | None = None,
    cache: bool = True,
    earlier: str | os.PathLike[str] | None = None,
    runner: Runner | None = None,
    watch: Watch | None = None,
) -> Index:
    """Count the examples of record files without metadata, from framing or footers alone.

    Args:
        paths: files, folders, globs, `prefix@1024` or `prefix@*`, on this machine or remote.
        split: the files of each split by a glob, where their names do not say it.
        name: the dataset's name, else what the files' names begin with, or their folder's.
        file_format: of files whose names do not tell it.
        checksums: read the contents too, and compare them with their checksums.
        keep_going: count all that is whole, whatever is broken or missing.
        jobs: how many processes count, else as many as there are processors.
        cache: take counts that are known, of files of the same size and time of change, from the
            user's cache folder, and keep new ones there.
        earlier: a layout that `index` wrote; counts of files that did not change are taken from it.
        runner: what counts the files instead of processes of this machine.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        An Index; its `dataset` is what every function takes. What is wrong with files is in
        `broken` and `problems`; without `keep_going` counting ends at the first broken file.

    Raises:
        DatasetError: there are no such files, or names that cannot be put in order.
        MissingDependencyError: a package that the format or the place needs is not installed.
    """
    jobs = checked_jobs(jobs)
    begin = time.monotonic()
    wanted = tuple(public_url(os.fspath(path)) for path in paths)
    listing = list_files(wanted, watch=_listed(watch))
    arranged = arrange(listing, splits=split, name=name)
    files = _Files(arranged, _format_of(arranged, file_format))
    counts, problems, warnings = None, arranged.problems, arranged.notes
    if keep_going or not arranged.problems:
        with known_counts(cache=cache, earlier=earlier) as known:
            counts = count_files(
                files.all,
                files.file_format,
                checksums=checksums,
                runner=runner or LocalRunner(jobs=jobs),
                known=known,
                keep_going=keep_going,
                watch=watch,
            )
        sidecars = Sidecars(arranged.sidecars)
        problems += files.compare(counts, sidecars)
        warnings += (*known.warnings, *sidecars.problems)
    found = files.index(counts, keep_going=keep_going, seconds=time.monotonic() - begin)
    return replace(found, paths=wanted, problems=problems, warnings=warnings)


def _listed(watch: Watch | None) -> Callable[[int], None] | None:
    """Return what is told how many files were found, of nobody knows how many."""
    return None if watch is None else lambda found: watch("files found", found, 0)


def _format_of(arranged: Arrangement, given: str | None) -> str:
    """Return the format of files: as it is given, by their names, or by how the first begins."""
    if given is not None:
        why = why_not_read(given)
        if why is not None:
            raise UsageError(phrase("{file_format!}: {}", why, file_format=given))
        return given
    if arranged.file_format is not None:
        return arranged.file_format
    files = chain.from_iterable(split.files for split in arranged.splits)
    first = next((file for file in files if file.num_bytes), None)
    found = None if first is None else format_of(first)
    if found is None:
        raise DatasetError(
            phrase(
                "{}: neither the name nor the first bytes tell its format; give {file_format}",
                quoted(arranged.splits[0].files[0].path if first is None else first.path, 200),
            )
        )
    return found


class _Files:
    """The files of an arrangement one after the other, and what they come to when counted."""

    def __init__(self, arranged: Arrangement, file_format: str) -> None:
        self._arranged = arranged
        self.file_format = file_format
        self.all = _one_behind_the_other([split.files for split in arranged.splits])
        self._stops = list(accumulate(len(split.files) for split in arranged.splits))
        self._root = arranged.root.rstrip("/") + "/"

    def index(self, counts: Counts | None, *, keep_going: bool, seconds: float) -> Index:
        """Return the answer; without counts the names alone."""
        arranged = self._arranged
        packed: Compression | None = None
        splits: list[IndexedSplit] = []
        if counts is not None:
            packed = self._compression(counts)
            if keep_going or not counts.broken:
                splits = [found for found in self._splits(counts) if found.split.num_shards]
        return Index(
            name=arranged.name or os.path.basename(self._root.rstrip("/")) or "dataset",
            version=arranged.version,
            file_format=self.file_format,
            compression=packed,
            data_dir=arranged.root,
            splits=tuple(splits),
            broken=() if counts is None else tuple(self._broken(counts, all_of_them=keep_going)),
            problems=arranged.problems,
            keep_going=keep_going,
            num_files=len(self.all),
            num_known=0 if counts is None else counts.num_known,
            num_counted=0 if counts is None else counts.num_counted,
            num_bytes_read=0 if counts is None else counts.num_bytes_read,
            seconds=seconds,
        )

    def compare(self, counts: Counts, sidecars: Sidecars) -> tuple[NameProblem, ...]:
        """Return where whole files are not as files beside them say, and which are not there."""
        if not sidecars:
            return ()
        found = []
        for place, file in enumerate(self.all):
            held = counts.num_records[place]
            text = sidecars.disagreement(file, held) if held >= 0 else None
            if text is not None:
                found.append(self._problem(place, f"{self._shown(file.path)}: {text}"))
        absent = sidecars.absent([file.path for file in self.all])
        found += [self._problem(0, f"{self._shown(path)} is not there") for path in absent]
        return tuple(found)

    def _problem(self, place: int, text: str) -> NameProblem:
        return NameProblem(kind="sidecar", split=self._split_of(place).name, text=text)

    def _shown(self, path: str) -> str:
        return quoted(path.removeprefix(self._root), 200)

    def _split_of(self, place: int) -> ArrangedSplit:
        return self._arranged.splits[bisect_right(self._stops, place)]

    def _compression(self, counts: Counts) -> Compression | None:
        """Return how the files are compressed; those that are unlike the first are broken.

        tf.data reads all files of a dataset in one way.
        """
        whole = (i for i in range(len(self.all)) if counts.num_records[i] >= 0)
        first = next(whole, None)
        if first is None:
            return None
        kind = counts.compressions[first]
        if counts.compressions.count(kind) < len(self.all):
            for place in whole:
                if counts.compressions[place] != kind:
                    found, like = COMPRESSIONS[counts.compressions[place]], COMPRESSIONS[kind]
                    counts.fail(place, _unlike(found, like, self.all[first].path))
        return COMPRESSIONS[kind]

    def _splits(self, counts: Counts) -> Iterator[IndexedSplit]:
        first = 0
        for arranged in self._arranged.splits:
            stop = first + len(arranged.files)
            lengths = counts.num_records[first:stop]
            whole = [place for place in range(len(lengths)) if lengths[place] >= 0]
            files = arranged.files
            if len(whole) < len(files):
                files = OnDemand(len(whole), _at(arranged.files, whole))
                lengths = array("q", (lengths[place] for place in whole))
            sizes = tuple(file.num_bytes for file in files)
            unsettled = {place for place in whole if first + place in counts.unsettled}
            yield IndexedSplit(
                split=Split(
                    name=arranged.name,
                    shard_lengths=PackedInts(lengths),
                    files=(self._shard_files(arranged, files),),
                    num_bytes=sum(sizes),
                    shard_bytes=sizes,
                ),
                versions=OnDemand(len(files), _version(files, unsettled)),
                num_broken=len(arranged.files) - len(files),
            )
            first = stop

    def _shard_files(self, arranged: ArrangedSplit, files: Sequence[StoredFile]) -> ShardFiles:
        """Return the names of files: by their template, where it says just these."""
        names = tuple(file.path.removeprefix(self._root) for file in files)
        if arranged.template is not None and len(files) == len(arranged.files) and files:
            templated = ShardFiles.from_template(
                arranged.template,
                dataset=self._arranged.name or "",
                split=arranged.name,
                file_format=self.file_format,
                num_shards=len(files),
                data_dir=self._arranged.root,
            )
            if tuple(templated) == names:
                return templated
        return ShardFiles(data_dir=self._arranged.root, num_shards=len(names), names=names)

    def _broken(self, counts: Counts, *, all_of_them: bool) -> Iterator[BrokenFile]:
        for place in sorted(counts.broken)[: None if all_of_them else 1]:
            split = self._split_of(place).name
            file, contents = self.all[place], counts.broken[place]
            path = file.path.removeprefix(self._root)
            finding = contents.finding(os.path.basename(path), -1, split)
            if finding is not None:
                yield BrokenFile(
                    path=path,
                    num_bytes=file.num_bytes,
                    version=file.version,
                    finding=replace(finding, expected=None),
                )


def _one_behind_the_other(parts: Sequence[Sequence[StoredFile]]) -> OnDemand[StoredFile]:
    stops = list(accumulate(map(len, parts)))

    def at(index: int) -> StoredFile:
        part = bisect_right(stops, index)
        return parts[part][index - stops[part]]

    return OnDemand(stops[-1] if stops else 0, at, lambda: chain.from_iterable(parts))


def _at(files: Sequence[StoredFile], places: Sequence[int]) -> Callable[[int], StoredFile]:
    return lambda index: files[places[index]]


def _version(files: Sequence[StoredFile], unsettled: Container[int]) -> Callable[[int], str]:
    return lambda index: "" if index in unsettled else files[index].version


def _unlike(found: Compression | None, like: Compression | None, first: str) -> FileContents:
    said = "is not compressed" if found is None else f"is compressed with {found}"
    other = "is not" if like is None else f"is compressed with {like}"
    text = f"{said}, and {quoted(os.path.basename(first), 200)} {other}; tf.data reads one kind"
    return FileContents(num_records=None, damage=Damage(kind="compressed", text=text))
