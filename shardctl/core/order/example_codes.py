"""Example codes: one int64 for an example of any of the splits that a spec reads."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from shardctl.core.arrays import Int64s, distinct, is_constant, last_not_above
from shardctl.core.dataset.dataset import Dataset, Split, filenames_at, shard_named
from shardctl.core.dataset.shard_names import shard_names
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import INT64_MAX, TFDS_ID_SEPARATOR
from shardctl.errors import UsageError

_TFDS_ID = re.compile(rf"(?P<file>.+){TFDS_ID_SEPARATOR}(?P<index>\d{{1,19}})", re.DOTALL)
_ID = re.compile(r"((?P<split>[\w./-]+):)?(?P<id>\d(_?\d){0,18})")


class ExampleCodes:
    """The names of examples: code, `split:id`, `tfds_id`, and the shard they are in.

    Where a spec reads one split, the code is the id. Where it reads several, the ids of each
    follow those of the split before it in the dataset, and an id is written `split:id`. `given` is
    what the reader is given: where that lies in several folders, a `tfds_id` names them too.

    >>> from shardctl.core.dataset.dataset import Split
    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> splits = tuple(Split.even(name=name, num_examples=4, num_shards=2, files=(
    ...     ShardFiles(pattern=f"d-{name}-\\0", num_shards=2),)) for name in ("train", "test"))
    >>> codes = ExampleCodes(Dataset(name="d", splits=splits), ["test", "train"])
    >>> codes.names([5]), codes.tfds_ids([5]), codes.parse("test:1")
    (['test:1'], ['d-test-00000__1'], 5)
    """

    def __init__(self, dataset: Dataset, splits: Iterable[str], given: Reads | None = None) -> None:
        self.dataset = dataset
        self.given = given
        wanted = set(splits)
        self._splits = [i for i, s in enumerate(dataset.splits) if s.name in wanted]
        self.bases: Int64s = np.zeros(len(dataset.splits), np.int64)
        total = 0
        for index in self._splits:
            self.bases[index] = total
            total += dataset.splits[index].num_examples
            if total > INT64_MAX:
                raise UsageError(f"the splits together have more than {INT64_MAX} examples")
        self._starts = self.bases[self._splits]
        self.num_codes = total

    @property
    def several_splits(self) -> bool:
        """Whether ids need the name of their split."""
        return len(self._splits) > 1

    def names_alike(self, other: ExampleCodes) -> bool:
        """Whether an example has the same code in both."""
        return self.dataset is other.dataset and np.array_equal(self.bases, other.bases)

    def first_codes(self, reads: Reads) -> Int64s:
        """Return the code of the first example that each row reads, int64[n]."""
        bases = self.bases[distinct(reads.split)]
        if not bases.any():
            return reads.first
        return reads.first + (bases[0] if len(bases) == 1 else self.bases[reads.split])

    def ids(self, codes: Int64s) -> list[int] | list[str]:
        """Return ids as ints, or as `split:id` where there are several splits."""
        return self.names(codes) if self.several_splits else codes.tolist()

    def names(self, codes: Sequence[int] | Int64s) -> list[str]:
        """Return ids as text."""
        split, example_ids = self._split_ids(np.asarray(codes, np.int64))
        if not self.several_splits:
            return list(map(str, example_ids.tolist()))
        names = [each.name for each in self.dataset.splits]
        pairs = zip(split.tolist(), example_ids.tolist(), strict=True)
        return [f"{names[which]}:{example_id}" for which, example_id in pairs]

    def split_ids(self, codes: Int64s) -> Int64s:
        """Return the ids counted from the start of the split of each, int64[q]."""
        return self._split_ids(codes)[1]

    def places(self, codes: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return (split index, shard index, index in the shard), int64[q] each."""
        split, example_id = self._split_ids(codes)
        shard, index = np.empty_like(split), np.empty_like(split)
        for which in distinct(split).tolist():
            here = np.flatnonzero(split == which)
            offsets = self.dataset.splits[which].offsets64()
            # "right": empty shards begin where the next one does, and the last of them has the id.
            shard[here] = last_not_above(offsets, example_id[here])
            index[here] = example_id[here] - offsets[shard[here]]
        return split, shard, index

    def tfds_ids(self, codes: Sequence[int] | Int64s) -> list[str]:
        """Return the ids that `ReadConfig(add_tfds_id=True)` gives the examples."""
        return self.tfds_ids_at(*self.places(np.asarray(codes, np.int64)))

    def tfds_ids_at(self, split: Int64s, shard: Int64s, index: Int64s) -> list[str]:
        """Return `tfds_ids` of examples at these places, see `places`."""
        files = self._tfds_names.names(self.dataset.splits, split, shard)
        pairs = zip(files, index.tolist(), strict=True)
        return [f"{file}{TFDS_ID_SEPARATOR}{place}" for file, place in pairs]

    def parse(self, text: str) -> int:
        """Return the code of an id written `id` or `split:id`; `_` may group digits, as in a spec.

        Raises:
            UsageError: no id, a split that is not read, an id beyond the split.
        """
        match = _ID.fullmatch(text)
        if match is None or (match["split"] is None and self.several_splits):
            form = "split:id, as in train:40" if self.several_splits else "a number from 0"
            raise UsageError(f"id {quoted(text)}: {form} is needed")
        splits = {self.dataset.splits[i].name: i for i in self._splits}
        name = match["split"] or next(iter(splits))
        if name not in splits:
            known = ", ".join(splits)
            raise UsageError(f"id {quoted(text)}: split {quoted(name)} is not read; it is {known}")
        split = self.dataset.splits[splits[name]]
        if int(match["id"]) >= split.num_examples:
            raise UsageError(f"id {quoted(text)}: {name} has {split.num_examples} examples, from 0")
        return int(self.bases[splits[name]]) + int(match["id"])

    def of_ids(self, ids: Sequence[int | str]) -> Int64s:
        """Return the codes (int64[q]) of ids as `ids` returns them.

        Raises:
            UsageError: as for `parse`.
        """
        numbers = np.array(ids)
        if not self.several_splits and self._splits and numbers.dtype == np.int64:
            split = self.dataset.splits[self._splits[0]]
            if len(numbers) and numbers.min() >= 0 and numbers.max() < split.num_examples:
                return numbers
        return np.array([self.parse(str(name)) for name in ids], np.int64)

    def parse_tfds_id(self, text: str) -> int:
        """Return the code of a `tfds_id`.

        Raises:
            UsageError: not of the form `file__index`, no file that is read, an index beyond it.
        """
        match = _TFDS_ID.fullmatch(text)
        if match is None:
            raise UsageError(
                f"tfds_id {quoted(text)}: file__index is needed, as in "
                "imagenet2012-train.tfrecord-01023-of-01024__32"
            )
        place = self._place_of_file(match["file"])
        if place is None:
            raise UsageError(f"tfds_id {quoted(text)}: {quoted(match['file'])} is not read here")
        split, shard = place
        length = self.dataset.splits[split].shard_lengths[shard]
        if int(match["index"]) >= length:
            raise UsageError(f"tfds_id {quoted(text)}: the file has {length} examples, from 0")
        offset = self.dataset.splits[split].offsets[shard]
        return int(self.bases[split]) + offset + int(match["index"])

    def _split_ids(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        if not self.several_splits:
            which = self._splits[0] if self._splits else 0
            return np.full(len(codes), which, np.int64), codes
        # The last of several splits that begin at the same code is the one that is not empty.
        place = np.searchsorted(self._starts, codes, side="right") - 1
        split = np.array(self._splits, np.int64)[place]
        return split, codes - self.bases[split]

    def _place_of_file(self, name: str) -> tuple[int, int] | None:
        """Return (split, shard) of the file that a tfds_id calls so, None where none is."""
        try:
            if not self._tfds_names.are_base_names:
                raise ValueError(name)
            found = [(i, shard_named(self.dataset.splits[i], name)) for i in self._splits]
        except ValueError:
            return self._places_of_files.get(name)
        places = [(split, shard) for split, shard in found if shard is not None]
        # Which of two splits is meant that have files of one name, the table of all names knows.
        return self._places_of_files.get(name) if len(places) > 1 else next(iter(places), None)

    @cached_property
    def _file_names(self) -> dict[int, tuple[str, ...]]:
        """What a tfds_id calls the files of each split."""
        splits = {index: self.dataset.splits[index] for index in self._splits}
        return {index: self._tfds_names.of_split(split) for index, split in splits.items()}

    @cached_property
    def _tfds_names(self) -> TfdsNames:
        return TfdsNames(self.given, {i: self.dataset.splits[i] for i in self._splits})

    @cached_property
    def _places_of_files(self) -> dict[str, tuple[int, int]]:
        places = {
            name: (split, shard)
            for split, names in self._file_names.items()
            for shard, name in enumerate(names)
        }
        if self.given is not None and len(places) < sum(map(len, self._file_names.values())):
            # Files of one name in several folders, one of which is read: that one is meant.
            rows = zip(self.given.split.tolist(), self.given.shard.tolist(), strict=True)
            places |= {self._file_names[split][shard]: (split, shard) for split, shard in rows}
        return places


# Codes of the examples of several readers of one pipeline.


class CombinedCodes(ExampleCodes):
    """The names of examples that several readers read, each of which names files by its own rule.

    `given` is what each reader is given, over the splits of `dataset`.
    """

    def __init__(self, dataset: Dataset, splits: Sequence[str], given: Sequence[Reads]) -> None:
        everything = joined([replace(reads, files=dataset) for reads in given])
        super().__init__(dataset, splits, everything)
        self._by_reader = given

    @cached_property
    def _tfds_names(self) -> TfdsNames:
        splits = {index: self.dataset.splits[index] for index in self._splits}
        return _NamesByReader(self._by_reader, splits)

    def _place_of_file(self, name: str) -> tuple[int, int] | None:
        places = {
            (split, names.index(name)) for split, names in self._file_names.items() if name in names
        }
        if len(places) > 1:
            found = " and ".join(self.dataset.splits[split].name for split, _ in sorted(places))
            raise UsageError(f"{quoted(name)} is a file of {found}; say which by its id, SPLIT:ID")
        return next(iter(places), None)


# TFDS's names of examples, made and read.


class TfdsNames:
    """What a `tfds_id` calls the files, given the file instructions that the reader is given.

    Where all of them lie in one folder, it is the base name; else the path from the deepest folder
    on in which they differ (TFDS core/reader.py, _get_tfds_id_prefixes, whose pattern takes the
    common end of the folders as it is, as this one does).

    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> files = [ShardFiles(data_dir=f"/data/{day}/d", pattern="d-\\0", num_shards=1)
    ...          for day in ("mon", "tue")]
    >>> split = Split(name="train", shard_lengths=(2, 1), files=tuple(files))
    >>> TfdsNames(None, {}).of_split(split)
    ('d-00000', 'd-00000')
    """

    def __init__(self, reads: Reads | None, splits: dict[int, Split]) -> None:
        folders: set[str] = set()
        if reads is not None:
            for index, split in splits.items():
                folders |= _folders(split, _shards(reads, index))
        self.pattern = _pattern(folders)

    def of_split(self, split: Split) -> tuple[str, ...]:
        """Return what each file of a split is called, in the order of its shards."""
        if self.pattern is None:
            return split.filenames
        return tuple(self._called(part.data_dir, name) for part in split.files for name in part)

    @property
    def are_base_names(self) -> bool:
        """Whether every file is called by its base name."""
        return self.pattern is None

    def names(self, splits: Sequence[Split], split: Int64s, shard: Int64s) -> list[str]:
        """Return what the files of shards are called, given by their indices (int64[n] each)."""
        called = filenames_at if self.are_base_names else self.of_shards
        return shard_names(splits, split, shard, called)

    def of_shards(self, split: Split, shards: Sequence[int]) -> list[str]:
        """Return what the files of some shards are called."""
        if self.pattern is None:
            return filenames_at(split, shards)
        return [self.of_shard(split, shard) for shard in shards]

    def of_shard(self, split: Split, shard: int) -> str:
        """Return what the file of one shard is called."""
        if self.pattern is None:
            return split.filename(shard)
        data_dir, name = split.location(shard)
        return self._called(data_dir, name)

    def _called(self, data_dir: str | None, name: str) -> str:
        assert self.pattern is not None
        return self.pattern.sub(r"\1", _path(data_dir, name))


def _pattern(folders: Iterable[str]) -> re.Pattern[str] | None:
    folders = set(folders)
    if len(folders) < 2:
        return None
    # By characters, as TFDS has it: no path is meant.
    ending = os.path.commonprefix([folder[::-1] for folder in folders])[::-1]  # noqa: RUF071
    try:
        return re.compile(rf".*\/([^/]+{ending}/[^/]+)")
    except re.error:  # here TFDS fails; the names are those that it means
        return re.compile(rf".*\/([^/]+{re.escape(ending)}/[^/]+)")


def _shards(reads: Reads, split: int) -> Int64s:
    """Return the shards (int64[n]) of a split that are read."""
    if is_constant(reads.split):
        return reads.shard if int(reads.split[0]) == split else reads.shard[:0]
    shards: Int64s = reads.shard[reads.split == split]
    return shards


def _folders(split: Split, shards: Int64s) -> set[str]:
    """Return the folders in which these shards (int64[n]) of a split lie."""
    folders: set[str] = set()
    first = 0
    for part in split.files:
        own = shards
        if len(split.files) > 1:
            own = shards[(shards >= first) & (shards < first + len(part))] - first
        # Most often the folder is the same for all files of a part; else each file says.
        if part.names is None and "\0" not in posixpath.dirname(part.pattern):
            own = own[:1]
        folders |= {posixpath.dirname(_path(part.data_dir, part[i])) for i in own.tolist()}
        first += len(part)
    return folders


def _path(data_dir: str | None, name: str) -> str:
    return name if data_dir is None else posixpath.join(data_dir, name)


class _NamesByReader(TfdsNames):
    """What each reader calls the files of the splits that it reads."""

    def __init__(self, given: Sequence[Reads], splits: dict[int, Split]) -> None:
        self._named: dict[int, list[TfdsNames]] = {}
        for reads in given:
            used = [int(index) for index in distinct(reads.split)] if len(reads) else []
            names = TfdsNames(reads, {index: splits[index] for index in used})
            for index in used:
                self._named.setdefault(index, []).append(names)
        self._index_of = {id(split): index for index, split in splits.items()}

    @property
    def are_base_names(self) -> bool:
        """Whether every file is called by its base name."""
        return all(name.are_base_names for names in self._named.values() for name in names)

    def of_split(self, split: Split) -> tuple[str, ...]:
        """Return what each file of a split is called, in the order of its shards."""
        return self._one_of(split).of_split(split)

    def of_shards(self, split: Split, shards: Sequence[int]) -> list[str]:
        """Return what the files of some shards are called."""
        return self._one_of(split).of_shards(split, shards)

    def of_shard(self, split: Split, shard: int) -> str:
        """Return what the file of one shard is called."""
        return self._one_of(split).of_shard(split, shard)

    def _one_of(self, split: Split) -> TfdsNames:
        """Return how the readers of a split call its files.

        Raises:
            UsageError: they call them differently, as they read files in different folders.
        """
        names = self._named.get(self._index_of[id(split)])
        if names is None:
            return TfdsNames(None, {})  # no file of it is read
        if any(other.pattern != names[0].pattern for other in names):
            raise UsageError(
                f"tfds_ids of {split.name} differ from reader to reader, which read files in "
                "different folders; ask for ids"
            )
        return names[0]
