"""Record files without metadata become a dataset: found, put in order, counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, islice

from shardctl.core.arguments.checked import checked
from shardctl.core.phrase import option, refused
from shardctl.core.progress import Watch
from shardctl.core.secrets import public_url
from shardctl.core.text import choices, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.readers.index.answer import Arrangement, Index
from shardctl.readers.index.arranged_files import ArrangedFiles
from shardctl.readers.index.counting.counting import count_files
from shardctl.readers.index.counting.known import known_counts
from shardctl.readers.index.counting.local_runner import checked_jobs
from shardctl.readers.index.listing import list_files
from shardctl.readers.index.names import arrange
from shardctl.readers.index.runner import RunnerLike
from shardctl.readers.records.read_file import FORMATS, format_of, why_not_read
from shardctl.readers.records.sidecars import Sidecars

_LOOKED_AT = 16  # files that may tell the format of all


@checked
def index(
    *paths: str | os.PathLike[str],
    split: Mapping[str, str | os.PathLike[str]] | None = None,
    name: str | None = None,
    file_format: str | None = None,
    checksums: bool = False,
    keep_going: bool = False,
    jobs: int | None = None,
    cache: bool = True,
    earlier: str | os.PathLike[str] | None = None,
    runner: RunnerLike | None = None,
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
        jobs: how many processes count, without `runner`; else as many as there are processors.
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

    >>> import shardctl
    >>> found = shardctl.index("data/train-*.tfrecord")  # doctest: +SKIP
    >>> shardctl.plan(found.dataset, "train[:10%]")  # doctest: +SKIP
    """
    jobs = checked_jobs(jobs, runner)
    if split is not None and not split:
        raise UsageError("--split: no split is named; without it the names of files tell")
    by_hand = None if split is None else {name: os.fspath(glob) for name, glob in split.items()}
    begin = time.monotonic()
    wanted = tuple(public_url(os.fspath(path)) for path in paths)
    listing = list_files(wanted, watch=_listed(watch))
    arranged = arrange(listing, splits=by_hand, name=name)
    files = ArrangedFiles(arranged, _format_of(arranged, file_format))
    counts, problems, warnings = None, arranged.problems, arranged.notes
    agreed, said_by = 0, tuple[str, ...]()
    if keep_going or not arranged.problems:
        sidecars = Sidecars(arranged.sidecars)
        with known_counts(cache=cache, earlier=earlier) as known:
            counts = count_files(
                files.all,
                files.file_format,
                known,
                checksums=checksums,
                runner=runner,
                jobs=jobs,
                keep_going=keep_going,
                watch=watch,
            )
        problems += files.compare(counts, sidecars, checksums=checksums)
        warnings += (*known.warnings, *sidecars.problems)
        agreed, said_by = sidecars.num_agreed, tuple(sorted(sidecars.said_by))
    found = files.index(counts, keep_going=keep_going, seconds=time.monotonic() - begin)
    return replace(
        found,
        paths=wanted,
        globs=tuple((by_hand or {}).items()),
        problems=problems,
        num_agreed=agreed,
        said_by=said_by,
        warnings=warnings,
    )


def _listed(watch: Watch | None) -> Callable[[int], None] | None:
    """Return what is told how many files were found, of nobody knows how many."""
    return None if watch is None else lambda found: watch("files found", found, 0)


def _format_of(arranged: Arrangement, given: str | None) -> str:
    """Return the format of files: as it is given, by their names, or by how some begin."""
    if given is not None:
        why = why_not_read(given)
        if why is not None:
            formats = choices(FORMATS, len(FORMATS))
            raise refused("{file_format!}: {}; choose from {}", why, formats, file_format=given)
        return given
    if arranged.file_format is not None:
        return arranged.file_format
    files = chain.from_iterable(split.files for split in arranged.splits)
    if ".riegeli" in (path := next(files).path):  # which begins as array_record does
        raise DatasetError(f"{quoted(path, 200)}: {why_not_read('riegeli')}")
    files = chain.from_iterable(split.files for split in arranged.splits)
    # A compressed file that holds nothing does not tell.
    first = list(islice((file for file in files if file.num_bytes), _LOOKED_AT))
    found = next(filter(None, map(format_of, first)), None)
    if found is None:
        path = quoted((first or arranged.splits[0].files)[0].path, 200)
        unknown = "neither the name nor the first bytes tell its format"
        raise DatasetError(f"{path}: {unknown}; give {option('file_format')}")
    return found
