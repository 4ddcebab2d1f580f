"""Example codes: an int64 that names an example of any of the splits that a spec reads.

Orders work with codes alone. This module converts codes to ids (`train:5`), to TFDS's `tfds_id` and
to places in files, and back.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardctl.base import arrays
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import INT64_MAX, TFDS_ID_SEPARATOR
from shardctl.dataset.dataset import Dataset, Split, shard_named
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.spec.reads import Reads, shard_names

# Greedy, so that the last separator counts: a file name may contain "__" itself. 19 digits are
# those of the largest int64.
_TFDS_ID = re.compile(rf"(?P<file>.+){TFDS_ID_SEPARATOR}(?P<index>\d{{1,19}})", re.DOTALL)
_ID = re.compile(r"((?P<split>[\w./-]+):)?(?P<id>\d(_?\d){0,18})")


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitIds:
    """The splits that an order reads: from its codes to splits and ids.

    `names` are in the dataset's order; the codes of each begin where those of the one before it
    end, at `starts` (int64[s]).
    """

    names: tuple[str, ...]
    starts: arrays.Int64s

    def split_ids(self, codes: arrays.Int64s) -> tuple[arrays.Int64s, arrays.Int64s]:
        """Return (index in `names`, id), int64[q] each."""
        if len(self.names) == 1:
            return np.broadcast_to(np.int64(0), codes.shape), codes
        # Of splits that begin at the same code the last is the one that is not empty.
        split = np.searchsorted(self.starts, codes, side="right") - 1
        return split, codes - self.starts[split]


PAD = "pad"  # the id of padding
# Padding is one more split, of one example in no file of a dataset.
_PADDING = Split(name=PAD, shard_lengths=(1,), files=(ShardFiles(names=(PAD,), num_shards=1),))


class ExampleCodes:
    """The names of examples: code, `split:id`, `tfds_id`, and the shard they are in.

    Where a spec reads one split, the code is the id. Where it reads several, the ids of each
    follow those of the split before it in the dataset, and an id is written `split:id`.

    A `tfds_id` calls a file by its base name. `given` is what each reader is given: where that lies
    in several folders, it is the path from the deepest folder on in which they differ (TFDS
    core/reader.py, _get_tfds_id_prefixes, whose pattern takes the common end of the folders as it
    is, as this one does).

    >>> from shardctl.dataset.dataset import Split
    >>> from shardctl.dataset.shard_files import ShardFiles
    >>> splits = tuple(Split.even(name=name, num_examples=4, num_shards=2, files=(
    ...     ShardFiles(pattern=f"d-{name}-\\0", num_shards=2),)) for name in ("train", "test"))
    >>> codes = ExampleCodes(Dataset(name="d", splits=splits), ["test", "train"])
    >>> codes.names([5]), codes.tfds_ids([5]), codes.parse("test:1")
    (['test:1'], ['d-test-00000__1'], 5)
    """

    def __init__(
        self, dataset: Dataset, splits: Iterable[str], *given: Reads, pads: bool = False
    ) -> None:
        self.given = given
        wanted = set(splits)
        self._splits = [i for i, s in enumerate(dataset.splits) if s.name in wanted]
        self.several_splits, self.pads = len(self._splits) > 1, pads
        self.scanned_dataset = dataset  # without padding, which no scan reads
        if pads:
            self._splits.append(len(dataset.splits))
            dataset = replace(dataset, splits=(*dataset.splits, _PADDING))
        self.dataset = dataset
        # Codes follow the order of the splits in the dataset, not in the spec: two specs over the
        # same splits give an example the same code.
        self.bases: arrays.Int64s = np.zeros(len(dataset.splits), np.int64)
        total = 0
        for index in self._splits:
            self.bases[index] = total
            total += dataset.splits[index].num_examples
            if total > INT64_MAX:
                raise UsageError(f"the splits together have more than {INT64_MAX} examples")
        names = tuple(dataset.splits[index].name for index in self._splits)
        self.splits = SplitIds(names=names, starts=self.bases[self._splits])
        self.num_codes = total

    def first_codes(self, reads: Reads) -> arrays.Int64s:
        """Return the code of the first example that each row reads, int64[n]."""
        # Rows of one split share one base, and a base of 0 needs no new array.
        bases = self.bases[arrays.distinct(reads.split)]
        if not bases.any():
            return reads.first
        return reads.first + (bases[0] if len(bases) == 1 else self.bases[reads.split])

    def ids(self, codes: arrays.Int64s) -> list[int] | list[str]:
        """Return ids as ints, or as `split:id` where there are several splits; `pad` of padding."""
        if self.several_splits:
            return self.names(codes)
        return self._padded(codes, codes.tolist())

    def is_padding(self, codes: arrays.Int64s) -> NDArray[np.bool_]:
        """Return which codes are of padding, bool[q]: all of it has the last code."""
        return codes == self.num_codes - 1 if self.pads else np.zeros(codes.shape, np.bool_)

    def numbers(self, codes: arrays.Int64s) -> arrays.Int64s:
        """Return codes for those who take them for ids: padding is -1."""
        return np.where(self.is_padding(codes), -1, codes) if self.pads else codes

    def _padded(self, codes: arrays.Int64s, names: list[Any], pad: str | None = PAD) -> list[Any]:
        """Return names with those of padding in their places."""
        if self.pads:
            for index in np.flatnonzero(self.is_padding(codes)).tolist():
                names[index] = pad
        return names

    def names(self, codes: Sequence[int] | arrays.Int64s) -> list[str]:
        """Return ids as text."""
        split, example_ids = self._split_ids(np.asarray(codes, np.int64))
        if not self.several_splits:
            return self._padded(np.asarray(codes), list(map(str, example_ids.tolist())))
        names = [each.name for each in self.dataset.splits]
        pairs = zip(split.tolist(), example_ids.tolist(), strict=True)
        found = [f"{names[which]}:{example_id}" for which, example_id in pairs]
        return self._padded(np.asarray(codes), found)

    def split_ids(self, codes: arrays.Int64s) -> arrays.Int64s:
        """Return the ids counted from the start of the split of each, int64[q]."""
        return self._split_ids(codes)[1]

    def places(self, codes: arrays.Int64s) -> tuple[arrays.Int64s, arrays.Int64s, arrays.Int64s]:
        """Return (split index, shard index, index in the shard), int64[q] each."""
        split, example_id = self._split_ids(codes)
        shard, index = np.empty_like(split), np.empty_like(split)
        for which, here in arrays.groups_of(split):
            offsets = self.dataset.splits[which].offsets64()
            # "right": empty shards begin where the next one does, and the last of them has the id.
            shard[here] = arrays.last_not_above(offsets, example_id[here])
            index[here] = example_id[here] - offsets[shard[here]]
        return split, shard, index

    def tfds_ids(self, codes: Sequence[int] | arrays.Int64s) -> list[str]:
        """Return the ids that `ReadConfig(add_tfds_id=True)` gives the examples."""
        wanted = np.asarray(codes, np.int64)
        return self._padded(wanted, self.tfds_ids_at(*self.places(wanted)))

    def filenames(
        self, codes: arrays.Int64s, split: arrays.Int64s, shard: arrays.Int64s
    ) -> list[str | None]:
        """Return the names of the files in which examples lie; None of padding."""
        return self._padded(codes, shard_names(self.dataset.splits, split, shard), None)

    def tfds_ids_at(
        self, split: arrays.Int64s, shard: arrays.Int64s, index: arrays.Int64s
    ) -> list[str]:
        """Return `tfds_ids` of examples at these places, see `places`."""
        # The slow way, a path and a regular expression for each distinct file, only where folders
        # differ.
        if any(self._pattern_of(which) for which in arrays.distinct(split).tolist()):
            files = list(zip(split.tolist(), shard.tolist(), strict=True))
            named = {file: self._file_name(*file) for file in dict.fromkeys(files)}
            names = [named[file] for file in files]
        else:
            names = shard_names(self.dataset.splits, split, shard)
        pairs = zip(names, index.tolist(), strict=True)
        return [f"{name}{TFDS_ID_SEPARATOR}{place}" for name, place in pairs]

    def parse(self, text: str) -> int:
        """Return the code of an id written `id` or `split:id`; `_` may group digits, as in a spec.

        Raises:
            UsageError: no id, a split that is not read, an id beyond the split.
        """
        if self.pads and text == PAD:
            return self.num_codes - 1
        match = _ID.fullmatch(text)
        # An id without its split would be ambiguous: the ids of each split start at 0.
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

    def of_ids(self, ids: Sequence[int | str]) -> arrays.Int64s:
        """Return the codes (int64[q]) of ids as `ids` returns them.

        Raises:
            UsageError: as for `parse`.
        """
        return np.array([self.parse(str(name)) for name in ids], np.int64)

    def parse_tfds_id(self, text: str) -> int:
        """Return the code of a `tfds_id`.

        Raises:
            UsageError: not of the form `file__index`, no file that is read, an index beyond it.
        """
        if self.pads and text in ("", PAD):  # an empty text in real padding
            return self.num_codes - 1
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

    def _split_ids(self, codes: arrays.Int64s) -> tuple[arrays.Int64s, arrays.Int64s]:
        index, example_ids = self.splits.split_ids(codes)
        return np.array(self._splits, np.int64)[index], example_ids

    def _place_of_file(self, name: str) -> tuple[int, int] | None:
        """Return (split, shard) of the file that a tfds_id calls so, None where none is."""
        splits = self.dataset.splits
        try:
            # The names that TFDS gives here contain folders, which `shard_named` does not know:
            # look them up.
            if any(map(self._pattern_of, self._splits)):
                raise ValueError(name)
            shards = [(index, shard_named(splits[index], name)) for index in self._splits]
            found = [(index, shard) for index, shard in shards if shard is not None]
        except ValueError:
            # Either the files have no pattern from which a shard could be computed, or names
            # contain folders.
            found = self._places_of_files.get(name, [])
        if len(found) > 1:  # files of one name in several folders: the one that is read is meant
            columns = [(one.split.tolist(), one.shard.tolist()) for one in self.given]
            read = {file for column in columns for file in zip(*column, strict=True)}
            found = [file for file in found if file in read] or found
        if len(found) > 1:
            several = " and ".join(dict.fromkeys(splits[index].name for index, _ in found))
            raise UsageError(
                f"{quoted(name)} is a file of {several}; say which by its id, SPLIT:ID"
            )
        return found[0] if found else None

    def _file_name(self, split: int, shard: int) -> str:
        """Return what a tfds_id calls a file."""
        data_dir, name = self.dataset.splits[split].location(shard)
        pattern = self._pattern_of(split)
        if pattern is None:
            return name.rpartition("/")[2]
        return pattern.sub(r"\1", _path(data_dir, name))

    def _pattern_of(self, split: int) -> re.Pattern[str] | None:
        """Return what of the paths of a split's files their names are, None for base names.

        Raises:
            UsageError: readers call them differently, as they read files in different folders.
        """
        # One pattern for each reader that reads the split. Ids are ambiguous if readers disagree.
        patterns = {pattern for used, pattern in self._patterns if split in used} or {None}
        if len(patterns) > 1:
            raise UsageError(
                f"tfds_ids of {self.dataset.splits[split].name} differ from reader to reader, "
                "which read files in different folders; ask for ids"
            )
        return patterns.pop()

    @cached_property
    def _patterns(self) -> list[tuple[set[int], re.Pattern[str] | None]]:
        """The splits that each reader reads, and how it calls their files."""
        found = []
        for reads in self.given:
            used = set(arrays.distinct(reads.split).tolist()) if len(reads) else set()
            splits = ((self.dataset.splits[index], _shards(reads, index)) for index in used)
            found.append((used, _pattern(set().union(*(_folders(*split) for split in splits)))))
        return found

    @cached_property
    def _places_of_files(self) -> dict[str, list[tuple[int, int]]]:
        places = defaultdict(list)
        for index in self._splits:
            for shard in range(self.dataset.splits[index].num_shards):
                places[self._file_name(index, shard)].append((index, shard))
        return places


def code_of(text: str, files: dict[str, tuple[int, int]], codes: ExampleCodes) -> int:
    """Return the code of a tfds_id; `files` keep the first code and the length of each file.

    Raises:
        UsageError: it is none of a file that is read.
    """
    name, _, index = text.rpartition(TFDS_ID_SEPARATOR)
    first, length = files.get(name, (0, 0))
    # The quick way for every file that was met before: no pattern is matched again.
    if index.isascii() and index.isdigit() and len(index) <= 18 and int(index) < length:
        return first + int(index)
    code = codes.parse_tfds_id(text)
    if not index.isascii():
        raise UsageError(f"{quoted(text)} ends in no ASCII number")
    split, shard, index_in_shard = (int(one[0]) for one in codes.places(np.array([code], np.int64)))
    files[name] = code - index_in_shard, codes.dataset.splits[split].shard_lengths[shard]
    return code


def _pattern(folders: set[str]) -> re.Pattern[str] | None:
    if len(folders) < 2:
        return None
    # By characters, as TFDS has it: no path is meant.
    # The common end of all folders, found as the common start of the reversed texts.
    ending = os.path.commonprefix([folder[::-1] for folder in folders])[::-1]  # noqa: RUF071
    try:
        return re.compile(rf".*\/([^/]+{ending}/[^/]+)")
    except re.error:  # here TFDS fails; the names are those that it means
        return re.compile(rf".*\/([^/]+{re.escape(ending)}/[^/]+)")


def _shards(reads: Reads, split: int) -> arrays.Int64s:
    """Return the shards (int64[n]) of a split that are read."""
    if arrays.is_constant(reads.split):
        return reads.shard if int(reads.split[0]) == split else reads.shard[:0]
    shards: arrays.Int64s = reads.shard[reads.split == split]
    return shards


def _folders(split: Split, shards: arrays.Int64s) -> set[str]:
    """Return the folders in which these shards (int64[n]) of a split lie."""
    folders: set[str] = set()
    first = 0
    for part in split.files:
        own = shards
        if len(split.files) > 1:
            # `first` is the number of this part's first shard in the split; `own` counts from the
            # part's start.
            own = shards[(shards >= first) & (shards < first + len(part))] - first
        # Most often the folder is the same for all files of a part; else each file says.
        if part.names is None and "\0" not in posixpath.dirname(part.pattern):
            own = own[:1]
        folders |= {posixpath.dirname(_path(part.data_dir, part[i])) for i in own.tolist()}
        first += len(part)
    return folders


def _path(data_dir: str | None, name: str) -> str:
    return name if data_dir is None else posixpath.join(data_dir, name)


# Which of the rows that a host reads yields an example.


class RowLookup:
    """Which rows read an example; a sum that overlaps has several for one.

    `first_codes` (int64[rows]) is the code of the first example that each row reads.
    """

    def __init__(self, reads: Reads, first_codes: arrays.Int64s) -> None:
        self._take = reads.take
        self._first_codes = first_codes
        # Within a part of the spec no two rows read the same example.
        # A part is (rows or None for all, their first codes in ascending order): int64[k] each.
        self._parts: list[tuple[arrays.Int64s | None, arrays.Int64s]] = []
        if (len(reads) == 1 or arrays.is_constant(reads.part)) and arrays.is_ascending(first_codes):
            self._parts.append((None, first_codes))  # every row, as it is
            return
        for part in arrays.distinct(reads.part).tolist():
            rows = np.flatnonzero(reads.part == part)
            rows = rows[np.argsort(first_codes[rows])]
            self._parts.append((rows, first_codes[rows]))

    def rows_of(self, codes: arrays.Int64s) -> tuple[arrays.Int64s, arrays.Int64s, arrays.Int64s]:
        """Return (which query, row, offset in what the row reads), int64[r] each, for codes."""
        found = [np.empty((3, 0), np.int64)]
        for rows, starts in self._parts:
            # Only the last row that begins at or before a code can read it; -1 where none does.
            # "right" - 1: the last start that is not above the code, also where several rows start
            # alike.
            place = np.searchsorted(starts, codes, side="right") - 1
            row = np.maximum(place, 0)
            if rows is not None:
                row = rows[row]
            offset = codes - self._first_codes[row]
            inside = np.flatnonzero((place >= 0) & (offset < self._take[row]))
            found.append(np.stack([inside, row[inside], offset[inside]]))
        query, row, offset = np.concatenate(found, axis=1)
        return query, row, offset
