"""The one place that writes: data to stdout or to a file, everything else to stderr."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from shardctl.core.text import choices, printable, quoted
from shardctl.errors import ShardctlError, UsageError
from shardctl.rendering.text.screen import Screen


def check_format(chosen: str, *formats: str) -> None:
    """Refuse a format that the command does not write."""
    if chosen not in formats:
        raise UsageError(f"no format {quoted(chosen)} here; choose from {choices(formats)}")


def screen(output: str | None) -> Screen:
    """Return what the place the answer goes to can show: a terminal's width and colour."""
    if output not in (None, "-") or sys.stdout is None or not sys.stdout.isatty():
        return Screen()
    import shutil  # 3 ms

    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Screen(width=max(shutil.get_terminal_size().columns, 20), color=not plain)


Chunk = str | bytes | memoryview


def write(chunks: Iterable[Chunk], output: str | None, *, num_bytes: int | None = None) -> None:
    """Write the chunks to a file, whole or not at all, or to stdout, which `-` names too.

    `num_bytes` is the size of a file that is an array, see `new_file`.

    Raises:
        UsageError: the file cannot be written; what stood there before is untouched.
        BrokenPipeError: whoever read stdout has left.
    """
    if output in (None, "-"):
        _to_stdout(chunks)
        return
    with new_file(output, num_bytes=num_bytes) as file:
        for chunk in chunks:
            file.write(_encoded(chunk) if isinstance(chunk, str) else chunk)


@contextlib.contextmanager
def new_file(path: str, *, num_bytes: int | None = None) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and else is removed.

    Behind a link stands the file to replace, and the link stays. A pipe or a device is written in
    place. An interrupt, a hang-up and SIGTERM remove the file as an error does. With `num_bytes`
    the room for it is taken first, which is how numpy.save is fast, and the bytes are left to the
    system to bring to the disk: an array is made again in no time.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        with _in_place(path) as file:
            yield file
        return
    target = os.path.realpath(path)
    if path.endswith("/") or not path or (mode is not None and stat.S_ISDIR(mode)):
        raise UsageError(f"cannot write {quoted(path)}: it is a folder; name a file")
    if mode is not None and not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {quoted(path)}: it may not be changed")
    with _ends_by_exception():
        try:
            handle, temporary = _temporary_beside(target)
        except (OSError, ValueError) as error:
            raise _unwritable(path, error) from None
        try:
            with os.fdopen(handle, "wb") as file:
                if num_bytes:
                    _reserve(handle, num_bytes)
                yield file
                file.flush()
                if num_bytes is None:
                    os.fsync(handle)
                else:
                    file.truncate()
            os.chmod(temporary, stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError):
                raise _unwritable(path, error) from None
            raise


def _reserve(handle: int, num_bytes: int) -> None:
    """Take the room for a file where the file system can; a full disk shows at once."""
    import errno

    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, num_bytes)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise


def _temporary_beside(target: str) -> tuple[int, str]:
    import tempfile  # 3 ms

    name = os.path.basename(target)[:50]
    return tempfile.mkstemp(prefix=f".{name}.", dir=os.path.dirname(target))


@contextlib.contextmanager
def _in_place(path: str) -> Iterator[BinaryIO]:
    try:
        with open(path, "wb") as file:
            yield file
    except OSError as error:
        raise _unwritable(path, error) from None


@contextlib.contextmanager
def _ends_by_exception() -> Iterator[None]:
    """Let the signals that would end the process at once raise, so that files are removed."""
    import signal

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    try:
        before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    except ValueError:  # not in the main thread, where no signal arrives
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _unwritable(path: str, error: Exception) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, FileNotFoundError) and not os.path.isdir(os.path.dirname(path) or "."):
        reason = f"there is no folder {os.path.dirname(path)}"
    return UsageError(f"cannot write {quoted(path)}: {printable(reason)}")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _to_stdout(chunks: Iterable[Chunk]) -> None:
    if sys.stdout is None:
        raise UsageError("cannot write to stdout: it is closed; name a file with --output")
    stdout = sys.stdout.buffer
    for chunk in chunks:
        with _on_stdout():
            stdout.write(_encoded(chunk) if isinstance(chunk, str) else chunk)
    with _on_stdout():
        stdout.flush()


@contextlib.contextmanager
def _on_stdout() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write to stdout: {error.strerror or error}") from None


def warn(messages: Iterable[str]) -> None:
    """Say each thing that surprises, once, on stderr."""
    for message in dict.fromkeys(messages):
        say(f"warning: {message}")


def say(line: str) -> None:
    """Write one line to stderr, in silence where there is none or nobody reads it."""
    line = printable(line, 2000)
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            encoding = sys.stderr.encoding or "ascii"
            line = line.encode(encoding, "backslashreplace").decode(encoding)
            print(line, file=sys.stderr, flush=True)  # noqa: T201  # the one place that prints


def fail(error: ShardctlError | str) -> None:
    """Write the one line that every failure gets."""
    say(f"error: {' '.join(str(error).split())}")
