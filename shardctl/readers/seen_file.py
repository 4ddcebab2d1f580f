"""Logs of examples: one `tfds_id` a line, plain or gzip, in any order, any number of times.

The list of what passes a filter is such a log, or one of ids, or a mask.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s, distinct
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import TFDS_ID_SEPARATOR
from shardctl.errors import DatasetError, UsageError
from shardctl.files.file_text import os_reason
from shardctl.files.stream import open_stream

_PIECE = 1 << 23  # bytes of text looked at together
_MAX_LINE = 1 << 16
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True)
class SeenExamples:
    """The examples that a log names: their codes, int64[n], ascending and each once."""

    codes: Int64s
    num_lines: int
    warnings: tuple[str, ...] = ()


def read_seen(path: Path | str, codes: ExampleCodes) -> SeenExamples:
    """Return the examples that a log names; blank lines and line ends of Windows are skipped.

    A last line without a line end may have been cut off, and a cut index is another index: the line
    is read as it is, and a warning says so.

    Raises:
        DatasetError: the file cannot be read, is a torn gzip, or a line is not a tfds_id of a file
            that is read; the text names the line.
    """
    shown = quoted(path, 200)
    try:
        with open_stream(path) as raw:
            start = raw.peek(2)[:2]  # type: ignore[attr-defined]  # it is buffered
            if start == _GZIP:
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    return _read(unzipped, codes, shown)  # type: ignore[arg-type]
            return _read(raw, codes, shown)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(
            f"{shown} is a gzip file that was cut off or damaged; "
            "zcat writes what is left of it to a plain file, whose last line may be cut"
        ) from error
    except OSError as error:
        raise DatasetError(f"cannot read {shown}: {os_reason(error)}") from error
    except ValueError as error:  # a NUL in the path
        raise DatasetError(f"cannot read {shown}: no path holds a NUL character") from error


def read_kept(path: Path | str, codes: ExampleCodes) -> Callable[[Int64s], NDArray[np.bool_]]:
    """Return what says of each code whether it passes a filter whose list is at `path`.

    The list has a tfds_id or an id (`5`, `train:5`) a line, or is a `.npy` of bool[n] by id.

    Raises:
        DatasetError: it cannot be read, or names no example of what is read.
        UsageError: a mask for several splits.
    """
    if str(path).endswith(".npy"):
        return _mask(path, codes)
    kept = _codes_of_ids(path, codes)
    if kept is None:
        kept = read_seen(path, codes).codes

    def passes(wanted: Int64s) -> NDArray[np.bool_]:
        places = np.minimum(np.searchsorted(kept, wanted), max(len(kept) - 1, 0))
        return kept[places] == wanted if len(kept) else np.zeros(len(wanted), bool)

    return passes


def _codes_of_ids(path: Path | str, codes: ExampleCodes) -> Int64s | None:
    """Return the codes of a list of ids, ascending; None where its lines are tfds_ids."""
    shown = quoted(path, 200)
    try:
        with open_stream(path) as file:
            found: list[int] = []
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8", "replace").strip()
                if not found and (TFDS_ID_SEPARATOR in text or line[:2] == _GZIP):
                    return None
                if not text:
                    continue
                try:
                    found.append(codes.parse(text))
                except UsageError as error:
                    raise DatasetError(f"{shown}, line {number}: {error}") from None
    except OSError as error:
        raise DatasetError(f"cannot read {shown}: {os_reason(error)}") from error
    return distinct(np.array(found, np.int64))


def _mask(path: Path | str, codes: ExampleCodes) -> Callable[[Int64s], NDArray[np.bool_]]:
    shown = quoted(path, 200)
    if codes.several_splits:
        raise UsageError(
            f"{shown}: a mask is by id, and several splits are read; a list of tfds_ids names the "
            "examples of any"
        )
    try:
        mask = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {shown}: {error}") from error
    if mask.dtype != bool or mask.shape != (codes.num_codes,):
        raise DatasetError(
            f"{shown} holds {mask.dtype}{list(mask.shape)}; bool[{codes.num_codes}] is needed, "
            "one of each example of the split, by id"
        )
    kept: NDArray[np.bool_] = mask
    return lambda wanted: kept[wanted]


def _read(file: BinaryIO, codes: ExampleCodes, shown: str) -> SeenExamples:
    found = np.empty(0, np.int64)
    files = _Files(codes)
    num_lines, torn = 0, False
    for piece, torn in _pieces(file, shown):
        try:
            text = piece.decode("utf-8")
        except UnicodeDecodeError as error:
            line = num_lines + piece.count(b"\n", 0, error.start) + 1
            raise DatasetError(f"{shown}: line {line} is not UTF-8 text") from error
        lines = text.split("\n")
        if not torn:
            lines.pop()
        if not text.isascii() or any(blank in text for blank in " \t\r\v\f"):
            lines = [line.strip() for line in lines]
        try:
            new = files.codes_of(lines)
        except UsageError:
            _blame(lines, num_lines, codes, shown)
            raise
        found = distinct(np.concatenate([found, new]))
        num_lines += len(lines)
    warnings: tuple[str, ...] = ()
    if torn:
        warnings = (f"line {num_lines} of {shown}, the last, has no line end: it may be cut off",)
    return SeenExamples(codes=found, num_lines=num_lines, warnings=warnings)


def _pieces(file: BinaryIO, shown: str) -> Iterator[tuple[bytes, bool]]:
    """Yield pieces of whole lines, and whether the last one of them has no line end."""
    rest = b""
    while data := file.read(_PIECE):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > _MAX_LINE:
            raise DatasetError(f"{shown} holds a line of more than {_MAX_LINE} bytes; no tfds_id")
        rest = data[cut:]
        if cut:
            yield data[:cut], False
    if rest:
        yield rest, True


class _Files:
    """The code of the first example of each file, looked up once a file."""

    def __init__(self, codes: ExampleCodes) -> None:
        self._codes = codes
        self._numbers: dict[str, int] = {}
        self._firsts: Int64s = np.empty(0, np.int64)
        self._largest: Int64s = np.empty(0, np.int64)

    def codes_of(self, lines: Iterable[str]) -> Int64s:
        """Return the codes (int64[n]) of tfds_ids without blanks around them.

        Raises:
            UsageError: one of them is not a tfds_id.
        """
        parts = [line.rpartition(TFDS_ID_SEPARATOR) for line in lines if line]
        if not parts:
            return np.empty(0, np.int64)
        names, _, indices = zip(*parts, strict=True)
        digits = "".join(indices)
        if not (all(indices) and digits.isdecimal() and digits.isascii()):
            raise UsageError("an id without an index")
        if max(map(len, indices)) > 18:
            raise UsageError("an index of more digits than an example has")
        self._add(set(names).difference(self._numbers))
        files = np.fromiter(map(self._numbers.__getitem__, names), np.int64, len(names))
        numbers = np.fromiter(map(int, indices), np.int64, len(names))
        self._check(files, numbers)
        return self._firsts[files] + numbers

    def _add(self, names: Iterable[str]) -> None:
        for name in names:
            self._numbers[name] = len(self._numbers)
        missing = len(self._numbers) - len(self._firsts)
        self._firsts = np.concatenate([self._firsts, np.zeros(missing, np.int64)])
        self._largest = np.concatenate([self._largest, np.full(missing, -1)])

    def _check(self, files: Int64s, numbers: Int64s) -> None:
        """Compare each file's largest index with its length, and learn where the file begins."""
        # One look-up a file and piece: smaller indices of a file are right if the largest one is.
        largest = self._largest.copy()
        np.maximum.at(largest, files, numbers)
        names = list(self._numbers)
        for file in np.flatnonzero(largest > self._largest).tolist():
            number = int(largest[file])
            code = self._codes.parse_tfds_id(f"{names[file]}{TFDS_ID_SEPARATOR}{number}")
            self._firsts[file] = code - number
        self._largest = largest


def _blame(lines: list[str], num_before: int, codes: ExampleCodes, shown: str) -> None:
    """Raise for the first line that is not a tfds_id."""
    for number, line in enumerate(lines, start=num_before + 1):
        text = line.strip()
        if not text:
            continue
        try:
            codes.parse_tfds_id(text)
        except UsageError as error:
            raise DatasetError(f"{shown}, line {number}: {error}") from None
        if not text.rpartition(TFDS_ID_SEPARATOR)[2].isascii():
            raise DatasetError(f"{shown}, line {number}: {quoted(text)} ends in no ASCII number")
