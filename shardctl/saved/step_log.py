"""Logs of steps: `STEP ID ID ..` a line, which a training loop appends to and `audit` reads.

An id is a number, `split:id` or a tfds_id. A line `# host 0/8` begins the log of a process; a file
called `0-of-8.log` says so by its name. `# file 0 NAME` gives a file a number, with which `0__38`
is a tfds_id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s
from shardctl.base.text import choices, printable, quoted
from shardctl.base.tfds_rules import TFDS_ID_SEPARATOR
from shardctl.errors import DatasetError, UsageError
from shardctl.files.streams import open_stream
from shardctl.order.example_codes import ExampleCodes, code_of
from shardctl.order.order import ENDLESS
from shardctl.spec.host import Host, HostLike, as_host
from shardctl.stores.stores import os_reason, reading

_BLOCK = 1 << 24  # bytes parsed at once, and the most of a line
_CUT = "# cut"
_HEADERS = re.compile(rb"^(#[^\n]*\n)", re.MULTILINE)
_HEADER = re.compile(r"#\s*(?:host\s+(\d+/\d+)|file\s+(\d{1,9})\s+(\S.*))")
_WORD = re.compile(rf"([^\s:]+:)?\d{{1,18}}({TFDS_ID_SEPARATOR}\d{{1,18}})?", re.ASCII)
_HOST_OF_FILE = re.compile(r"(\d{1,6})-of-(\d{1,6})\.\w+$", re.ASCII)


class StepLog:
    """Appends a line for each step: which examples were trained on, for `shardctl audit`.

    Each line is one write, so that only the last one of a process that is killed can be cut off.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = StepLog(f"{folder}/steps.log", "0/8")
    ...     log.log(1, [b"d-train.tfrecord-00000-of-00001__7"])
    ...     log.log(2, [5, 6])
    ...     open(f"{folder}/steps.log").read().splitlines()
    ['# host 0/8', '# file 0 d-train.tfrecord-00000-of-00001', '1 0__7', '2 5 6']
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
                self._file.write(f"\n{_CUT}\n".encode() if self._file.read(1) != b"\n" else b"")
        except OSError as error:
            raise UsageError(f"cannot write {quoted(path, 200)}: {os_reason(error)}") from error
        self._file.write(f"# host {as_host(host)}\n".encode())

    def __repr__(self) -> str:
        return f"<StepLog {printable(self._file.name)}>"

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
        words, lines = [str(step) if step < ENDLESS else ""], ""
        for item in np.asarray(ids).ravel().tolist():
            text = item.decode() if isinstance(item, bytes) else str(item)
            name, joint, index = text.rpartition(TFDS_ID_SEPARATOR)
            if joint and name not in self._files:
                self._files[name] = len(self._files)
                lines += f"# file {self._files[name]} {name}\n"
            words.append(f"{self._files[name]}{joint}{index}" if joint else text)
        if not all(map(_WORD.fullmatch, words)) or lines.count("\n") != lines.count("# file "):
            self._files.clear()  # whose lines are not written
            raise UsageError(f"{quoted(' '.join(words))}: a step from 0 and ids are needed")
        self._file.write(f"{lines}{' '.join(words)}\n".encode())


@dataclass(frozen=True, eq=False)
class LoggedRun:
    """What one process logged from its start, or from where its steps go back, to its end.

    steps, lines, sizes: of each step its number, line in the file and number of ids, int64[n].
    codes: the codes of all ids, int64[m]. is_bare: no step of the file has any.
    """

    file: str
    host: Host
    is_bare: bool
    steps: Int64s
    lines: Int64s
    sizes: Int64s
    codes: Int64s


def read_step_logs(
    paths: Sequence[str], codes: ExampleCodes, host: Host
) -> tuple[list[LoggedRun], list[str]]:
    """Return what logs hold, process by process, and what surprises in them.

    Args:
        paths: files, folders whose files `*.log` are meant, `-` for stdin.
        codes: of the examples that may be named.
        host: of logs that do not say theirs.

    Raises:
        DatasetError: a file cannot be read or has no step, or a line is ill-formed; the text names
            the line.
    """
    runs: list[LoggedRun] = []
    warnings: list[str] = []
    for path in paths:
        names: Sequence[str] = [path]
        if os.path.isdir(path):
            names = sorted(os.path.join(path, name) for name in os.listdir(path))
            names = [name for name in names if name.endswith(".log")]
        for name in names:
            with reading(name), open_stream(name) as file:
                runs += _Reader(printable(name), codes, host, warnings).runs(file)
    if not runs:
        raise DatasetError(f"no step in {choices(paths)}: lines are STEP ID ID .., in files *.log")
    return runs, warnings


class _Reader:
    """The steps of one file, block by block."""

    def __init__(self, shown: str, codes: ExampleCodes, host: Host, warnings: list[str]) -> None:
        self._shown, self._codes, self._warnings = shown, codes, warnings
        self._number = 1  # of the next line
        self._names: dict[str, tuple[int, int]] = {}  # files -> first code, length
        named = _HOST_OF_FILE.search(shown)
        # Processes that said who they are, after the one that did not.
        self._hosts = [Host(index=int(named[1]), count=int(named[2])) if named else host]
        self._pieces: list[tuple[Int64s, ...]] = []  # process, steps, lines, sizes; codes
        self._cut: list[int] = []

    def runs(self, file: BinaryIO) -> Iterator[LoggedRun]:
        """Yield what is read, parted where a process began or the step is no higher."""
        while block := file.read(_BLOCK):
            block += b"" if block.endswith(b"\n") else file.readline(_BLOCK)
            whole = block.rfind(b"\n") + 1
            for text in _HEADERS.split(block[:whole]):
                if text.startswith(b"#"):
                    self._header(text.decode("utf-8", "replace").strip())
                elif text.strip() and not self._numbers(text):
                    plain = (self._plain(*one) for one in enumerate(text.split(b"\n")))
                    self._numbers(b"\n".join(plain), are_codes=True)
                self._number += text.count(b"\n")
            if len(block) - whole >= _BLOCK:
                raise self._wrong(f"more than {_BLOCK} bytes without a line end")
            if whole < len(block):
                self._cut_off(self._number)
        if not self._pieces:
            return
        process, steps, lines, sizes, codes = map(np.concatenate, zip(*self._pieces, strict=True))
        kept = ~np.isin(lines, self._cut)
        codes = codes[np.repeat(kept, sizes)]
        process, steps, lines, sizes = (one[kept] for one in (process, steps, lines, sizes))
        cuts = np.flatnonzero((np.diff(steps) <= 0) | (np.diff(process) != 0)) + 1
        ends = np.concatenate([[0], np.cumsum(sizes)])
        for start, stop in pairwise([0, *cuts.tolist(), len(steps)] if len(steps) else []):
            host, own = self._hosts[process[start]], codes[ends[start] : ends[stop]]
            own_steps, own_lines = steps[start:stop], lines[start:stop]
            rows = (own_steps, own_lines, sizes[start:stop], own)
            yield LoggedRun(self._shown, host, not len(codes), *rows)

    def _cut_off(self, line: int) -> None:
        self._cut.append(line)
        why = "it is left out, as of a process that was killed"
        self._warnings.append(f"{self._shown}, line {line}, was cut off; {why}")

    def _wrong(self, rule: object, lines: int = 0) -> DatasetError:
        return DatasetError(f"{self._shown}, line {self._number + lines}: {rule}")

    def _numbers(self, text: bytes, *, are_codes: bool = False) -> bool:
        """Take lines of numbers; return False, and take none, if there is anything else in them."""
        if text.translate(None, b"0123456789 \t\r\n"):
            return False
        # What is too large becomes the largest int64, which is no step and no id.
        numbers = np.fromstring(text, np.int64, sep=" ")
        is_digit = np.frombuffer(text, np.uint8) > ord(" ")
        # A number begins where a digit follows a blank.
        starts = np.flatnonzero(is_digit & np.diff(is_digit, prepend=False))
        line_ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        in_line = np.bincount(np.searchsorted(line_ends, starts))
        rows = np.flatnonzero(in_line)
        sizes = in_line[rows] - 1
        firsts = np.cumsum(sizes + 1) - sizes - 1
        steps, codes = numbers[firsts], np.delete(numbers, firsts)
        # What is no step or id is looked at word by word, for the message.
        are_codes |= not self._codes.several_splits or not len(codes)
        if steps.max() >= ENDLESS or not are_codes or codes.max(initial=0) >= self._codes.num_codes:
            return False
        process = np.full(len(rows), len(self._hosts) - 1)
        self._pieces.append((process, steps, self._number + rows, sizes, codes))
        return True

    def _plain(self, at: int, line: bytes) -> bytes:
        """Return a line with the codes of its ids."""
        try:
            step, *ids = line.decode("utf-8").split() or [""]
            if step and not (re.fullmatch("[0-9]{1,15}", step) and int(step) < ENDLESS):
                raise UsageError(f"{quoted(step)} is no step: a line is STEP ID ID ..")
            return " ".join([step, *map(str, map(self._code, ids))]).encode()
        except (UsageError, UnicodeDecodeError) as error:
            raise self._wrong(printable(str(error)), at) from None

    def _code(self, text: str) -> int:
        is_named = TFDS_ID_SEPARATOR in text
        return code_of(text, self._names, self._codes) if is_named else self._codes.parse(text)

    def _header(self, text: str) -> None:
        if text == _CUT:
            self._cut_off(self._number - 1)
        if header := _HEADER.fullmatch(text):
            try:
                if header[1]:
                    self._hosts.append(Host.parse(header[1]))
                else:
                    code_of(f"{header[3]}{TFDS_ID_SEPARATOR}0", self._names, self._codes)
                    self._names[header[2]] = self._names[header[3]]
            except UsageError as error:
                raise self._wrong(error) from None
