"""A Python process of our own: pickles go to its stdin and come from its stdout.

It is started with `python -c`, not forked: a fork of a process with threads, as one that has loaded
TensorFlow, may hang; and not as multiprocessing spawns one, which runs the caller's script again
where it has no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

# Where modules are found comes as a first line: a thousand folders of Bazel are no argument.
# It is read without a buffer, which would take of the messages behind it.
_PROGRAM = """
import sys
path = bytes.fromhex(open(0, "rb", 0, closefd=False).readline().decode())
sys.path[:] = path.decode("utf-8", "surrogatepass").split(chr(0))
from {module} import main
main()
"""
_HERE = str(Path(__file__).parents[4])  # the folder that shardctl is in
# What comes before it is nobody's answer: a sitecustomize.py or a .pth file prints.
_BEGIN = b"\0shardctl begins\0"


def start_child(module: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that runs `main` of a module once it is told to begin.

    It never sees Ctrl-C, which is for the one that ends it.

    Raises:
        OSError: it cannot be started.
    """
    blocked = None
    if hasattr(signal, "pthread_sigmask"):  # which the process inherits
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(  # noqa: S603  # this very Python, a fixed program
            [sys.executable, "-P", "-c", _PROGRAM.format(module=module)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **options,
        )
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def begin(child: subprocess.Popen[bytes]) -> None:
    """Let a process begin, and wait until it has; it finds modules where this one does.

    Raises:
        EOFError, OSError: it ended before.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    # What is no text in the path Python ignores too. This package is found where "" or "src" in it
    # means a folder that was left since.
    folders: list[object] = [*sys.path, _HERE]
    path = "\0".join(folder for folder in folders if isinstance(folder, str))
    child.stdin.write(f"{path.encode('utf-8', 'surrogatepass').hex()}\n".encode())
    child.stdin.flush()
    seen = b""
    while not seen.endswith(_BEGIN):
        more = child.stdout.read(1)
        if not more:
            raise EOFError
        seen = (seen + more)[-len(_BEGIN) :]


def connected(at_end: Callable[[], None]) -> tuple[queue.SimpleQueue[Any], IO[bytes]]:
    """Return what comes to this process and where its answers go; its `main` begins with it.

    at_end: is called where nothing more comes, while a message is worked at too, so that no process
        is left behind by a parent that is killed.
    """
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a library prints must not get among the answers
    target.write(_BEGIN)
    target.flush()
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def read_ahead() -> None:
        try:
            while True:
                messages.put(receive(source))
        except EOFError:
            at_end()

    threading.Thread(target=read_ahead, daemon=True).start()
    return messages, target


def send(file: IO[bytes] | None, message: object) -> None:
    """Write one message, behind its length."""
    assert file is not None
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def receive(file: IO[bytes] | None) -> Any:
    """Read one message.

    Raises:
        EOFError: the other side has ended.
    """
    assert file is not None
    head = file.read(8)
    data = file.read(int.from_bytes(head, "little"))
    if len(head) < 8 or len(data) < int.from_bytes(head, "little"):
        raise EOFError
    return pickle.loads(data)  # noqa: S301  # from our own process, by a pipe
