"""The files of an arrangement when they are counted: splits, what is broken, what disagrees."""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from shardctl.core.dataset.dataset import Split
from shardctl.core.dataset.packed_ints import PackedInts
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.on_demand import OnDemand
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import MIN_SHARD_DIGITS
from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.answer import (
    ArrangedSplit,
    Arrangement,
    BrokenFile,
    Index,
    IndexedSplit,
    NameProblem,
)
from shardctl.readers.index.counting.counting import COMPRESSIONS, Counts
from shardctl.readers.records.contents import Compression, Damage, FileContents
from shardctl.readers.records.sidecars import Sidecars


class ArrangedFiles:
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

    def compare(
        self, counts: Counts, sidecars: Sidecars, *, checksums: bool = False
    ) -> tuple[NameProblem, ...]:
        """Return where whole files are not as files beside them say, and which are not there.

        With `checksums` whole files are read once more where a sidecar states their hashes.
        """
        if not sidecars:
            return ()
        found, alike = [], []
        for place, file in enumerate(self.all):
            held = counts.num_records[place]
            text = sidecars.disagreement(file, held) if held >= 0 else None
            if text is not None:
                found.append(self._problem(place, f"{self._shown(file.path)}: {text}"))
            elif held >= 0:
                alike.append(place)
        if checksums:
            for file, text in sidecars.hash_problems(self.all[place] for place in alike):
                found.append(self._problem(0, f"{self._shown(file.path)}: {text}"))
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

        tf.data reads all files of a dataset in one way; an empty one it reads in each.
        """
        kinds, records = counts.compressions, counts.num_records
        holding = (at for at in range(len(self.all)) if records[at] > 0 or kinds[at])
        first = next((at for at in holding if records[at] >= 0), None)
        if first is None:
            return None
        kind = kinds[first]
        if kinds.count(kind) < len(self.all):
            for place in holding:
                if records[place] >= 0 and kinds[place] != kind:
                    found, like = COMPRESSIONS[kinds[place]], COMPRESSIONS[kind]
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
            unsettled = {n for n, place in enumerate(whole) if first + place in counts.unsettled}
            yield IndexedSplit(
                split=Split(
                    name=arranged.name,
                    shard_lengths=PackedInts(lengths),
                    files=(self._shard_files(files),),
                    num_bytes=sum(sizes),
                    shard_bytes=sizes,
                ),
                versions=OnDemand(len(files), _version(files, unsettled)),
                num_broken=len(arranged.files) - len(files),
            )
            first = stop

    def _shard_files(self, files: Sequence[StoredFile]) -> ShardFiles:
        """Return the names of files: by a pattern, where one says just these."""
        names = tuple(file.path.removeprefix(self._root) for file in files)
        root = self._arranged.root
        plain = ShardFiles(data_dir=root, num_shards=len(names), names=names)
        return patterned(names, data_dir=root) or plain

    def _broken(self, counts: Counts, *, all_of_them: bool) -> Iterator[BrokenFile]:
        for place in sorted(counts.broken)[: None if all_of_them else 1]:
            split = self._split_of(place).name
            file, contents = self.all[place], counts.broken[place]
            path = file.path.removeprefix(self._root)
            finding = contents.finding(os.path.basename(path), -1, split, contents.compression)
            if finding is not None:
                yield BrokenFile(
                    path=path,
                    num_bytes=file.num_bytes,
                    version=file.version,
                    finding=replace(finding, expected=None),
                )


def patterned(names: Sequence[str], data_dir: str | None = None) -> ShardFiles | None:
    r"""Return names as a pattern with the index of the shard in it, None where they follow none.

    >>> files = patterned(["a-00000-of-00002", "a-00001-of-00002"])
    >>> files and files.pattern.replace("\0", "#")
    'a-#-of-00002'
    """
    zero = "0" * max(MIN_SHARD_DIGITS, len(str(len(names))))
    for found in re.finditer(f"(?={zero})", names[0]) if names else ():
        pattern = names[0][: found.start()] + "\0" + names[0][found.start() + len(zero) :]
        files = ShardFiles(data_dir=data_dir, pattern=pattern, num_shards=len(names))
        if all(files[index] == name for index, name in enumerate(names)):
            return files
    return None


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
