"""The contents of the files of an order, checked before a library opens the first of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from shardctl.base.progress import Progress, Watch
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.dataset.dataset import DEADLY, Dataset, FileFinding, Split
from shardctl.errors import MissingDependencyError
from shardctl.metadata.files_on_disk import none_here
from shardctl.metadata.index.count import count_files
from shardctl.metadata.index.workers import Runner
from shardctl.records.contents import Damage, FileContents
from shardctl.records.read_file import why_not_read
from shardctl.spec.reads import Reads
from shardctl.stores.paths import RemotePath, file_in, is_remote, path_of
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import answers, is_file

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
    pairs = np.unique(np.stack([reads.split, reads.shard]), axis=1).T.tolist()
    places = [(split, shard) for split, shard in pairs]
    found: dict[Place, FileFinding] = {}
    if first_file_here(reads) is None:
        places = [place for place in places if _is_said_to_be_here(dataset.splits[place[0]])]
        for place in places:
            note_finding(found, dataset, place, _MISSING)
    elif (reason := why_not_read(dataset.file_format)) is not None:
        return FileChecks(num_files=0, notes=(reason,))
    else:
        paths = {place: file_path(dataset, *place) for place in places}
        files = {place: (path, _size(path)) for place, path in paths.items() if path is not None}
        for place in paths.keys() - files.keys():
            note_finding(found, dataset, place, _MISSING)
        progress = Progress(watch, "files", len(places))
        try:
            for place, contents in read_record_files(files, dataset.file_format, watch=watch):
                progress.advance(1)
                note_finding(found, dataset, place, contents)
        except MissingDependencyError as error:
            return FileChecks(num_files=0, notes=(f"the files are not checked: {error}",))
    findings = tuple(missing_as_one(dataset, places, found))
    return FileChecks(num_files=len(places), findings=findings)


def _is_said_to_be_here(split: Split) -> bool:
    folders = {part.data_dir for part in split.files if part.data_dir is not None}
    return any(exists(file_in(folder, DATASET_INFO_FILENAME)) for folder in folders)


def note_finding(
    found: dict[Place, FileFinding], dataset: Dataset, place: Place, contents: FileContents
) -> None:
    """Note what is wrong with a file beside what the metadata says of it, if anything is."""
    split, shard = dataset.splits[place[0]], place[1]
    expected, filename = split.shard_lengths[shard], split.filename(shard)
    finding = contents.finding(filename, expected, split.name, dataset.compression)
    if finding is not None:
        found[place] = finding


def missing_as_one(
    dataset: Dataset, places: Sequence[Place], found: Mapping[Place, FileFinding]
) -> Iterator[FileFinding]:
    """Yield findings by place, one for a split of which none of the files at `places` is here."""
    for index, of_split in groupby(places, key=itemgetter(0)):
        shards = [shard for _, shard in of_split]
        here = [found[index, shard] for shard in shards if (index, shard) in found]
        if len(here) == len(shards) and all(finding.kind == "missing" for finding in here):
            yield none_here(dataset, dataset.splits[index], shards)
        else:
            yield from here


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except (OSError, ValueError):
        return 0


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
    with contextlib.closing(answers(exists, known, at_once=any(map(is_remote, known)))) as here:
        return next((path for path, found in zip(known, here, strict=True) if found), None)


def read_record_files(
    files: Mapping[Place, tuple[str, int]],
    file_format: str,
    *,
    jobs: int | None = None,
    runner: Runner | None = None,
    watch: Watch | None = None,
) -> Iterator[tuple[Place, FileContents]]:
    """Yield what files hold, each by its path, and its size where that is known.

    Raises:
        MissingDependencyError: a package that the format needs is not installed.
        DatasetError: a process was ended from outside.
    """
    counts = count_files(
        [StoredFile(path=path, num_bytes=num_bytes) for path, num_bytes in files.values()],
        file_format,
        checksums=True,
        runner=runner,
        jobs=jobs,
        keep_going=True,
        listed=False,
        watch=watch,
    )
    for number, (place, contents) in enumerate(zip(files, counts.contents, strict=True)):
        yield place, contents or counts.broken[number]
