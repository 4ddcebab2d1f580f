"""Files written whole or not at all, whatever interrupts the writing."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from shardctl.base.text import printable, quoted
from shardctl.errors import UsageError
from shardctl.files.streams import open_fifo_to_write

# /dev/stdout may be a file that holds more already (`>> log`): it is written on, not replaced.
_OPEN_FILE = re.compile(r"/dev/std(out|err)|/(dev|proc/self)/fd/[0-9]+")
_IN_PLACE = stat.S_IFCHR


@contextlib.contextmanager
def new_file(path: str, what: str = "") -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and else is removed.

    Of a link, the file that it leads to is replaced, and the link stays. A pipe or a device is
    written in place; a pipe that nobody reads within seconds is refused. An interrupt, a hang-up
    and SIGTERM remove the file as an error does. A process that is killed with SIGKILL leaves the
    temporary file `.NAME.shardctl-0` beside the target until that is written again (see
    `temporary_file`). In errors `what` names what is written, where that is more than the file.

    Raises:
        UsageError: the file cannot be written; what was there before is untouched.
    """
    try:
        mode = _IN_PLACE if _OPEN_FILE.fullmatch(path) else os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise _unwritable(path, what, _reason(path, error)) from None
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        with _in_place(path, what, mode) as file:
            yield file
        return
    target = _real_path(path, what)
    if path.endswith("/") or not path or (mode is not None and stat.S_ISDIR(mode)):
        raise _unwritable(path, what, "it is a folder; name a file")
    if mode is not None and not os.access(target, os.W_OK):
        raise _unwritable(path, what, "it may not be changed")
    with _ends_by_exception():
        try:
            temporary = temporary_file(target)
        except (OSError, ValueError) as error:
            raise _unwritable(path, what, _reason(path, error)) from None
        try:
            with os.fdopen(temporary.handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(temporary.handle)
            permissions = stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask()
            os.chmod(temporary.path, permissions)
            os.replace(temporary.path, target)
        except BaseException as error:
            temporary.discard()
            if isinstance(error, OSError):
                raise _unwritable(path, what, _reason(path, error)) from None
            raise
        finally:
            temporary.release()
        _sync_folder(os.path.dirname(target))


def _real_path(path: str, what: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # of the working folder, the only one that it asks for
        raise _unwritable(path, what, "the working folder is gone") from None


def _sync_folder(folder: str) -> None:
    """Bring a new name to the disk, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _in_place(path: str, what: str, mode: int) -> Iterator[BinaryIO]:
    if stat.S_ISBLK(mode):
        raise _unwritable(path, what, "it is a disk")
    try:
        with open_fifo_to_write(path) if stat.S_ISFIFO(mode) else _opened(path) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, what, _reason(path, error)) from None


def _opened(path: str) -> BinaryIO:
    if not _OPEN_FILE.fullmatch(path):
        return open(path, "wb")
    number = {"/dev/stdout": "1", "/dev/stderr": "2"}.get(path, path.rpartition("/")[2])
    return os.fdopen(os.dup(int(number)), "wb")


@contextlib.contextmanager
def _ends_by_exception() -> Iterator[None]:
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


def _umask() -> int:
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


# Temporary files beside a target: few known names, each locked by the process that writes it.

NUM_NAMES = 64  # writers of one target at the same moment
# Open for writing too: NFS locks no other file for one process alone (flock(2)).
_TO_LOCK = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class TemporaryFile:
    """An empty file beside a target, open for writing; its lock is held until `release`."""

    path: str
    handle: int
    _lock: int

    def discard(self) -> None:
        """Remove the file, unless it has the name of its target by now."""
        # With its old name gone, that name may be another writer's, which must not lose its file.
        if _has_name(self._lock, self.path):
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def release(self) -> None:
        """Let others have the name; a file that still has it is removed by the next of them."""
        os.close(self._lock)


def temporary_names(target: str) -> Iterator[str]:
    """Yield the names that the temporary files of a target may have.

    >>> next(temporary_names("/ckpt/position.json"))
    '/ckpt/.position.json.shardctl-0'
    """
    folder, name = os.path.split(target)
    for number in range(NUM_NAMES):
        # Targets whose names begin alike share names, and so a lock: they take turns.
        yield os.path.join(folder, f".{name[:50]}.shardctl-{number}")


def temporary_file(target: str) -> TemporaryFile:
    """Return a new temporary file for a target, and remove those that dead processes left.

    A file without a lock belongs to no process: the system drops the lock of one that is killed,
    whatever became of its process id since, in whichever container. A file system without locks
    keeps what is left, up to `NUM_NAMES` files.

    Raises:
        OSError: no file can be made there, or all names are taken by files that stay.
    """
    made: TemporaryFile | None = None
    for name in temporary_names(target):
        if made is None:
            made = _made(name)
        else:
            _remove_dead(name)
    if made is None:
        names = f"{os.path.basename(next(temporary_names(target)))} and others like it"
        raise FileExistsError(errno.EEXIST, f"{names} are in the way; remove them")
    return made


def _made(path: str) -> TemporaryFile | None:
    """Return a new file of a name, None where another process has the name."""
    _remove_dead(path)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return None
    try:
        # Before the lock is there another process may take the file for one that was left.
        if _is_locked(handle) is False or not _has_name(handle, path):
            os.close(handle)
            return None
        # A lock belongs to the opened file, not to its number: closing `handle` keeps it.
        return TemporaryFile(path=path, handle=handle, _lock=os.dup(handle))
    except BaseException:
        os.unlink(path)
        os.close(handle)
        raise


def _remove_dead(path: str) -> None:
    """Remove a file that no process has locked; one that may not be opened or removed stays."""
    with contextlib.suppress(OSError):
        handle = os.open(path, _TO_LOCK)
        try:
            regular = stat.S_ISREG(os.fstat(handle).st_mode)
            if regular and _is_locked(handle) and _has_name(handle, path):
                os.unlink(path)
        finally:
            os.close(handle)


def _is_locked(handle: int) -> bool | None:
    """Lock a file and return True; False where another process has, None without locks here."""
    import fcntl  # 1 ms

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _has_name(handle: int, path: str) -> bool:
    """Return whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
