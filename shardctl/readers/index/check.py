"""What has become of the files of a layout that `index` wrote?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.progress import Watch
from shardctl.core.secrets import public_url
from shardctl.core.tabular import Tabular
from shardctl.core.text import counted, in_short
from shardctl.files.stores.remote_path import path_of
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import store_of
from shardctl.readers.index.answer import BrokenFile
from shardctl.readers.index.counting.counting import count_files
from shardctl.readers.index.counting.known import known_counts
from shardctl.readers.index.counting.local_runner import checked_jobs
from shardctl.readers.index.document import IndexedLayout, read_index_file
from shardctl.readers.index.listing import list_files
from shardctl.readers.index.naming.splits_by_hand import chosen_by
from shardctl.readers.index.runner import RunnerLike
from shardctl.readers.records.contents import FileContents

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


@dataclass(frozen=True, kw_only=True)
class IndexCheck(Tabular):
    """The files of a layout then and now.

    changes: in shard order, files that appeared at the end. num_touched: files that were written
    again, with as many bytes and examples, so that the layout holds; they are no changes.
    """

    layout: str
    dataset: Dataset
    changes: tuple[FileChange, ...]
    num_files: int
    num_touched: int
    num_counted: int
    warnings: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the layout still says what there is."""
        return not self.changes

    def __repr__(self) -> str:
        changes = counted(len(self.changes), "change")
        return in_short(self, self.dataset.title, counted(self.num_files, "file"), changes)


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
        file of the same size that was written again is counted: another number of examples is a
        change, the same is none.

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
    comparison = _Comparison(known_as, _listed(wanted, known_as.dataset, given=bool(paths)))
    recount = comparison.changed() if not checksums else comparison.present()
    # What a disk spoils keeps its time of change: contents that were sound then are read again.
    with known_counts(cache=cache and not checksums, earlier=None) as known:
        found = count_files(
            [file for _, file in recount],
            known_as.dataset.file_format,
            known,
            checksums=checksums,
            runner=runner,
            jobs=jobs,
            keep_going=True,
            watch=watch,
        )
    now = [
        found.broken.get(number) or FileContents(num_records=found.num_records[number])
        for number in range(len(recount))
    ]
    changes = list(comparison.changes([place for place, _ in recount], now))
    return IndexCheck(
        layout=public_url(os.fspath(layout)),
        dataset=known_as.dataset,
        changes=tuple(changes),
        num_files=known_as.num_files,
        num_touched=comparison.num_touched,
        num_counted=found.num_counted,
        warnings=tuple(known.warnings),
    )


def _listed(paths: Sequence[str], dataset: Dataset, *, given: bool) -> Sequence[StoredFile]:
    """Return the files of some paths; those that are gone are no error where their folder is there.

    A place that cannot be asked is one: nothing tells that its files vanished. So is a path that is
    `given` now, which may be mistyped, where nothing else is there.
    """
    absent: list[str] = []
    files = list_files(paths, absent=absent).files
    folder = dataset.data_dir or ""
    if absent and not len(files) and (given or not store_of(folder).is_folder(folder)):
        list_files(absent[:1])  # which raises, and says what is near
    return files


class _Comparison:
    """The files of a layout beside those that are there."""

    def __init__(self, layout: IndexedLayout, listed: Sequence[StoredFile]) -> None:
        self.num_touched = 0
        self._layout = layout
        self._root = f"{(layout.dataset.data_dir or '').rstrip('/')}/"
        self._listed = listed
        places = {hash(path): place for place, path in enumerate(layout.paths())}
        self._here: dict[int, int] = {}  # a file of the layout -> the same among those listed
        self._new: list[int] = []
        broken = {self._root + file.path: at for at, file in enumerate(layout.broken)}
        self._broken: dict[int, int] = {}  # the same of those that were broken then
        is_chosen = chosen_by(layout.globs, layout.dataset.data_dir or "")
        for number, file in enumerate(listed):
            place = places.get(hash(file.path))
            if place is not None and layout.file(place).path == file.path:
                self._here[place] = number
            elif file.path in broken:
                self._broken[layout.num_files + broken[file.path]] = number
            elif is_chosen(file.path):
                self._new.append(number)

    def present(self) -> list[tuple[int, StoredFile]]:
        """Return the files of the layout that are there, those that were broken behind the others.

        Their places go on where those of the whole ones end.
        """
        return list(self._present())

    def _present(self) -> Iterator[tuple[int, StoredFile]]:
        for here in (self._here, self._broken):
            for place in sorted(here):
                yield place, self._listed[here[place]]

    def changed(self) -> list[tuple[int, StoredFile]]:
        """Return the files of the layout that are of another size or version, or of none."""
        return [(place, file) for place, file in self._present() if not self._is_same(place, file)]

    def _is_same(self, place: int, file: StoredFile) -> bool:
        if place >= self._layout.num_files:
            then = self._layout.broken[place - self._layout.num_files]
            same = (then.num_bytes, then.version) == (file.num_bytes, file.version)
        else:
            same = self._layout.file(place) == file
        return bool(file.version) and same

    def changes(
        self, counted_places: Sequence[int], now: Sequence[FileContents]
    ) -> Iterator[FileChange]:
        """Yield what changed, with what the files hold that were counted again."""
        again = dict(zip(counted_places, now, strict=True))
        for place in range(self._layout.num_files):
            if place not in self._here:
                yield self._change("vanished", place)
            elif place in again:
                yield from self._counted(place, again[place])
        for place, file in enumerate(self._layout.broken, self._layout.num_files):
            if place not in self._broken:
                yield FileChange(kind="vanished", path=file.path, bytes_then=file.num_bytes)
            elif place in again:
                yield from self._counted_broken(place, file, again[place])
        for number in self._new:
            new = self._listed[number]
            path = new.path.removeprefix(self._root)
            yield FileChange(kind="appeared", path=path, bytes_now=new.num_bytes)

    def _counted(self, place: int, contents: FileContents) -> Iterator[FileChange]:
        then, file = self._layout.file(place), self._listed[self._here[place]]
        if file.num_bytes != then.num_bytes:
            kind: ChangeKind = "grew" if file.num_bytes > then.num_bytes else "shrank"
            yield self._change(kind, place, contents)
        elif contents.damage is not None:
            yield self._change("broken", place, contents)
        elif contents.num_records != self._layout.num_records(place):
            yield self._change("rewritten", place, contents)
        elif file.version != then.version:
            self.num_touched += 1

    def _counted_broken(
        self, place: int, then: BrokenFile, contents: FileContents
    ) -> Iterator[FileChange]:
        """Yield what became of a file that was broken; one that is whole now belongs in."""
        now = self._listed[self._broken[place]].num_bytes
        if now == then.num_bytes and contents.damage is not None:
            return
        kinds: tuple[ChangeKind, ...] = ("rewritten", "grew", "shrank")
        yield FileChange(
            kind=kinds[(now > then.num_bytes) - (now < then.num_bytes)],
            path=then.path,
            split=then.finding.split,
            now=None if contents.damage is not None else contents.num_records,
            bytes_then=then.num_bytes,
            bytes_now=now,
            reason=contents.damage.text if contents.damage else None,
        )

    def _change(
        self, kind: ChangeKind, place: int, contents: FileContents | None = None
    ) -> FileChange:
        then, number = self._layout.file(place), self._here.get(place)
        damage = None if contents is None else contents.damage
        return FileChange(
            kind=kind,
            path=then.path.removeprefix(self._root),
            split=self._layout.split_of(place),
            then=self._layout.num_records(place),
            now=None if contents is None or damage else contents.num_records,
            bytes_then=then.num_bytes,
            bytes_now=None if number is None else self._listed[number].num_bytes,
            reason=damage.text if damage else None,
        )
