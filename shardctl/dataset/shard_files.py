"""Compact storage of a split: its file names as one pattern, its lengths in eight bytes each."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

from shardctl.base.text import choices, quoted
from shardctl.base.tfds_rules import MIN_SHARD_DIGITS, TEMPLATE_VARIABLES
from shardctl.errors import DatasetError

if TYPE_CHECKING:
    from shardctl.base.arrays import Int64s


_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_INDEX = "\0"  # stands for the shard index; refused in every name
_BLOCK = 1000  # names whose indices differ in their last three digits alone
MAX_NAME_BYTES = 255  # NAME_MAX of Linux, macOS and Windows
MAX_PATH_BYTES = 4095  # PATH_MAX of Linux, without the NUL at the end


@dataclass(frozen=True, kw_only=True)
class ShardFiles(Sequence[str]):
    """Relative paths of the shards of one split in one folder, as a sequence of str.

    `pattern` is the path with a NUL wherever the zero-padded shard index goes; `names` holds the
    paths themselves where they follow no pattern (record files found on disk).

    >>> from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
    >>> files = ShardFiles.from_template(
    ...     DEFAULT_TEMPLATE, dataset="mnist", split="train", file_format="tfrecord", num_shards=2)
    >>> list(files)
    ['mnist-train.tfrecord-00000-of-00002', 'mnist-train.tfrecord-00001-of-00002']
    """

    data_dir: str | None = None
    pattern: str = ""
    num_shards: int = 0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.names is not None and len(self.names) != self.num_shards:
            raise DatasetError(f"{len(self.names)} file names for {self.num_shards} shards")
        names = (self._name(0),) if self.names is None else self.names
        _check_characters(*names, self.data_dir or "")
        _check_lengths(names, data_dir=self.data_dir)

    @classmethod
    def from_template(
        cls,
        template: str,
        *,
        dataset: str,
        split: str,
        file_format: str,
        num_shards: int,
        data_dir: str | None = None,
    ) -> ShardFiles:
        """Resolve a TFDS file name template (TFDS core/naming.py, ShardedFileTemplate).

        Raises:
            DatasetError: a variable TFDS does not know, a brace without its partner, a path that
                leaves the dataset's folder, or one longer than file systems take.
        """
        # TFDS pads both numbers alike, with 5 digits at least.
        digits = max(MIN_SHARD_DIGITS, len(str(num_shards)))
        total = f"{num_shards:0{digits}d}"
        values = {
            "DATASET": dataset,
            "SPLIT": split,
            "FILEFORMAT": file_format,
            "SHARD_INDEX": _INDEX,
            "NUM_SHARDS": total,
            "SHARD_X_OF_Y": f"{_INDEX}-of-{total}",
        }
        # Also keeps NUL out, which marks the place of the index.
        if not (dataset + split + file_format + template).isprintable():
            raise DatasetError(f"a control character in the file name template {quoted(template)}")
        pattern = _format_template(template, values)
        _check_stays_inside(pattern, template)
        return cls(data_dir=data_dir, pattern=pattern, num_shards=num_shards)

    @property
    def template(self) -> str:
        r"""The pattern as people write it, whatever the number of shards.

        >>> ShardFiles(pattern="a-\0-of-00002", num_shards=2).template
        'a-{SHARD_INDEX}-of-{NUM_SHARDS}'
        """
        total = f"{self.num_shards:0{self.num_digits}d}"
        return self.pattern.replace(total, "{NUM_SHARDS}").replace(_INDEX, "{SHARD_INDEX}")

    @property
    def num_digits(self) -> int:
        """How many digits the index has in every name, zeros before it included."""
        return max(MIN_SHARD_DIGITS, len(str(self.num_shards)))

    def __len__(self) -> int:
        return self.num_shards

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self._name(i) for i in range(*index.indices(self.num_shards)))
        if not -self.num_shards <= index < self.num_shards:
            raise IndexError(index)
        return self._name(index % self.num_shards)

    def __iter__(self) -> Iterator[str]:
        return iter(self.between(0, self.num_shards))

    def between(self, start: int, stop: int) -> Sequence[str]:
        """Return the paths of shards [start, stop), many times faster than one by one."""
        if self.names is not None:
            return self.names[start:stop]
        head, mark, tail = self.pattern.partition(_INDEX)
        if stop - start < _BLOCK or not mark or _INDEX in tail:
            return self.at(range(start, stop))
        # The thousand endings are made once. One replace puts the same beginning before a whole
        # block, and a split at NULs takes the names apart: about ten operations for a thousand
        # names.
        ends = [f"{_INDEX}{low:03d}{tail}" for low in range(_BLOCK)]
        names: list[str] = []
        for high in range(start // _BLOCK, -(-stop // _BLOCK)):
            first = high * _BLOCK
            # The first and the last block may be cut.
            block = "".join(ends[max(start - first, 0) : stop - first])
            begin = f"{_INDEX}{head}{high:0{self.num_digits - 3}d}"
            names += block.replace(_INDEX, begin).split(_INDEX)[1:]
        return names

    def at(self, indices: Sequence[int]) -> list[str]:
        """Return the paths of shards in any order, as fast.

        >>> ShardFiles(pattern="d-\\0", num_shards=3).at([2, 0])
        ['d-00002', 'd-00000']
        """
        if self.names is not None or self.pattern.count(_INDEX) != 1:
            return [self._name(index) for index in indices]
        # One format call over all the indices; no name has a NUL in it.
        line = self.pattern.replace("%", "%%").replace(_INDEX, f"%0{self.num_digits}d") + "\0"
        return (line * len(indices) % tuple(indices)).split("\0")[:-1]

    def index_of(self, path: str) -> int | None:
        """Return the index of the shard with this path, None where there is none.

        >>> ShardFiles(pattern="d-\\0-of-3", num_shards=3).index_of("d-00002-of-3")
        2
        """
        if self.names is not None:
            return self.names.index(path) if path in self.names else None
        head = self.pattern.partition(_INDEX)[0]
        # The index is as wide in every name, so that it can be cut out and the name compared.
        digits = path[len(head) : len(head) + self.num_digits]
        if not (digits.isascii() and digits.isdigit() and int(digits) < self.num_shards):
            return None
        return int(digits) if self._name(int(digits)) == path else None

    def _name(self, index: int) -> str:
        if self.names is not None:
            return self.names[index]
        return self.pattern.replace(_INDEX, f"{index:0{self.num_digits}d}")


def _format_template(template: str, values: dict[str, str]) -> str:
    """Return `template` as `str.format` with plain variables would, and nothing more.

    `str.format` itself is not used on text from a file: `{SPLIT.__class__}` reaches into objects
    and `{SPLIT:>999999999}` fills the memory.
    """

    pieces: list[str] = []
    end = num_characters = 0
    for match in _FIELD.finditer(template):
        text, variable = match.group(0), match.group(1)
        if text not in ("{{", "}}") and variable not in values:
            known = choices(f"{{{name}}}" for name in TEMPLATE_VARIABLES)
            raise DatasetError(
                f"file name template {quoted(template)}: {quoted(text)} is not a variable; "
                f"TFDS knows {known}"
            )
        value = values[variable] if variable in values else text[0]
        pieces += (template[end : match.start()], value)
        end = match.end()
        num_characters += len(pieces[-2]) + len(value)
        if num_characters > MAX_PATH_BYTES:  # before a short text becomes a gigabyte
            raise DatasetError(
                f"file name template {quoted(template)} makes a path of more than "
                f"{MAX_PATH_BYTES} bytes, the most that a file system takes"
            )
    return "".join((*pieces, template[end:]))


def _check_characters(*names: str) -> None:
    """Raise where a name could not be given to the system; it may have bytes that are no UTF-8."""
    for name in names:
        if _INDEX in name:
            raise DatasetError(f"file name {quoted(name)} holds a NUL character, as no path does")
        if not name.isascii():
            try:
                os.fsencode(name)
            except UnicodeEncodeError:
                raise DatasetError(f"file name {quoted(name)} holds half a character") from None


def _check_lengths(names: Sequence[str], *, data_dir: str | None) -> None:
    """Raise where no file system takes a file name, or a path under the data dir."""
    room = MAX_PATH_BYTES - (0 if data_dir is None else _num_bytes(data_dir) + 1)
    if max(map(len, names), default=0) * 4 <= min(MAX_NAME_BYTES, room):
        return  # however many bytes a character takes
    for name in names:
        longest = max(name.split("/"), key=_num_bytes)
        if _num_bytes(longest) > MAX_NAME_BYTES:
            raise DatasetError(
                f"file name {quoted(longest, 60)} has {_num_bytes(longest)} bytes; "
                f"a file system takes at most {MAX_NAME_BYTES}"
            )
        if _num_bytes(name) > room:
            path = name if data_dir is None else f"{data_dir}/{name}"
            raise DatasetError(
                f"path {quoted(path, 60)} has {_num_bytes(path)} bytes; "
                f"a file system takes at most {MAX_PATH_BYTES}"
            )


def _num_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _check_stays_inside(pattern: str, template: str) -> None:
    parts = pattern.replace("\\", "/").split("/")
    # Windows' backslashes and drive letters too: layouts are read on any system.
    if posixpath.isabs(pattern) or ".." in parts or re.match(r"[A-Za-z]:", pattern):
        raise DatasetError(
            f"file name template {quoted(template)} leaves the dataset's folder; "
            "file names are relative to it"
        )
    if parts[-1] in ("", "."):
        raise DatasetError(f"file name template {quoted(template)} names no file")


# Whole numbers held in eight bytes each, for splits of ten million shards.

_FEW = 1 << 14  # up to so many cost less than importing NumPy


class PackedInts(Sequence[int]):
    """A tuple of int64 in all but memory: equal to a tuple of the same numbers, and never changed.

    A tuple takes 40 bytes for a number; iterating makes one int at a time. NumPy sees the numbers
    without a copy, and is only imported where it does.

    >>> PackedInts([3, 4, 3])[1:], PackedInts([3, 4]) == (3, 4), PackedInts([]).int64s().tolist()
    ((4, 3), True, [])

    Raises:
        OverflowError: a number is not an int64.
    """

    __slots__ = ("_packed",)

    def __init__(self, values: Iterable[int]) -> None:
        # Of an array its values are copied as they lie in memory.
        self._packed = array("q", values)

    @classmethod
    def of(cls, values: Sequence[int]) -> PackedInts:
        """Return a sequence packed, itself where it is."""
        return values if isinstance(values, cls) else cls(values)

    @classmethod
    def of_int64s(cls, values: Int64s) -> PackedInts:
        """Return the numbers of int64[n], copied."""
        packed = cls(())
        # The array's own memory layout ("q", native order), so bytes are copied and not numbers.
        packed._packed.frombytes(values.astype("=i8", order="C", copy=False).view("u1").data)
        return packed

    def int64s(self) -> Int64s:
        """Return the numbers as int64[n] that cannot be written to, without a copy."""
        import numpy as np

        if not self._packed:  # an empty buffer has no address
            return np.empty(0, np.int64)
        values: Int64s = np.frombuffer(self._packed, np.int64)
        values.setflags(write=False)
        return values

    def sums(self) -> PackedInts:
        """Return 0 and the sum up to each number; no sum may be beyond int64.

        >>> PackedInts([3, 4]).sums()
        (0, 3, 7)
        """
        if len(self) < _FEW:
            return PackedInts(accumulate(self._packed, initial=0))
        # Zeros, of which NumPy fills all but the first in place: no second copy of the sums.
        sums = array("q", bytes(8 * (len(self) + 1)))
        import numpy as np

        np.cumsum(self.int64s(), out=np.frombuffer(sums, np.int64)[1:])
        packed = PackedInts(())
        packed._packed = sums
        return packed

    def total(self) -> int:
        """Return the sum, however large it is.

        >>> PackedInts([2**62, 2**62]).total() == 2**63, PackedInts([]).total()
        (True, 0)
        """
        return sum(self._packed)

    def least(self) -> int:
        """Return the least number; there must be one."""
        return int(self.int64s().min()) if len(self) >= _FEW else min(self._packed)

    def little_endian(self) -> memoryview:
        """Return the numbers as 8 bytes each, the least significant first on every machine."""
        packed = self._packed
        if sys.byteorder == "big":
            packed = packed[:]
            packed.byteswap()
        return memoryview(packed)

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> PackedInts: ...
    def __getitem__(self, index: int | slice) -> int | PackedInts:
        found = self._packed[index]
        return found if isinstance(found, int) else PackedInts(found)

    def __add__(self, other: Sequence[int]) -> PackedInts:
        return PackedInts(chain(self, other))

    def __radd__(self, other: Sequence[int]) -> PackedInts:
        return PackedInts(chain(other, self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedInts):
            return self._packed == other._packed
        # Equal to a tuple of the same numbers, without making one.
        if isinstance(other, tuple):
            return len(self) == len(other) and all(map(int.__eq__, self._packed, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._packed))  # that of the tuple it is equal to

    def __repr__(self) -> str:
        return repr(tuple(self._packed))

    def count(self, value: object) -> int:
        """Return how often a number is there."""
        return self._packed.count(value)  # type: ignore[arg-type]  # any object is compared
