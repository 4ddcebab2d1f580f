"""What changed in the files of a layout that `index` wrote?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.progress import Watch
from shardctl.base.text import path_word, public_url
from shardctl.dataset.dataset import Dataset
from shardctl.metadata.index.count import count_files
from shardctl.metadata.index.listing import list_files
from shardctl.metadata.index.splits_by_name import chosen_by
from shardctl.metadata.index.workers import RunnerLike, checked_jobs
from shardctl.metadata.layouts import IndexedFile, IndexedLayout, read_index_file
from shardctl.records.contents import FileContents
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import path_of, store_of

ChangeKind = Literal["appeared", "vanished", "grew", "shrank", "rewritten", "broken"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """A file that is not as the layout says; None where there is nothing to say.

    kind: "broken" where it is as long as it was; one that grew or shrank may be broken as well.
    path: relative to the layout's data_dir. then, now: examples; bytes_then, bytes_now: its size.
    reason: what is wrong in it where it is broken.
    """

    kind: ChangeKind
    path: str
    split: str | None = None
    then: int | None = None
    now: int | None = None
    bytes_then: int | None = None
    bytes_now: int | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class IndexCheck(Tabular):
    """The files of a layout then and now.

    changes: in shard order, files that appeared at the end. words: what `index` takes to write the
    layout anew: where its files are, and what was said of them by hand.
    """

    layout: str
    dataset: Dataset
    changes: tuple[FileChange, ...]
    num_files: int
    num_counted: int
    words: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the layout still describes the files."""
        return not self.changes


@checked
def check_index(
    layout: str | os.PathLike[str],
    *paths: str | os.PathLike[str],
    checksums: bool = False,
    jobs: int | None = None,
    cache: bool = True,
    runner: RunnerLike | None = None,
    watch: Watch | None = None,
) -> IndexCheck:
    """Compare the files of a layout that `index` wrote with those that are there now.

    Args:
        layout: the path of the file.
        paths: where its files are now, else as they were given to `index`.
        checksums: read the contents of all files too, and compare them with their checksums; those
            that did not change are read as well, whatever the cache knows of them.
        jobs: how many processes count what changed, else as many as there are processors.
        cache: take counts that are known from the user's cache folder, and keep new ones there.
        runner: what counts the files instead of processes of this machine.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        An IndexCheck; `changes` name files that appeared, vanished, grew, shrank, or are broken. A
        file of the same size that was written again is counted: only another number of examples is
        a change, or another digest where the layout has them.

    Raises:
        DatasetError: the file is no layout that `index` wrote, or a place cannot be listed.

    >>> import shardctl
    >>> check = shardctl.check_index("layout.yaml")  # doctest: +SKIP
    >>> [(change.kind, change.path) for change in check.changes]  # doctest: +SKIP
    [('grew', 'train-00003.tfrecord')]
    """
    jobs = checked_jobs(jobs, runner)
    known_as = read_index_file(path_of(os.fspath(layout)))
    wanted = [public_url(os.fspath(path)) for path in paths] or list(known_as.wanted())
    then = {one.file.path: one for one in known_as.files()}
    listed = _listed(wanted, known_as.dataset, given=bool(paths))
    now = {file.path: file for file in listed}
    # Sizes and versions tell which files to count again; the others are taken as they were. One
    # without a version (time or ETag) cannot be known to be unchanged.
    recount = [
        file
        for path, one in then.items()
        if (file := now.get(path)) and (checksums or not file.version or file != one.file)
    ]
    # What a disk spoils keeps its time of change: contents that were sound then are read again.
    found = count_files(
        recount,
        known_as.dataset.file_format,
        cache=cache and not checksums,
        checksums=checksums,
        digest=any(one.digest for one in then.values()),
        runner=runner,
        jobs=jobs,
        keep_going=True,
        watch=watch,
    )
    again = {
        file.path: contents or found.broken[number]
        for number, (file, contents) in enumerate(zip(recount, found.contents, strict=True))
    }
    by_hand = (word for one in known_as.globs.items() for word in ("--split", "=".join(one)))
    return IndexCheck(
        layout=public_url(os.fspath(layout)),
        dataset=known_as.dataset,
        changes=tuple(_changes(known_as, then, now, again)),
        num_files=sum(one.num_records is not None for one in then.values()),  # whole ones
        num_counted=found.num_counted,
        words=(*map(path_word, wanted), *by_hand, "--name", known_as.dataset.name),
        warnings=found.warnings,
    )


def _listed(paths: Sequence[str], dataset: Dataset, *, given: bool) -> Sequence[StoredFile]:
    """Return the files of some paths; those that are gone are no error where their folder is there.

    A place that cannot be asked is one: nothing tells that its files vanished. So is a path that is
    `given` now, which may be mistyped, where nothing else is there.
    """
    absent: list[str] = []
    files = list_files(paths, absent=absent).files
    folder = dataset.data_dir or ""
    # Everything gone may mean a wrong path or an unreachable folder; neither says that files
    # vanished.
    if absent and not len(files) and (given or not store_of(folder).is_folder(folder)):
        list_files(absent[:1])  # which raises, and says what is near
    return files


def _changes(
    layout: IndexedLayout,
    files_then: Mapping[str, IndexedFile],
    files_now: Mapping[str, StoredFile],
    again: Mapping[str, FileContents],
) -> Iterator[FileChange]:
    """Yield what changed, with what the files hold that were counted again."""
    root = f"{(layout.dataset.data_dir or '').rstrip('/')}/"
    for path, then in files_then.items():
        contents, file = again.get(path), files_now.get(path)
        kind = "vanished" if file is None else contents and _kind(then, file, contents)
        damage = contents and contents.damage
        if kind:
            yield FileChange(
                kind=kind,
                path=path.removeprefix(root),
                split=then.split,
                then=then.num_records,
                now=None if contents is None or damage else contents.num_records,
                bytes_then=then.file.num_bytes,
                bytes_now=None if file is None else file.num_bytes,
                reason=damage.text if damage else None,
            )
    # Of files that appeared, only those that the layout's patterns would choose.
    is_chosen = chosen_by(layout.globs, layout.dataset.data_dir or "")
    for path, file in files_now.items():
        if path not in files_then and is_chosen(path):
            name = path.removeprefix(root)
            yield FileChange(kind="appeared", path=name, bytes_now=file.num_bytes)


def _kind(then: IndexedFile, file: StoredFile, contents: FileContents) -> ChangeKind | None:
    """Return what became of a file that was counted again; one as broken as before is none."""
    if file.num_bytes != then.file.num_bytes:
        return "grew" if file.num_bytes > then.file.num_bytes else "shrank"
    if contents.damage is not None:
        # Broken then and now is no change.
        return None if then.num_records is None else "broken"
    same = contents.num_records == then.num_records
    return None if same and then.digest in (None, contents.digest) else "rewritten"
