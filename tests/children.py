"""Programs that tests start and send signals to."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tests.forked_scripts import ForkedScript, Ran, forking_commands, forking_python

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

_PATIENCE = "from shardctl.cli import output; from shardctl.cli.main import main; output._PATIENCE="


def start(arguments: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program that signals end, even if this process ignores them (`nohup`, `trap ""`).

    A program inherits what its parent ignores, and Python turns SIGINT into KeyboardInterrupt only
    if it is not ignored at start. What the parent handles is reset to the default in the child.
    """
    before = {number: signal.signal(number, _handle) for number in ENDING}
    try:
        return subprocess.Popen(arguments, **options)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def first_line(process: subprocess.Popen[bytes], *, seconds: float = 300) -> bytes:
    """Wait for the first line on stderr; kill a program that says none in time."""
    assert process.stderr is not None
    limit = threading.Timer(seconds, process.kill)
    limit.start()
    try:
        return process.stderr.readline()
    finally:
        limit.cancel()


def run_command(
    *arguments: str | Path, folder: Path, stdin: int | None = None, **environment: str
) -> Ran:
    """Run a command in a process that begins with the command line loaded."""
    command = ["-m", "shardctl", *arguments]
    (ran,) = forking_commands().run([command], folder, stdin=stdin, environments=[environment])
    return ran


@dataclass(frozen=True, kw_only=True)
class Running:
    """A command that runs, and the ends of its pipes."""

    process: ForkedScript
    stdout: BinaryIO
    stderr: BinaryIO


# Says so on stderr once an interrupt is caught: before that Python itself would answer.
_UP = (
    "import sys; from shardctl.cli import main as cli; run = cli._run\n"
    "cli._run = lambda words: sys.stderr.write('up\\n') and run(words)\n"
    "cli.main(sys.argv[1:])"
)


@contextlib.contextmanager
def running_command(
    *arguments: str | Path, folder: Path, to: str | None = None
) -> Iterator[Running]:
    """Start a command that an interrupt ends, in a process with the command line loaded.

    It is killed where it still runs at the end of the block. to: the file that gets its stdout.
    """
    (out, its_out), (errors, its_errors) = os.pipe(), os.pipe()
    with open(out, "rb") as stdout, open(errors, "rb") as stderr:
        with (
            open(its_out, "wb") as pipe,
            open(its_errors, "wb") as said,
            open(to or os.devnull, "wb") as file,
        ):
            process = forking_commands().start(
                ["-c", _UP, *arguments],
                stdout=(file if to else pipe).fileno(),
                stderr=said.fileno(),
                folder=folder,
            )
        try:
            assert stderr.readline() == b"up\n"
            yield Running(process=process, stdout=stdout, stderr=stderr)
        finally:
            process.kill()
            process.wait()


def write_program(path: Path, text: str) -> None:
    """Write a program of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def write_shardctl(path: Path) -> None:
    """Write a program `shardctl`, whose process begins with the command line loaded."""
    write_program(path, f'{asking(forking_commands().address)} -m shardctl "$@"')


def asking(address: str) -> str:
    """Return the words of a shell to which those of a script are added, which is forked."""
    program = Path(__file__).with_name("forked_program.py")
    return f'exec "{sys.executable}" -ISs "{program}" "{address}"'


def run_on_a_terminal(
    *arguments: str,
    columns: int = 60,
    loaded: bool = False,
    patience: float | None = None,
    **environment: str,
) -> tuple[str, str]:
    """Return what a command writes to a terminal as stdout, and as stderr.

    loaded: whether its process begins with TensorFlow loaded; it has the command line in any case.
    patience: the seconds after which work shows how far it is, if they are others than usual.
    """
    import fcntl
    import pty
    import struct
    import termios

    ends = [pty.openpty() for _ in range(2)]
    for _, end in ends:
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    program = ["-m", "shardctl"] if patience is None else ["-c", f"{_PATIENCE}{patience}; main()"]
    out, error = (end for _, end in ends)
    variables = {**os.environ, "TERM": "xterm", **environment}
    process: subprocess.Popen[bytes] | ForkedScript
    if any(name.startswith("PYTHON") for name in environment):  # which it reads as it starts
        words = [sys.executable, *program, *arguments]
        process = subprocess.Popen(words, stdout=out, stderr=error, env=variables)
    else:
        python = forking_python() if loaded else forking_commands()
        words = [*program, *arguments]
        process = python.start(words, stdout=out, stderr=error, environment=variables)
    with selectors.DefaultSelector() as selector:
        for read_end, write_end in ends:
            os.close(write_end)
            selector.register(read_end, selectors.EVENT_READ)
        written = {read_end: b"" for read_end, _ in ends}
        while selector.get_map():
            for key, _ in selector.select():
                try:
                    piece = os.read(key.fd, 1 << 16)
                except OSError:  # the other end is closed
                    piece = b""
                written[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    assert process.wait(60) == 0
    shown, told = (data.decode().replace("\r\n", "\n") for data in written.values())
    return shown, told


def _handle(number: int, frame: object) -> None:
    raise KeyboardInterrupt
