"""The file instructions of a long plan file, read line by line as they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s, constant, joined_arrays, joined_constants
from shardctl.core.instructions.named_files import JoinedNames

_LONG = 1 << 24  # bytes; a shorter text is parsed as a whole
_PIECE = 1 << 20
_KEYS = ("filename", "split", "skip", "take", "examples_in_shard")
_IS_PLAN = re.compile(rb'^ *"?kind"?: "?resume\b', re.MULTILINE)
_HEAD = 1 << 12  # bytes, in which a plan file says what it is
_NUMBER = r"(0|[1-9][0-9]{0,18})"
_TEXT = r'"([^"\\\x00-\x1f]*)"'


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordLines:
    """A list of file instructions as columns, int64[n] each; `split` counts in `split_names`.

    `shards` is None where no record has a `shard_index`.
    """

    names: JoinedNames
    split_names: tuple[str, ...]
    split: Int64s
    skip: Int64s
    take: Int64s
    lengths: Int64s
    shards: Int64s | None


def without_record_lines(data: bytes, *, is_json: bool) -> tuple[bytes, list[RecordLines]]:
    """Return the text of a plan file with `[k]` for its k-th list of file instructions, and these.

    So millions of them take no mapping each. All else keeps its line. A text that is short, or that
    is not written as `files.plan.writer` does, comes back as it is, and without lists.
    """
    if len(data) < _LONG or not _IS_PLAN.search(data, 0, _HEAD):
        return data, []
    kept: list[bytes] = []
    lists: list[RecordLines] = []
    done = 0
    opening = re.compile(rb' *"file_instructions": \[\n' if is_json else rb" *file_instructions:\n")
    while (found := data.find(b"file_instructions", done)) >= 0:
        line = data.rfind(b"\n", 0, found) + 1
        opened = opening.match(data, line)
        if opened is None:  # a list without records is written on one line
            kept.append(data[done : found + 1])
            done = found + 1
            continue
        try:
            records, stop = _records(data, opened.end(), is_json=is_json)
        except ValueError:
            return data, []
        num_lines = data.count(b"\n", opened.end(), stop)
        indent = re.compile(rb" *(?:- )?").match(data, opened.end())
        lead = indent.group() if indent is not None else b""
        kept += [data[done : opened.end()], lead, b"%d" % len(lists), b"\n" * num_lines]
        lists.append(records)
        done = stop
    kept.append(data[done:])
    return b"".join(kept), lists


def _records(data: bytes, start: int, *, is_json: bool) -> tuple[RecordLines, int]:
    """Return the list whose first record begins at `start`, and where the line after it begins.

    Raises:
        ValueError: a line is written in another way.
    """
    pattern = _pattern(data, start, is_json=is_json)
    columns = _Columns(has_commas=is_json)
    while True:
        end = data.find(b"\n", min(start + _PIECE, len(data))) + 1 or len(data)
        rows, stop = [], start
        for match in pattern.finditer(data, start, end):
            if match.start() != stop:
                break
            rows.append(match.groups())
            stop = match.end()
        if rows:
            columns.add(rows)
        if stop < end or end == len(data):
            break
        start = end
    end_of_list = re.compile(rb" *\](?:\n|,)" if is_json else rb"(?! *- \{)").match(data, stop)
    if end_of_list is None or (is_json and not columns.is_complete):
        raise ValueError
    return columns.lines(), stop


def _pattern(data: bytes, start: int, *, is_json: bool) -> re.Pattern[bytes]:
    first = re.compile(rb" *(?:- )?(?=\{)").match(data, start)
    if first is None:
        raise ValueError
    quote, end = ('"', r"\}(,?)\n") if is_json else ("", r"\}()\n")
    kinds = (_TEXT, _TEXT, _NUMBER, _NUMBER, _NUMBER)
    parts = [f"{quote}{key}{quote}: {kind}" for key, kind in zip(_KEYS, kinds, strict=True)]
    shard = f"(?:, {quote}shard_index{quote}: {_NUMBER})?"
    lead = first.group().decode()
    return re.compile(rf"^{lead}\{{{', '.join(parts)}{shard}{end}".encode(), re.MULTILINE)


class _Columns:
    """The columns of records, piece by piece."""

    def __init__(self, *, has_commas: bool) -> None:
        self.is_complete = False  # in JSON a comma stands behind every record but the last
        self._has_commas = has_commas
        self._names: list[str] = []
        self._split_names: dict[bytes, int] = {}
        self._splits: list[Int64s] = []
        self._numbers: list[list[Int64s]] = [[], [], []]
        self._shards: list[Int64s] = []

    def add(self, rows: list[tuple[bytes, ...]]) -> None:
        """Add rows as `_pattern` finds them.

        Raises:
            ValueError: a number that is no int64, text that is not UTF-8, commas where none are
                due, indices at some of the files.
        """
        names, splits, skip, take, lengths, shards, commas = zip(*rows, strict=True)
        if self._has_commas:
            if self.is_complete or b"" in commas[:-1]:
                raise ValueError
            self.is_complete = not commas[-1]
        self._names.append(b"\n".join(names).decode())
        codes = [self._split_names.setdefault(name, len(self._split_names)) for name in splits]
        same = len(set(splits)) == 1
        self._splits.append(constant(codes[0], len(codes)) if same else np.array(codes, np.int64))
        try:
            for column, texts in zip(self._numbers, (skip, take, lengths), strict=True):
                column.append(np.array(list(map(int, texts)), np.int64))
            if shards.count(None) != len(shards):
                self._shards.append(np.array(list(map(int, shards)), np.int64))
        except (OverflowError, TypeError) as error:
            raise ValueError from error

    def lines(self) -> RecordLines:
        """Return all columns."""
        if self._shards and len(self._shards) != len(self._splits):
            raise ValueError
        skip, take, lengths = (joined_arrays(column) for column in self._numbers)
        return RecordLines(
            names=JoinedNames(self._names),
            split_names=tuple(name.decode() for name in self._split_names),
            split=joined_constants(self._splits),
            skip=skip,
            take=take,
            lengths=lengths,
            shards=joined_arrays(self._shards) if self._shards else None,
        )
