"""A process that tries one case after the other, and is replaced when a case ends or stops it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.kinds import KINDS, READ_POSITION, Case, Sources, write_files
from tests.hostile.verdict import MEMORY, SECONDS, STOPPING, WALL_SECONDS, Outcome, faults


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A case that did what may not happen; `case` tries it again."""

    kind: str
    case: str
    command: Sequence[str]
    fault: str


def made_case(kind: str, name: str, sources: Sources) -> Case:
    """Return the case of this name, the same each time."""
    return KINDS[kind](random.Random(f"{kind} {name}"), sources)


class Worker:
    """Tries cases in a child that has shardctl loaded and a limit of memory."""

    def __init__(self, sources: Sources, folder: Path) -> None:
        self._sources, self._folder = sources, folder
        self._pid = 0

    def tried(self, kind: str, name: str) -> list[Failure]:
        """Return what failed in a case."""
        if not self._pid:
            self._start()
        os.write(self._ask, json.dumps([kind, name]).encode() + b"\n")
        answer = self._answer()
        if answer is not None:
            return [Failure(kind=kind, case=name, command=c, fault=f) for c, f in answer]
        case = made_case(kind, name, self._sources)
        fault = self._end_of_child()
        return [Failure(kind=kind, case=name, command=case.commands[0], fault=fault)]

    def close(self) -> None:
        """End the child."""
        if self._pid:
            os.close(self._ask)
            os.close(self._told)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def _start(self) -> None:
        ask_read, self._ask = os.pipe()
        self._told, told_write = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(ask_read)
            os.close(told_write)
            return
        os.close(self._ask)
        os.close(self._told)
        try:
            _serve(ask_read, told_write, self._sources, self._folder)
        finally:
            os._exit(0)

    def _answer(self) -> list[tuple[list[str], str]] | None:
        """Return what the child says, None where it dies or says nothing in time."""
        data = b""
        while not data.endswith(b"\n"):
            if not select.select([self._told], [], [], WALL_SECONDS)[0]:
                os.kill(self._pid, signal.SIGKILL)
            piece = os.read(self._told, 1 << 16)
            if not piece:
                return None
            data += piece
        found: list[tuple[list[str], str]] = json.loads(data)
        return found

    def _end_of_child(self) -> str:
        _, status = os.waitpid(self._pid, 0)
        os.close(self._ask)
        os.close(self._told)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGKILL:
            return f"hangs for {WALL_SECONDS} s"
        if code == -signal.SIGXCPU:
            return f"more than {SECONDS} s of processor time, and an interrupt does not stop it"
        return f"the process ended with status {code}"


def _serve(ask: int, told: int, sources: Sources, folder: Path) -> None:
    before = _address_space()
    for line in os.fdopen(ask):
        kind, name = json.loads(line)
        _limit_memory(kind, before)
        case = made_case(kind, name, sources)
        end = int(_processor_time() + 2 * (SECONDS + STOPPING) * len(case.commands))
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        found = [
            (list(outcome.arguments), fault)
            for outcome in outcomes(case, folder)
            for fault in faults(outcome)
        ]
        os.write(told, json.dumps(found).encode() + b"\n")


def _limit_memory(kind: str, before: int) -> None:
    """Limit the address space; the threads of ArrayRecord's reader hang where they get none."""
    if before:
        limit = before + MEMORY * (4 if kind == "record files" else 1)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def _address_space() -> int:
    """Return the bytes of address space in use, 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def outcomes(case: Case, parent: Path) -> Iterator[Outcome]:
    """Yield what each command of a case leaves behind, in a folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(dir=parent))
    home = os.environ.copy()
    try:
        os.chdir(folder)
        write_files(case, folder)
        Path("home").mkdir()
        os.environ.update({"HOME": "home", **case.env})
        for arguments in case.commands:
            yield _outcome(arguments, case)
    finally:
        os.environ.clear()
        os.environ.update(home)
        os.chdir(parent)
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(arguments: Sequence[str], case: Case) -> Outcome:
    before = _contents()
    # Not files of the folder, so that only what the command writes appears in it.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        raised, code, seconds = None, None, _processor_time()
        with _streams(out, err, case.stdin), _interrupted_in_time() as interrupts:
            try:
                code = _run(arguments)
            except BaseException as error:
                raised = f"{type(error).__name__}: {error}"[:200]
        seconds = _processor_time() - seconds
        after = _contents()
        return Outcome(
            arguments=arguments,
            exit_code=code,
            stdout=_read(out),
            stderr=_read(err),
            seconds=seconds,
            new_files=frozenset(after.keys() - before.keys()),
            changed=frozenset(name for name in before if after.get(name) != before[name]),
            raised=raised,
            interrupted=bool(interrupts),
            must_fail=case.edited,
        )


@contextlib.contextmanager
def _interrupted_in_time() -> Iterator[list[int]]:
    """Interrupt what takes too long, as Ctrl-C does; the list says whether that was done."""
    done: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        done.append(number)
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield done
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _run(arguments: Sequence[str]) -> int:
    if arguments[0] == READ_POSITION:
        return _read_position(arguments[1])
    from shardctl.cli.main import main

    try:
        main(arguments)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else -1
    raise AssertionError("main() exits")


def _read_position(path: str) -> int:
    from shardctl.errors import ShardctlError
    from shardctl.saved.position_file import read_position

    try:
        read_position(path)
    except ShardctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def _streams(out: Any, err: Any, stdin: bytes) -> Iterator[None]:
    """Let stdin, stdout and stderr be files, for Python and for what it calls."""
    saved = sys.stdin, sys.stdout, sys.stderr
    copies = [os.dup(number) for number in range(3)]
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        for number, file in enumerate((given, out, err)):
            os.dup2(file.fileno(), number)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(
                io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8", errors=errors
            )
            for number, errors in ((1, "strict"), (2, "backslashreplace"))
        )
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            sys.stdin, sys.stdout, sys.stderr = saved
            for number, copy in enumerate(copies):
                os.dup2(copy, number)
                os.close(copy)


def _contents() -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def _read(file: Any) -> bytes:
    file.seek(0)
    data: bytes = file.read(1 << 26)
    return data


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
