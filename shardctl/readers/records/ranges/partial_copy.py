"""A local file with what is needed of a remote one, for libraries that open files themselves."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator

from shardctl.core.text import quoted
from shardctl.errors import DatasetError
from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import Told, untold

_PIECE = 1 << 23
_LEFT = 1 << 28  # bytes of the disk that are left to others
_LARGE = 1 << 24
_at_once = threading.BoundedSemaphore(2)  # large copies, however many files are counted at once


@contextlib.contextmanager
def partial_copy(
    source: ByteSource, start: int, stop: int, *, told: Told = untold
) -> Iterator[str]:
    """Give the path of a temporary file as long as the source, with its bytes [start, stop).

    The rest is a hole, which takes no room and reads as zeros; whoever opens it has to notice zeros
    by checksums. Two large copies are made at a time, no more.

    Raises:
        DatasetError: the disk of temporary files has too little room.
    """
    with contextlib.ExitStack() as stack:
        if stop - start > _LARGE:
            stack.enter_context(_at_once)
        folder = tempfile.gettempdir()
        if shutil.disk_usage(folder).free < stop - start + _LEFT:
            raise DatasetError(
                f"its library reads local files alone, and {quoted(folder, 200)} has no room for "
                f"{stop - start} bytes of it; TMPDIR may name another folder"
            )
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="shardctl-"))
        copy.truncate(source.num_bytes)
        copy.seek(start)
        for begin in range(start, stop, _PIECE):
            piece = source.read(begin, min(begin + _PIECE, stop))
            copy.write(piece)
            told(len(piece))
        copy.flush()
        yield copy.name
