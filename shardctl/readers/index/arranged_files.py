"""The files of an arrangement when they are counted: splits, what is broken, what disagrees."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from shardctl.core.dataset.dataset import Split
from shardctl.core.dataset.packed_ints import PackedInts
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import MIN_SHARD_DIGITS
from shardctl.readers.index.answer import (
    Arrangement,
    BrokenFile,
    Index,
    IndexedSplit,
    NameProblem,
)
from shardctl.readers.index.counting.counting import Counts
from shardctl.readers.records.contents import Compression, Damage, FileContents
from shardctl.readers.records.sidecars import Sidecars


class ArrangedFiles:
    """The files of an arrangement one after the other, and what they come to when counted."""

    def __init__(self, arranged: Arrangement, file_format: str) -> None:
        self._arranged = arranged
        self.file_format = file_format
        self.all = [file for split in arranged.splits for file in split.files]
        self._split_of = [split.name for split in arranged.splits for _ in split.files]
        self._root = arranged.root.rstrip("/") + "/"

    def index(self, counts: Counts | None, *, keep_going: bool, seconds: float) -> Index:
        """Return the answer; without counts the names alone."""
        arranged = self._arranged
        packed = None if counts is None else self._compression(counts)
        splits: list[IndexedSplit] = []
        if counts is not None and (keep_going or not counts.broken):
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
        for place, (file, contents) in enumerate(zip(self.all, counts.contents, strict=True)):
            if contents is not None:
                text = sidecars.disagreement(file, contents.num_records or 0)
                if text is None:
                    alike.append(file)
                else:
                    found.append(self._problem(place, f"{self._shown(file.path)}: {text}"))
        if checksums:
            for file, text in sidecars.hash_problems(alike):
                found.append(self._problem(0, f"{self._shown(file.path)}: {text}"))
        absent = sidecars.absent([file.path for file in self.all])
        found += [self._problem(0, f"{self._shown(path)} is not there") for path in absent]
        return tuple(found)

    def _problem(self, place: int, text: str) -> NameProblem:
        return NameProblem(kind="sidecar", split=self._split_of[place], text=text)

    def _shown(self, path: str) -> str:
        return quoted(path.removeprefix(self._root), 200)

    def _compression(self, counts: Counts) -> Compression | None:
        """Return how the files are compressed; those that are unlike the first are broken.

        tf.data reads all files of a dataset in one way; an empty one it reads in each.
        """
        first, like = None, None
        for place, contents in enumerate(counts.contents):
            if contents is None or not (contents.num_records or contents.compression):
                continue
            if first is None:
                first, like = self.all[place].path, contents.compression
            elif contents.compression != like:
                counts.fail(place, _unlike(contents.compression, like, first))
        return like

    def _splits(self, counts: Counts) -> Iterator[IndexedSplit]:
        first = 0
        for arranged in self._arranged.splits:
            places = range(first, first + len(arranged.files))
            whole = [(at, one) for at in places if (one := counts.contents[at]) is not None]
            sizes = tuple(self.all[at].num_bytes for at, _ in whole)
            names = tuple(self.all[at].path.removeprefix(self._root) for at, _ in whole)
            root = self._arranged.root
            files = patterned(names, data_dir=root) or ShardFiles(
                data_dir=root, num_shards=len(names), names=names
            )
            yield IndexedSplit(
                split=Split(
                    name=arranged.name,
                    shard_lengths=PackedInts(one.num_records or 0 for _, one in whole),
                    files=(files,),
                    num_bytes=sum(sizes),
                    shard_bytes=sizes,
                ),
                versions=[
                    "" if at in counts.unsettled else self.all[at].version for at, _ in whole
                ],
                num_broken=len(places) - len(whole),
            )
            first = places.stop

    def _broken(self, counts: Counts, *, all_of_them: bool) -> Iterator[BrokenFile]:
        for place in sorted(counts.broken)[: None if all_of_them else 1]:
            file, damage = self.all[place], counts.broken[place].damage
            damage = damage or Damage(kind="broken", text="it does not say what it holds")
            path, split = file.path.removeprefix(self._root), self._split_of[place]
            what = (split, damage.kind, damage.text, damage.record, damage.byte)
            yield BrokenFile(path, *what, file.num_bytes, file.version)


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


def _unlike(found: Compression | None, like: Compression | None, first: str) -> FileContents:
    said = "is not compressed" if found is None else f"is compressed with {found}"
    other = "is not" if like is None else f"is compressed with {like}"
    text = f"{said}, and {quoted(os.path.basename(first), 200)} {other}; tf.data reads one kind"
    return FileContents(num_records=None, damage=Damage(kind="compressed", text=text))
