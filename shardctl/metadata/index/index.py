"""Record files without metadata become a dataset: found, put in order, counted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from shardctl.base.arguments import checked
from shardctl.base.phrase import option, refused
from shardctl.base.progress import Watch
from shardctl.base.text import choices, public_url, quoted
from shardctl.dataset.dataset import Split
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index.answer import Index, IndexedSplit
from shardctl.metadata.index.count import Counts, count_files
from shardctl.metadata.index.listing import list_files
from shardctl.metadata.index.names import Arrangement, NameProblem, arrange
from shardctl.metadata.index.sidecars import Sidecars
from shardctl.metadata.index.tfds_metadata import patterned
from shardctl.metadata.index.workers import RunnerLike, checked_jobs
from shardctl.metadata.layouts import BrokenFile
from shardctl.records.contents import Compression, Damage, FileContents
from shardctl.records.read_file import FORMATS, format_of

_LOOKED_AT = 16  # files that may tell the format of all


@checked
def index(
    *paths: str | os.PathLike[str],
    split: Mapping[str, str | os.PathLike[str]] | None = None,
    name: str | None = None,
    file_format: str | None = None,
    checksums: bool = False,
    digest: bool = False,
    keep_going: bool = False,
    jobs: int | None = None,
    cache: bool = True,
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
        digest: read all bytes of each file, and keep their SHA-256: `verify_files` finds every byte
            that changed since.
        keep_going: count all that is whole, whatever is broken or missing.
        jobs: how many processes count, without `runner`; else as many as there are processors.
        cache: take counts that are known, of files of the same size and time of change, from the
            user's cache folder, and keep new ones there.
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
    note_listed = None if watch is None else lambda found: watch("files found", found, 0)
    listing = list_files(wanted, watch=note_listed)
    arranged = arrange(listing, splits=by_hand, name=name)
    files = ArrangedFiles(arranged, _format_of(arranged, file_format))
    counts = Counts(contents=[None] * len(files.all))
    problems, warnings, sidecars = arranged.problems, arranged.notes, Sidecars(())
    # Names that leave gaps are an error already: nothing is counted for it.
    if keep_going or not arranged.problems:
        sidecars = Sidecars(arranged.sidecars)
        counts = count_files(
            files.all,
            files.file_format,
            cache=cache,
            checksums=checksums,
            digest=digest,
            runner=runner,
            jobs=jobs,
            keep_going=keep_going,
            watch=watch,
        )
        problems += files.compare(counts, sidecars)
        warnings += (*counts.warnings, *sidecars.problems)
    how: dict[str, Any] = {"keep_going": keep_going, "seconds": time.monotonic() - begin}
    how |= {"paths": wanted, "globs": tuple((by_hand or {}).items())}
    return files.index(counts, problems=problems, warnings=warnings, **how)


def _format_of(arranged: Arrangement, given: str | None) -> str:
    """Return the format of files: as it is given, by their names, or by how some begin."""
    if given is not None:
        if given not in FORMATS:
            formats = choices(FORMATS, len(FORMATS))
            raise refused("{file_format!}: choose from {}", formats, file_format=given)
        return given
    if arranged.file_format is not None:
        return arranged.file_format
    files = [file for split in arranged.splits for file in split.files]
    # A compressed file that holds nothing does not tell.
    first = list(islice((file for file in files if file.num_bytes), _LOOKED_AT))
    found = next(filter(None, map(format_of, first)), None)
    if found is None:
        path = quoted((first or files)[0].path, 200)
        unknown = "its name does not tell its format, and it begins as no TFRecord file"
        raise DatasetError(f"{path}: {unknown}; give {option('file_format')}")
    return found


# The files of an arrangement when they are counted: splits, what is broken, what disagrees.


class ArrangedFiles:
    """The files of an arrangement one after the other, and what they come to when counted."""

    def __init__(self, arranged: Arrangement, file_format: str) -> None:
        self._arranged = arranged
        self.file_format = file_format
        self.all = [file for split in arranged.splits for file in split.files]
        # Parallel to `all`: the split of each file, by the file's position in the list.
        self._split_of = [split.name for split in arranged.splits for _ in split.files]
        self._root = arranged.root.rstrip("/") + "/"

    def index(self, counts: Counts, *, keep_going: bool, **more: Any) -> Index:
        """Return the answer, with more of what it says."""
        arranged = self._arranged
        # First, since it marks files as broken, which the splits then leave out.
        packed = self._compression(counts)
        splits: list[IndexedSplit] = []
        if keep_going or not counts.broken:
            splits = [found for found in self._splits(counts) if found.split.num_shards]
        return Index(
            name=arranged.name or os.path.basename(self._root.rstrip("/")) or "dataset",
            version=arranged.version,
            file_format=self.file_format,
            compression=packed,
            data_dir=arranged.root,
            splits=tuple(splits),
            broken=tuple(self._broken(counts, all_of_them=keep_going)),
            keep_going=keep_going,
            num_files=len(self.all),
            num_known=counts.num_known,
            num_counted=counts.num_counted,
            num_bytes_read=counts.num_bytes_read,
            **more,
        )

    def compare(self, counts: Counts, sidecars: Sidecars) -> tuple[NameProblem, ...]:
        """Return where whole files are not as files beside them say, and which are not there."""
        found = [
            (split, file.path, f": {text}")
            for split, file, contents in zip(self._split_of, self.all, counts.contents, strict=True)
            if contents is not None
            and (text := sidecars.disagreement(file, contents.num_records or 0)) is not None
        ]
        absent = sidecars.absent([file.path for file in self.all])
        found += [(self._split_of[0], path, " is not there") for path in absent]
        return tuple(
            NameProblem(
                kind="sidecar",
                split=split,
                text=f"{quoted(path.removeprefix(self._root), 200)}{text}",
            )
            for split, path, text in found
        )

    def _compression(self, counts: Counts) -> Compression | None:
        """Return how the files are compressed; those that are unlike the first are broken.

        tf.data reads all files of a dataset in one way; an empty one it reads in each.
        """
        first, like = None, None
        for at, contents in enumerate(counts.contents):
            # Broken, or a plain file of no records, which can be read in any way.
            if contents is None or not (contents.num_records or contents.compression):
                continue
            if first is None:
                first, like = self.all[at].path, contents.compression
            elif contents.compression != like:
                counts.fail(at, _unlike(contents.compression, like, first))
        return like

    def _splits(self, counts: Counts) -> Iterator[IndexedSplit]:
        first, root = 0, self._arranged.root
        for arranged in self._arranged.splits:
            # Files lie split after split, so a split is a stretch of the list.
            stop = first + len(arranged.files)
            whole = [
                (at, self.all[at], contents.num_records or 0, contents.digest)
                for at, contents in enumerate(counts.contents[first:stop], first)
                if contents is not None
            ]
            sizes = tuple(file.num_bytes for _, file, *_ in whole)
            names = tuple(file.path.removeprefix(self._root) for _, file, *_ in whole)
            digests = tuple(digest for *_, digest in whole)
            # A pattern where the names follow one: a layout of a few lines for a million files.
            files = patterned(names, data_dir=root) or ShardFiles(
                data_dir=root, num_shards=len(names), names=names
            )
            yield IndexedSplit(
                split=Split(
                    name=arranged.name,
                    shard_lengths=PackedInts(length for _, _, length, _ in whole),
                    files=(files,),
                    num_bytes=sum(sizes),
                    shard_bytes=sizes,
                    shard_digests=digests if any(digests) else None,
                ),
                versions=["" if at in counts.unsettled else one.version for at, one, *_ in whole],
            )
            first = stop

    def _broken(self, counts: Counts, *, all_of_them: bool) -> Iterator[BrokenFile]:
        # Without keep_going later ones may not have been looked at: the first is all that is
        # certain.
        for at in sorted(counts.broken)[: None if all_of_them else 1]:
            file, damage = self.all[at], counts.broken[at].damage
            damage = damage or Damage(kind="broken", text="it does not say what it holds")
            path, split = file.path.removeprefix(self._root), self._split_of[at]
            what = (split, damage.kind, damage.text, damage.record, damage.byte)
            num_found = counts.broken[at].num_records
            yield BrokenFile(path, *what, file.num_bytes, file.version, num_found)


def _unlike(found: Compression | None, like: Compression | None, first: str) -> FileContents:
    said = "is not compressed" if found is None else f"is compressed with {found}"
    other = "is not" if like is None else f"is compressed with {like}"
    text = f"{said}, and {quoted(os.path.basename(first), 200)} {other}; tf.data reads one kind"
    return FileContents(num_records=None, damage=Damage(kind="compressed", text=text))
