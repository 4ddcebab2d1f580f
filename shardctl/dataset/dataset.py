"""A dataset as its metadata describes it: splits, shards, lengths, file names."""

from __future__ import annotations

import itertools
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from shardctl.base.arguments import checked, keep_fields, kind_of, made_kind
from shardctl.base.by_name import provided
from shardctl.base.text import choices, counted, dataset_title, in_short, nearest_first, quoted
from shardctl.base.tfds_rules import DEFAULT_FILE_FORMAT, INT64_MAX, POSITIONS
from shardctl.dataset.identity import DatasetIdentity, FolderIdentity, SplitSize, paths_left
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError, NotASplitError, UsageError

if TYPE_CHECKING:
    from shardctl.base.arrays import Int64s


# What is wrong with one file of a dataset, or with the files of a split.

FindingKind = Literal[
    "missing",  # no file where one with examples should be
    "empty",  # a file of no bytes where one with examples should be
    "not-a-file",  # a folder, a FIFO, a device, a link to nowhere
    "unreadable",  # the system refuses to read it
    "compressed",  # a TFRecord file that was compressed as a whole
    "header",  # the length of a record does not match its checksum
    "data",  # the data of a record does not match its checksum
    "cut",  # the file ends inside a record
    "too-long",  # a record that goes so far beyond the end that its length must be wrong
    "broken",  # the library that reads the format refuses it
    "count",  # whole and sound, with another number of examples
    "digest",  # sound by its own checksums, and other bytes than the layout's digest is of
    "extra",  # a file of the dataset's name that belongs to no shard
    "wrong-count",  # a shard of another number of shards
    "size",  # the files of a split have another size than the metadata says
]

# What TensorFlow's reader does not survive: it never returns, or asks for more memory than there
# is and ends the process.
DEADLY: tuple[FindingKind, ...] = ("not-a-file", "too-long")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFinding:
    """One file, and what is wrong with it first; `reason` is a line about that.

    expected: examples by the metadata, None for a file that belongs to no shard.
    found: whole records in the file, None where they cannot be counted.
    record: the first damaged record, counted from 0; `byte` is where it begins in the file.
    num_files: the files that it speaks of; those of a split, none of which is here, are one finding
        with the name of the first.
    """

    filename: str
    expected: int | None = None
    found: int | None = None
    reason: str | None = None
    kind: FindingKind = "count"
    split: str | None = None
    record: int | None = None
    byte: int | None = None
    num_files: int = 1


# The lengths of shards that TFDS writes: boundaries at round(num_examples * i / num_shards).

_FEW = 1 << 14  # up to so many shards cost less than importing NumPy
_EXACT = 1 << 53  # up to it floats hold every whole number


def even_lengths(num_examples: int, num_shards: int) -> Sequence[int]:
    """Return the lengths of `num_shards` shards that TFDS writes `num_examples` to.

    Source: TFDS core/utils/shard_utils.py, get_shard_boundaries (float division, then Python's
    round to even).

    >>> even_lengths(10, 4)
    (2, 3, 3, 2)
    """
    if num_shards <= _FEW or num_examples * num_shards >= _EXACT:
        # Python's true division rounds once, also of products beyond 2**53, where floats would be
        # off.
        ends = [round(num_examples * i / num_shards) for i in range(1, num_shards + 1)]
        return tuple(b - a for a, b in itertools.pairwise(itertools.chain((0,), ends)))
    import numpy as np

    # Floats hold the products, so that the quotients are those of Python.
    bounds = np.arange(num_shards + 1, dtype=np.float64)
    bounds *= num_examples
    bounds /= num_shards
    return PackedInts.of_int64s(np.diff(np.rint(bounds, out=bounds)).astype(np.int64))


# Origins of datasets whose examples were counted, since no metadata says how many there are.
COUNTED_FILES = "record files"
COUNTED_LAYOUT = "layout of record files"
STATED_BY_INDEX = "index.json"  # of MosaicML's shards, or litdata's chunks

# Elements that no file of a dataset holds, as rows of an array: known by their positions.
#
# Such a source is a dataset of one split and one shard, called as a script may write it, so that
# everything that holds for a split holds for it. A number at the end tells apart several alike.

SOURCE = re.compile(r"(?:(range|generator)\((\d{1,19})\)|counter\(\))(?:-\d+)?")
ELEMENTS = "elements"  # its split
_NEVER_REACHED = 1 << 40  # elements of what has no end

_PIECE = 1 << 16  # file names made at once
_MOST_SHARDS = 100_000_000  # a list of their lengths takes gigabytes

_LIST = kind_of(tuple[int, ...])
_LENGTHS = replace(
    _LIST, take=lambda value: value if isinstance(value, PackedInts) else _LIST.take(value)
)


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split: the number of examples in each of its shards, and the shards' files.

    The lengths are packed, see `PackedInts`, whatever sequence they are given as.
    `files` has one part per folder the split is spread over; `num_bytes` is the total the metadata
    states, None where it states none; `shard_bytes` the size in bytes of each file, None where the
    files are not here; `shard_digests` the digest of each file, "sha256:<hex>", where a layout has
    it.

    >>> split = Split.even(name="train", num_examples=10, num_shards=3)
    >>> split.shard_lengths, split.offsets
    ((3, 4, 3), (0, 3, 7, 10))
    """

    name: str
    shard_lengths: Annotated[Sequence[int], _LENGTHS]
    files: tuple[ShardFiles, ...] = ()
    num_bytes: int | None = None
    shard_bytes: tuple[int | None, ...] | None = None
    shard_digests: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        keep_fields(self)
        if "\0" in self.name:
            raise DatasetError(f"split {quoted(self.name)}: a NUL character, which no name holds")
        # Checked before packing: a sum beyond int64 could not be an offset.
        least, num_examples = _least_and_sum(self.shard_lengths)
        if least < 0:
            raise DatasetError(f"split {quoted(self.name)}: shard length {least} is negative")
        if num_examples > INT64_MAX:
            raise DatasetError(
                f"split {quoted(self.name)}: {num_examples} examples; "
                f"an int64 holds at most {INT64_MAX}"
            )
        # Frozen, but kept in 8 bytes a shard: some splits have ten million.
        object.__setattr__(self, "shard_lengths", PackedInts.of(self.shard_lengths))
        if self.files and sum(map(len, self.files)) != self.num_shards:
            raise DatasetError(f"split {quoted(self.name)}: not one file name a shard")
        for known, what in (self.shard_bytes, "size in bytes"), (self.shard_digests, "digest"):
            if known is not None and len(known) != self.num_shards:
                raise DatasetError(f"split {quoted(self.name)}: not one {what} a shard")

    @classmethod
    @checked
    def even(
        cls,
        *,
        name: str,
        num_examples: int,
        num_shards: int,
        files: tuple[ShardFiles, ...] = (),
        num_bytes: int | None = None,
    ) -> Split:
        """Return a split with the boundaries TFDS writes: round(num_examples * i / num_shards).

        Fewer examples than shards, which TFDS does not write, leave shards empty.

        Raises:
            DatasetError: examples and no shard to hold them, or a negative number of either.
        """
        for what, number, most in (
            ("num_examples", num_examples, INT64_MAX),
            ("num_shards", num_shards, _MOST_SHARDS),
        ):
            if number > most:
                raise DatasetError(f"split {quoted(name)}: {what}={number} is more than {most}")
        if num_examples < 0 or num_shards < 0 or (num_examples and not num_shards):
            raise DatasetError(
                f"split {quoted(name)}: {num_examples} examples in {num_shards} shards"
            )
        lengths = even_lengths(num_examples, num_shards)
        return cls(name=name, shard_lengths=lengths, files=files, num_bytes=num_bytes)

    @cached_property
    def offsets(self) -> PackedInts:
        """First id of each shard, and at the end the number of examples; num_shards + 1 ints."""
        return PackedInts.of(self.shard_lengths).sums()

    def lengths64(self) -> Int64s:
        """Return the lengths of the shards as int64[num_shards], read-only, without a copy."""
        return PackedInts.of(self.shard_lengths).int64s()

    def offsets64(self) -> Int64s:
        """Return `offsets` as int64[num_shards + 1], read-only, without a copy."""
        return self.offsets.int64s()

    @property
    def num_examples(self) -> int:
        """Number of examples in all shards."""
        return self.offsets[-1]

    @property
    def num_shards(self) -> int:
        """Number of shards, empty ones included."""
        return len(self.shard_lengths)

    @cached_property
    def num_empty_shards(self) -> int:
        """Number of shards without examples."""
        return self.shard_lengths.count(0)

    @checked
    def shard_of(self, example_id: int) -> int:
        """Return the index of the shard that holds an id.

        >>> Split.even(name="train", num_examples=10, num_shards=3).shard_of(3)
        1
        """
        if not 0 <= example_id < self.num_examples:
            raise UsageError(
                f"id {example_id} is not in split {quoted(self.name)}; "
                f"its ids are 0 to {self.num_examples - 1}"
                if self.num_examples
                else f"id {example_id}: split {quoted(self.name)} is empty"
            )
        # The last shard that begins at or before the id, so never an empty one.
        return bisect_right(self.offsets, example_id) - 1

    def check_named(self) -> None:
        """Refuse shards without file names, as those of a split made in Python may be.

        Raises:
            DatasetError: there are no file names.
        """
        if not self.files and self.num_shards:
            raise DatasetError(
                f"split {quoted(self.name)} names no files; read the dataset from a layout.yaml, "
                "where they are named as TFDS names them"
            )

    @checked
    def location(self, shard_index: int) -> tuple[str | None, str]:
        """Return (data dir or None, path relative to it) of a shard's file.

        Raises:
            UsageError: no such shard, or none that has a file.
        """
        self.check_named()
        index = shard_index
        for part in self.files:
            if 0 <= index < len(part):
                return part.data_dir, part[index]
            index -= len(part)
        raise UsageError(
            f"shard_index={shard_index}: split {quoted(self.name)} has files of "
            f"{sum(map(len, self.files))} shards, counted from 0"
        )

    @checked
    def filename(self, shard_index: int) -> str:
        """Return the base name of a shard's file."""
        return self.location(shard_index)[1].rpartition("/")[2]

    @property
    def is_generated(self) -> bool:
        """Whether its examples are those of a generator, see `source_dataset`."""
        names = self.files[0].names if self.files else None
        return names is not None and names[0].startswith("generator(")

    @cached_property
    def template(self) -> str | None:
        """How the files are named, the folders below the data dir included; None without a rule.

        Of several folders whose files are named otherwise it is each one's, joined by ` + `.
        """
        if not self.files or any(part.names is not None for part in self.files):
            return None
        return " + ".join(sorted({part.template for part in self.files}))

    @cached_property
    def filenames(self) -> tuple[str, ...]:
        """Base names of all shards' files, in shard order."""
        return tuple(self._names_between(0, self.num_shards))

    @cached_property
    def names_repeat(self) -> bool:
        """Whether two files, in several folders, have one base name."""
        if len(self.files) == 1 and "\0" in self.files[0].pattern.rpartition("/")[2]:
            return False  # each name holds its own index
        return len(set(self.filenames)) < self.num_shards

    @checked
    def filenames_between(self, start: int, stop: int) -> list[str]:
        """Return the base names of the files of shards [start, stop)."""
        self.check_named()
        return self._names_between(start, stop)

    def _names_between(self, start: int, stop: int) -> list[str]:
        names: list[str] = []
        first = 0
        for part in self.files:
            # The wanted range, cut to this part and counted from its first shard.
            names += part.between(max(start - first, 0), max(min(stop - first, len(part)), 0))
            first += len(part)
        return self._base_names(names)

    def _base_names(self, paths: list[str]) -> list[str]:
        # Without a slash in any name, the paths are base names already.
        if any("/" in part.pattern or part.names is not None for part in self.files):
            return [path.rpartition("/")[2] for path in paths]
        return paths

    def _name_pieces(self) -> Iterator[str]:
        """Yield the base names of all files joined with NULs, piece by piece."""
        for start in range(0, self.num_shards, _PIECE):
            names = self._names_between(start, min(start + _PIECE, self.num_shards))
            yield ("\0" if start else "") + "\0".join(names)

    def __repr__(self) -> str:
        return in_short(
            self,
            self.name,
            counted(self.num_examples, "example"),
            counted(self.num_shards, "shard"),
        )


def _least_and_sum(lengths: Sequence[int]) -> tuple[int, int]:
    if isinstance(lengths, PackedInts):
        return (lengths.least() if lengths else 0), lengths.total()
    return min(lengths, default=0), sum(lengths)


def filenames_at(split: Split, shards: Sequence[int]) -> list[str]:
    """Return the base names of the files of shards in any order."""
    if len(split.files) == 1:
        return split._base_names(split.files[0].at(shards))
    return [split.filename(shard) for shard in shards]


def shard_named(split: Split, filename: str) -> int | None:
    """Return the index of the shard whose file has this base name, None where there is none.

    Raises:
        ValueError: the names follow no one pattern.
    """
    if len(split.files) != 1 or split.files[0].names is not None:
        raise ValueError("these names follow no one pattern")
    # The index must be in the base name and nowhere else, for one number to follow from it.
    folder, slash, base = split.files[0].pattern.rpartition("/")
    if "\0" in folder or "\0" not in base:
        raise ValueError("these names follow no one pattern")
    return split.files[0].index_of(folder + slash + filename)


@dataclass(frozen=True, kw_only=True)
class ExampleSize:
    """The bytes of a decoded example, from the shapes and dtypes of its features.

    num_bytes: of the features of fixed shape. num_tensors: of all features; each adds to what a
    shuffle buffer takes. unknown: the features, such as texts and images of any size, whose bytes
    differ from example to example; then `num_bytes` is the least that an example takes.
    """

    num_bytes: int
    num_tensors: int
    unknown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keep_fields(self)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A dataset: what its metadata says, and where the files lie.

    `ordered` is TFDS's `disable_shuffling`; `data_dir` is None for a dataset that has no files
    here (a catalog entry, a layout file); `origin` says in a few words where the facts come from.
    `compression` is how its TFRecord files are packed, "GZIP" or "ZLIB", None for not at all; the
    order is the same, so it is no part of the fingerprint.
    `reference` finds a counted dataset again: files, a pattern, or a layout file, as a whole path;
    `notes` say what of its files is unknown, `damaged` which could not be counted, if that
    was asked for; these are no shards.
    `folders` are the datasets that were merged into this one, in order, where they are known;
    see `folders_of`. `features` is asked for `example_size`; it is no part of the layout.
    """

    name: str
    splits: tuple[Split, ...]
    config: str | None = None
    version: str | None = None
    file_format: str = DEFAULT_FILE_FORMAT
    data_dir: str | None = None
    ordered: bool = False
    compression: str | None = None
    origin: str = "metadata"
    reference: str | None = field(default=None, compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    damaged: tuple[FileFinding, ...] = field(default=(), compare=False, repr=False)
    folders: tuple[Dataset, ...] = ()
    features: Callable[[], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        keep_fields(self)
        if not self.splits:
            raise DatasetError(f"dataset {quoted(self.name)} has no splits")
        counts = Counter(split.name for split in self.splits)
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise DatasetError(f"dataset {quoted(self.name)} has split {quoted(twice[0])} twice")

    @property
    def is_counted(self) -> bool:
        """Whether its examples were counted in files; TFDS knows of no such dataset."""
        parts = (self, *self.folders)
        return any(
            part.origin in (COUNTED_FILES, COUNTED_LAYOUT, STATED_BY_INDEX) for part in parts
        )

    @property
    def in_several_folders(self) -> bool:
        """Whether the files of the splits lie in several folders, or are to."""
        folders = {part.data_dir for split in self.splits for part in split.files}
        return len(folders) > 1 or any(len(split.files) > 1 for split in self.splits)

    @checked
    def split(self, name: str) -> Split:
        """Return a split by name.

        Raises:
            NotASplitError: no such split; the message lists those there are.
        """
        for split in self.splits:
            if split.name == name:
                return split
        known = choices(nearest_first(name, (split.name for split in self.splits)))
        raise NotASplitError(f"no split {quoted(name)} in {self.title}; it has: {known}", name)

    @checked
    def whole_splits(self, names: Sequence[str], rule: str) -> tuple[Split, ...]:
        """Return the splits named, each once and in that order; all of them for none or `all`.

        Raises:
            UsageError: no such split, or a part of one; the message says why whole splits are
                asked for (`rule`), and which there are.
        """
        chosen: dict[str, Split] = {}
        for name in names or ("all",):
            known = {split.name: split for split in self.splits}
            if name == "all":
                chosen.update(known)
                continue
            if name not in known and ("[" in name or "+" in name):
                raise UsageError(
                    f"{quoted(name)} is a subsplit, which plan resolves; {rule}: {choices(known)}"
                )
            chosen[name] = self.split(name)
        return tuple(chosen.values())

    @cached_property
    def example_size(self) -> ExampleSize | None:
        """What a decoded example takes, None where no metadata of its features is here.

        Read when it is first asked for: few answers need it.
        """
        return None if self.features is None else self.features()

    @property
    def title(self) -> str:
        """Name, config and version as TFDS writes them, `coco/2017:1.1.0`; of all that it is of."""
        titles = [folder.title for folder in self.folders]
        titles = titles or [dataset_title(self.name, self.config, self.version)]
        return " + ".join(dict.fromkeys(titles))

    @cached_property
    def identity(self) -> DatasetIdentity:
        """What tells this dataset from another; the fingerprint is computed for it."""
        folders = self.folders if len(self.folders) > 1 else ()
        # Only what tells the folders apart: the common part changes when a dataset is moved.
        left = iter(paths_left([one.data_dir for one in folders if one.data_dir is not None]))
        shared = ("name", "config", "version", "file_format", "data_dir", "fingerprint", "ordered")
        return DatasetIdentity(
            **{name: getattr(self, name) for name in shared},
            folders=tuple(
                one._as_folder(None if one.data_dir is None else next(left)) for one in folders
            ),
            splits=tuple(
                SplitSize(**{each.name: getattr(split, each.name) for each in fields(SplitSize)})
                for split in self.splits
            ),
        )

    def _as_folder(self, path: str | None) -> FolderIdentity:
        # By name, since TFDS lists the splits of several folders in any order.
        splits = tuple(sorted(self.splits, key=lambda split: split.name))
        sizes = [split.num_bytes for split in splits]
        return FolderIdentity(
            path=path,
            title=None if self.version is None else self.title,
            fingerprint=replace(self, splits=splits).fingerprint,
            num_bytes=None if None in sizes else sum(size or 0 for size in sizes),
            splits=tuple(split.name for split in splits),
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the layout: split names, file names and lengths, in order.

        Neither the folder nor the reader takes part, so a copy on another machine, or a layout
        file that says the same, has the same fingerprint.
        """
        import hashlib  # 5 ms, and few commands show it

        # The bytes below are a file format: snapshots and plans keep this hash. NULs and the count
        # of shards part the texts, so that no two layouts give the same bytes.
        digest = hashlib.sha256(b"shardctl layout 1\n")
        for split in self.splits:
            head = f"{split.name}\0{split.num_shards}\0"
            for text in itertools.chain([head], split._name_pieces(), ["\0\0"]):
                # File names may have bytes that are no UTF-8, which Python keeps as surrogates.
                digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(PackedInts.of(split.shard_lengths).little_endian())
        return f"sha256:{digest.hexdigest()}"

    def __repr__(self) -> str:
        splits = [
            f"{split.name} of {counted(split.num_examples, 'example')} in "
            f"{counted(split.num_shards, 'shard')}"
            for split in self.splits
        ]
        return in_short(self, self.title, choices(splits, 4))


def source_dataset(reference: str) -> Dataset | None:
    """Return what `range(N)`, `generator(N)` or `counter()` without end counts; None of others.

    >>> source_dataset("range(1000)")
    <Dataset range(1000): elements of 1,000 examples in 1 shard>

    Raises:
        DatasetError: N is more than an int64 holds.
    """
    found = SOURCE.fullmatch(reference)
    if found is None:
        return None
    split = Split(
        name=ELEMENTS,
        shard_lengths=(int(found[2] or _NEVER_REACHED),),
        files=(ShardFiles(names=(reference,), num_shards=1),),
    )
    return Dataset(name=reference, splits=(split,), file_format=POSITIONS, origin="no files")


def as_dataset(given: DatasetLike) -> Dataset:
    """Return the dataset that an argument is, or that references stand for.

    Raises:
        ShardctlError: it is neither, or a reference leads nowhere.
    """
    found: Dataset = _DATASET.take(given)
    return found


def _made_of_references(given: object) -> Dataset | None:
    if isinstance(given, Dataset):
        return given
    # Looking up a reference belongs to `metadata`, a package above this one: `shardctl/__init__.py`
    # names the function (see `base/by_name.py`).
    found: Dataset | None = provided("dataset")(given)
    if found is None and isinstance(getattr(given, "dataset", None), Dataset):
        raise UsageError("a Dataset is needed, which this has as its `dataset`")
    return found


_DATASET = made_kind(
    _made_of_references,
    needed='a reference as "mnist", a path, a list of these, or a Dataset',
    several="datasets",
)
# What every function takes that needs a dataset.
DatasetLike = Annotated[
    Dataset | str | os.PathLike[str] | Sequence[str | os.PathLike[str]], _DATASET
]
