"""Temporary files beside a target: few known names, each locked by the process that writes it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

NUM_NAMES = 8  # writers of one target at the same moment; one more waits for one of them
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
    while made is None:
        names = list(temporary_names(target))
        for name in names:
            if made is None:
                made = _made(name)
            else:
                _remove_dead(name)
        if made is None:
            _wait_for(names[os.getpid() % NUM_NAMES])
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


def _wait_for(path: str) -> None:
    """Wait until the process that writes a file is done with it, and remove what it left.

    Raises:
        OSError: the file stays, since it is not ours or files have no locks here.
    """
    import fcntl

    try:
        handle = os.open(path, _TO_LOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _in_the_way(path, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if _has_name(handle, path):
            os.unlink(path)
    except OSError as error:
        raise _in_the_way(path, error) from None
    finally:
        os.close(handle)


def _in_the_way(path: str, error: OSError) -> OSError:
    text = f"{os.path.basename(path)} is in the way and stays ({error.strerror}); remove it"
    return FileExistsError(error.errno, text)


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
