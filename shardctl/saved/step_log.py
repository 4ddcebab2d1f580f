"""Logs of steps: `STEP ID ID ..` a line, which a training loop appends to and `audit` reads.

An id is a number, `split:id` or a tfds_id. A line `# host 0/8 time 1700000000` begins the log of a
process, and `# file 0 NAME` gives a file a number, with which `0__38` is a tfds_id. JSON lines,
`{"step": 5, "ids": [..]}` and `{"host": "0/8"}`, are read as well.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from glob import escape, glob, has_magic
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s
from shardctl.base.text import choices, printable, quoted
from shardctl.base.tfds_rules import TFDS_ID_SEPARATOR
from shardctl.errors import DatasetError, UsageError
from shardctl.files.streams import open_stream
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import ENDLESS
from shardctl.spec.host import Host, HostLike, as_host
from shardctl.stores.stores import os_reason

_BLOCK = 1 << 24  # bytes parsed at once, and the most of a line
_JOINT = TFDS_ID_SEPARATOR.encode()
_STEP = re.compile(r"[0-9]{1,15}")
_CUT = b"\n# cut\n"
# Lines that are no row of numbers: of a header, or JSON.
_SPECIAL = re.compile(rb"^[ \t]*[#{][^\n]*\n?", re.MULTILINE)
_WORD = re.compile(r"([^\s:]+:)?\d+(__\d+)?")
_HEADER = re.compile(r"#\s*host\s+(\d+/\d+)(?:\s+time\s+(\d{1,12}))?")
_FILE = re.compile(r"#\s*file\s+(\d{1,9})\s+(\S.*)")
_DIGITS = b"0123456789 \t\r\n"
_ENDINGS = (".log", ".jsonl", ".txt")


class StepLog:
    """Appends a line for each step: which examples were trained on, for `shardctl audit`.

    Each line is one write, so that only the last one of a process that is killed can be cut off.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = StepLog(f"{folder}/steps.log")
    ...     log.log(1, [b"d-train.tfrecord-00000-of-00001__7", b"d-train.tfrecord-00000-of-00001__3"])
    ...     log.log(2, [5, 6])
    ...     [line.split()[:3] for line in open(f"{folder}/steps.log")][1:]
    [['#', 'file', '0'], ['1', '0__7', '0__3'], ['2', '5', '6']]
    """

    @checked
    def __init__(self, path: str | os.PathLike[str], host: HostLike = "0/1") -> None:
        """Open a log to append to; each of several hosts has a file of its own.

        Args:
            path: the file; a restart continues it.
            host: which of how many hosts this process is, "0/8".

        Raises:
            UsageError: it cannot be written.
        """
        self._files: dict[str, int] = {}
        try:
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115  # as long as the process
            if size := self._file.seek(0, os.SEEK_END):
                self._file.seek(size - 1)
                # Of the line that a kill cut off, what is left may be another id.
                self._file.write(_CUT if self._file.read(1) != b"\n" else b"")
        except OSError as error:
            raise UsageError(f"cannot write {quoted(path, 200)}: {os_reason(error)}") from error
        self._file.write(f"# host {as_host(host)} time {int(time.time())}\n".encode())

    @checked
    def log(self, step: int, ids: Any = ()) -> None:
        """Append a step and the examples of its batch.

        Args:
            step: its number, from 0; a step is logged once, in a line.
            ids: tfds_ids or numbers, as an array or tensor of any shape or a list; none where the
                loop does not know them.

        Raises:
            UsageError: a negative step, or what is neither a number nor a tfds_id.
        """
        words, lines = [str(step)], ""
        for item in np.asarray(ids).ravel().tolist():
            text = item.decode() if isinstance(item, bytes) else str(item)
            name, joint, index = text.rpartition(TFDS_ID_SEPARATOR)
            if joint and name not in self._files:
                self._files[name] = len(self._files)
                lines += f"# file {self._files[name]} {name}\n"
            words.append(f"{self._files[name]}{TFDS_ID_SEPARATOR}{index}" if joint else text)
        if not all(map(_WORD.fullmatch, words)):
            raise UsageError(f"{quoted(' '.join(words))}: a step from 0 and ids are needed")
        self._file.write(f"{lines}{' '.join(words)}\n".encode())


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRun:
    """What one process logged from its start, or from where its steps go back, to its end.

    steps, lines, sizes: of each step its number, line in the file and number of ids, int64[n].
    codes: the codes of all ids, int64[m]; no step of the file has any where `is_bare`.
    time: in seconds since 1970.
    """

    file: str
    host: Host | None
    time: int | None
    steps: Int64s
    lines: Int64s
    sizes: Int64s
    codes: Int64s
    is_bare: bool


def read_step_logs(paths: list[str], codes: ExampleCodes) -> tuple[list[LoggedRun], list[str]]:
    """Return what logs hold, process by process, and what surprises in them.

    Args:
        paths: files, folders of logs, patterns, `-` for stdin.
        codes: of the examples that may be named.

    Raises:
        DatasetError: a file cannot be read or has no step, or a line is ill-formed; the text names
            the line.
    """
    runs: list[LoggedRun] = []
    warnings: list[str] = []
    for path in paths:
        names = [path]
        if os.path.isdir(path) or (has_magic(path) and not os.path.exists(path)):
            pattern = os.path.join(escape(path), "*") if os.path.isdir(path) else path
            names = sorted(name for name in glob(pattern) if name.endswith(_ENDINGS))
        for name in names:
            reader = _Reader(printable(name), codes)
            try:
                with open_stream(name) as file:
                    reader.read(file)
            except (OSError, ValueError) as error:
                why = os_reason(error) if isinstance(error, OSError) else "no path holds a NUL"
                raise DatasetError(f"cannot read {quoted(name, 200)}: {why}") from error
            runs += reader.runs()
            warnings += reader.warnings
    if not runs:
        raise DatasetError(
            f"no step in {choices(paths)}: lines are STEP ID ID .., in files "
            f"{', '.join(_ENDINGS)} of a folder"
        )
    return runs, warnings


class _Reader:
    """The steps of one file, block by block."""

    def __init__(self, shown: str, codes: ExampleCodes) -> None:
        self._shown, self._codes, self._number = shown, codes, 1  # the next line
        self._names: dict[str, tuple[int, int]] = {}  # files -> first code, length
        # Processes that said who they are, the first of which said nothing.
        self._processes: list[tuple[Host | None, int | None]] = [(None, None)]
        self._pieces: list[tuple[Int64s, ...]] = []  # process, steps, lines, sizes; codes
        self._cut: list[int] = []
        self.warnings: list[str] = []

    def read(self, file: BinaryIO) -> None:
        """Read all lines."""
        while block := file.read(_BLOCK):
            block += b"" if block.endswith(b"\n") else file.readline(_BLOCK)
            whole = block.rfind(b"\n") + 1
            if len(block) - whole >= _BLOCK:
                raise self._wrong(f"a line of more than {_BLOCK} bytes", block.count(b"\n"))
            start = 0
            for special in _SPECIAL.finditer(block, 0, whole):
                self._take(block[start : special.start()])
                self._special(special[0])
                self._number += 1
                start = special.end()
            self._take(block[start:whole])
            if whole < len(block):
                self._is_cut(self._number)

    def runs(self) -> Iterator[LoggedRun]:
        """Yield what is read, parted where a process began or the step is no higher."""
        if not self._pieces:
            return
        process, steps, lines, sizes, codes = map(np.concatenate, zip(*self._pieces, strict=True))
        kept = ~np.isin(lines, self._cut)
        codes = codes[np.repeat(kept, sizes)]
        process, steps, lines, sizes = (one[kept] for one in (process, steps, lines, sizes))
        cuts = np.flatnonzero((np.diff(steps) <= 0) | (np.diff(process) != 0)) + 1
        ends = np.concatenate([[0], np.cumsum(sizes)])
        for start, stop in pairwise([0, *cuts.tolist(), len(steps)] if len(steps) else []):
            host, when = self._processes[process[start]]
            yield LoggedRun(
                file=self._shown,
                host=host,
                time=when,
                steps=steps[start:stop],
                lines=lines[start:stop],
                sizes=sizes[start:stop],
                codes=codes[ends[start] : ends[stop]],
                is_bare=not len(codes),
            )

    def _is_cut(self, line: int) -> None:
        self._cut.append(line)
        why = "it is left out, as of a process that was killed"
        self.warnings.append(f"{self._shown}, line {line}, was cut off; {why}")

    def _wrong(self, rule: object, lines: int = 0) -> DatasetError:
        return DatasetError(f"{self._shown}, line {self._number + lines}: {rule}")

    def _take(self, text: bytes) -> None:
        """Take lines of steps: those of numbers alone as they are."""
        if text.strip() and not self._numbers(text):
            lines = enumerate(text.split(b"\n"))
            self._numbers(b"\n".join(self._plain(*line) for line in lines), are_codes=True)
        self._number += text.count(b"\n")

    def _numbers(self, text: bytes, *, are_codes: bool = False) -> bool:
        """Take lines of numbers; return False, and take none, if there is anything else in them."""
        pairs, spaced = text.count(_JOINT), text.replace(_JOINT, b" ")
        if spaced.translate(None, _DIGITS) or re.search(rb"\d{19}|(?<!\d)__|__(?!\d)", text):
            return False
        numbers = np.fromstring(spaced, np.int64, sep=" ")
        data = np.frombuffer(spaced, np.uint8)
        # A number begins where a digit follows a blank.
        starts = np.flatnonzero(np.diff(data > ord(" "), prepend=False) & (data > ord(" ")))
        in_line = np.bincount(np.searchsorted(np.flatnonzero(data == ord("\n")), starts))
        rows = np.flatnonzero(in_line)
        sizes = in_line[rows] - 1
        firsts = np.cumsum(sizes + 1) - sizes - 1
        steps, codes = numbers[firsts], np.delete(numbers, firsts)
        if pairs:
            # A file's number and an index in it: codes[::2] and codes[1::2].
            first, length = np.array(
                [self._names.get(str(k), (0, 0)) for k in range(len(self._names) + 1)], np.int64
            ).T
            if len(codes) != 2 * pairs or (sizes % 2).any() or codes[::2].max() >= len(first):
                return False
            files, index, sizes = codes[::2], codes[1::2], sizes // 2
            if (index >= length[files]).any():
                return False
            codes = first[files] + index
        # Numbers that are no ids are looked at one by one, for the message.
        are_codes |= pairs > 0 or not self._codes.several_splits or not len(codes)
        if steps.max() >= ENDLESS or not are_codes or codes.max(initial=0) >= self._codes.num_codes:
            return False
        process = np.full(len(rows), len(self._processes) - 1)
        self._pieces.append((process, steps, self._number + rows, sizes, codes))
        return True

    def _plain(self, at: int, line: bytes) -> bytes:
        """Return a line with the codes of its ids."""
        try:
            step, *ids = line.decode("utf-8").split() or [""]
            if step and (not _STEP.fullmatch(step) or int(step) >= ENDLESS):
                raise UsageError(f"{quoted(step)} is no step: a line is STEP ID ID ..")
            return " ".join([step, *map(str, map(self._code, ids))]).encode()
        except (UsageError, UnicodeDecodeError) as error:
            raise self._wrong(error, at) from None

    def _code(self, text: str) -> int:
        name, joint, index = text.rpartition(TFDS_ID_SEPARATOR)
        if not joint:
            return self._codes.parse(text)
        if name not in self._names:
            self._name(name, name)
        first, length = self._names[name]
        if not (index.isascii() and index.isdigit() and len(index) < 19 and int(index) < length):
            raise UsageError(f"tfds_id {quoted(text)}: the file has {length} examples, from 0")
        return first + int(index)

    def _name(self, word: str, name: str) -> None:
        """Keep the first code and the length of a file, which ids call by a word."""
        code = self._codes.parse_tfds_id(f"{name}{TFDS_ID_SEPARATOR}0")
        split, shard, _ = (int(one[0]) for one in self._codes.places(np.array([code], np.int64)))
        self._names[word] = code, self._codes.dataset.splits[split].shard_lengths[shard]

    def _special(self, line: bytes) -> None:
        """Take a header, or a line of JSON."""
        text = line.decode("utf-8", "replace").strip()
        if text == _CUT.decode().strip():
            self._is_cut(self._number - 1)
        try:
            value = json.loads(text) if text.startswith("{") else {}
            header = _HEADER.fullmatch(text)
            if header or "host" in value:
                host, when = header.groups() if header else (str(value["host"]), None)
                self._processes.append((Host.parse(host), when and int(when)))
            elif named := _FILE.fullmatch(text):
                self._name(*named.groups())
            if "step" in value:
                words = map(str, [value["step"], *value.get("ids", ())])
                text = " ".join(word.replace("\n", " ") for word in words)
                self._take(text.encode())  # without a line end, which is counted below
        except (UsageError, ValueError, TypeError, RecursionError) as error:
            raise self._wrong(printable(str(error))) from None
