"""Files written whole or not at all, whatever interrupts the writing."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from shardctl.base.text import printable, quoted
from shardctl.errors import UsageError

# /dev/stdout may be a file that holds more already (`>> log`): it is written on, not replaced.
_OPEN_FILE = re.compile(r"/dev/std(out|err)|/(dev|proc/self)/fd/[0-9]+")
_IN_PLACE = stat.S_IFCHR


@contextlib.contextmanager
def new_file(path: str, what: str = "") -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and else is removed.

    Of a link, the file that it leads to is replaced, and the link stays. A pipe or a device is
    written in place; a pipe without a reader is refused. An interrupt, a hang-up and SIGTERM
    remove the file as an error does; SIGKILL leaves `.NAME.shardctl-..` beside the target. In
    errors `what` names what is written, where that is more than the file.

    Raises:
        UsageError: the file cannot be written; what was there before is untouched.
    """
    mode = None
    with _failing(path, what, ValueError), contextlib.suppress(FileNotFoundError):
        mode = _IN_PLACE if _OPEN_FILE.fullmatch(path) else os.stat(path).st_mode
    # A pipe or a device cannot be replaced by a file.
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        if stat.S_ISBLK(mode):
            raise _unwritable(path, what, "it is a disk")
        try:
            with _opened(path) as file:
                yield file
        except BrokenPipeError:  # its reader has what it wanted
            raise
        except OSError as error:
            raise _unwritable(path, what, _reason(path, error)) from None
        return
    try:
        target = os.path.realpath(path)
    except OSError:  # of the working folder, the only one that it asks for
        raise _unwritable(path, what, "the working folder is gone") from None
    if path.endswith("/") or not path or (mode is not None and stat.S_ISDIR(mode)):
        raise _unwritable(path, what, "it is a folder; name a file")
    if mode is not None and not os.access(target, os.W_OK):
        raise _unwritable(path, what, "it may not be changed")
    with ends_by_exception(), _failing(path, what):
        folder, name = os.path.split(target)
        # In the same folder: `os.replace` is atomic within one file system only.
        handle, temporary = tempfile.mkstemp(prefix=f".{name[:50]}.shardctl-", dir=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
            permissions = stat.S_IMODE(mode) if mode is not None else 0o666 & ~umask()
            os.chmod(temporary, permissions)
            os.replace(temporary, target)
        # Interrupts too: nothing half written may stay, whatever ends the block.
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(folder)


@contextlib.contextmanager
def _failing(path: str, what: str, also: type[Exception] = OSError) -> Iterator[None]:
    try:
        yield
    except (OSError, also) as error:
        raise _unwritable(path, what, _reason(path, error)) from None


def _sync_folder(folder: str) -> None:
    """Bring a new name to the disk, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _opened(path: str) -> BinaryIO:
    if not _OPEN_FILE.fullmatch(path):
        # For a named pipe without a reader this is an error; else it would wait for one.
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(handle, True)
        return os.fdopen(handle, "wb")
    number = {"/dev/stdout": "1", "/dev/stderr": "2"}.get(path, path.rpartition("/")[2])
    # A copy of the descriptor, so that closing it leaves the program's own output open.
    return os.fdopen(os.dup(int(number)), "wb")


@contextlib.contextmanager
def ends_by_exception() -> Iterator[None]:
    """Let the signals that would end the process at once raise, so that files are removed.

    One that a training loop handles itself, or that nohup has ignored, is left as it is.
    """
    import signal  # 4 ms

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    ending = (signal.SIGTERM, signal.SIGHUP)
    changed = [number for number in ending if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, end)
    except ValueError:  # not in the main thread, where no signal arrives
        changed = []
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def umask() -> int:
    # The only way to read it is to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _reason(path: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and "://" in path:
        return "files are written on this machine alone"
    if isinstance(error, FileNotFoundError) and not os.path.isdir(os.path.dirname(path) or "."):
        return f"there is no folder {os.path.dirname(path)}"
    if isinstance(error, ValueError) and "\0" in path:  # each Python says it in other words
        return "a path holds no null character"
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _unwritable(path: str, what: str, reason: str) -> UsageError:
    subject = f"{what} to {quoted(path)}" if what else quoted(path)
    return UsageError(f"cannot write {subject}: {printable(reason)}")
