"""Logs of examples: one `tfds_id` a line, plain or gzip, in any order, any number of times.

The list of what passes a filter is such a log, or one of ids, or a scan.
"""

from __future__ import annotations

import gzip
import os
import zlib
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from shardctl.base.arrays import Int64s, distinct
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import TFDS_ID_SEPARATOR
from shardctl.errors import DatasetError, UsageError
from shardctl.files.streams import open_stream
from shardctl.iteration.regrouped import Kept
from shardctl.order.example_codes import ExampleCodes, code_of
from shardctl.saved.scan_file import AGAIN, SUFFIX, kept_of_scan
from shardctl.stores.stores import reading

_MAX_LINE = 1 << 16
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True)
class SeenExamples:
    """The examples that a log names: their codes, int64[n], ascending and each once."""

    codes: Int64s
    warnings: tuple[str, ...] = ()


def read_seen(path: Path | str, codes: ExampleCodes, *, ids: bool = False) -> SeenExamples:
    """Return the examples that a log names; blank lines and line ends of Windows are skipped.

    With `ids` a line may be an id too, `5` or `train:5`.

    A last line without a line end may have been cut off, and a cut index is another index: the line
    is read as it is, and a warning says so.

    Raises:
        DatasetError: the file cannot be read, is a torn gzip, or a line is not a tfds_id of a file
            that is read; the text names the line.
    """
    shown = quoted(path, 200)
    with reading(os.fspath(path)):
        try:
            with open_stream(path) as raw:
                # Looked at without being read, since a pipe cannot be rewound.
                start = raw.peek(2)[:2]  # type: ignore[attr-defined]  # it is buffered
                if start != _GZIP:
                    return _read(raw, codes, shown, ids)
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    return _read(unzipped, codes, shown, ids)  # type: ignore[arg-type]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DatasetError(
                f"{shown} is a gzip file that was cut off or damaged; "
                "zcat writes what is left of it to a plain file, whose last line may be cut"
            ) from error


def read_kept(call: str, path: str, codes: ExampleCodes | None) -> Kept:
    """Return what a stage does to each example, by the file at `path`.

    That is a scan, or of a filter the list of what passes: a tfds_id or an id (`5`, `train:5`) a
    line. Without `codes` elements are counted from 0.

    Raises:
        DatasetError: it cannot be read, or names no example of what is read.
        UsageError: a list for another stage, or of elements without names.
    """
    if path.endswith(SUFFIX):
        return kept_of_scan(call, path, codes)
    if call != "filter" or codes is None:
        what = f"{call} needs" if call != "filter" else "elements without a dataset need"
        raise UsageError(f"kept={quoted(path)}: {what} a scan, a file *{SUFFIX}; {AGAIN}")
    kept = read_seen(path, codes, ids=True).codes

    def passes(wanted: Int64s) -> Int64s:
        # `kept` is sorted: the place where a code would be holds it, or it is not there.
        rows = np.minimum(np.searchsorted(kept, wanted), max(len(kept) - 1, 0))
        found = kept[rows] == wanted if len(kept) else np.zeros(len(wanted), bool)
        return found.astype(np.int64)

    return Kept(values=passes)


def _read(file: BinaryIO, codes: ExampleCodes, shown: str, ids: bool) -> SeenExamples:
    found = array("q")
    files: dict[str, tuple[int, int]] = {}
    number, line = 0, b"\n"
    # Bounded, so that a file without line ends does not fill the memory.
    while more := file.readline(_MAX_LINE + 1):
        number, line = number + 1, more
        if len(line) > _MAX_LINE:
            raise DatasetError(f"{shown} holds a line of more than {_MAX_LINE} bytes; no tfds_id")
        try:
            if text := line.decode("utf-8").strip():
                is_id = ids and TFDS_ID_SEPARATOR not in text
                found.append(codes.parse(text) if is_id else code_of(text, files, codes))
        except UnicodeDecodeError as error:
            raise DatasetError(f"{shown}: line {number} is not UTF-8 text") from error
        except UsageError as error:
            raise DatasetError(f"{shown}, line {number}: {error}") from None
    torn = f"line {number} of {shown}, the last, has no line end: it may be cut off"
    return SeenExamples(
        codes=distinct(np.array(found, np.int64)), warnings=() if line.endswith(b"\n") else (torn,)
    )
