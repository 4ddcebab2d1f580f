"""Programs that tests start and send signals to."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
