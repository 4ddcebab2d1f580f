"""Several files of one folder put into another, all or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from shardctl.core.phrase import phrase
from shardctl.core.text import choices, printable, quoted
from shardctl.errors import UsageError
from shardctl.files.atomic import new_file
from shardctl.files.stores.stores import is_remote
from shardctl.tfds.imports import tensorflow_datasets


def place_files(made: Path, folder: str, *, last: str, force: bool) -> list[str]:
    """Put the files of `made` into a folder, one of them last, and return the names of them all.

    A file that is there with the same contents stays as it is. Where one cannot be written, those
    before it are as they were.

    Raises:
        UsageError: other files of these names are there, and `force` was not said; or one cannot
            be written.
    """
    names = sorted(os.listdir(made), key=lambda name: (name == last, name))
    target: _Folder = _Remote(folder) if is_remote(folder) else _Local(folder)
    contents = {name: (made / name).read_bytes() for name in names}
    there = {name: target.read(name) for name in names}
    changed = [name for name in names if there[name] != contents[name]]
    in_the_way = [name for name in changed if there[name] is not None]
    if in_the_way and not force:
        raise UsageError(
            phrase(
                "{} has {} already, of other contents; {force=True} replaces what is there",
                quoted(folder, 200),
                choices(in_the_way),
            )
        )
    done: list[str] = []
    try:
        for name in changed:
            done.append(name)
            target.write(name, contents[name])
    except BaseException:
        for name in reversed(done):
            with contextlib.suppress(Exception):
                target.restore(name, there[name])
        raise
    return names


class _Local:
    """A folder of this machine, whose files are replaced whole."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        path = os.path.join(self._folder, name)
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(f"cannot write {quoted(path, 200)}: {error.strerror}") from None

    def write(self, name: str, data: bytes) -> None:
        with new_file(os.path.join(self._folder, name)) as file:
            file.write(data)

    def restore(self, name: str, data: bytes | None) -> None:
        if data is None:
            os.unlink(os.path.join(self._folder, name))
        else:
            self.write(name, data)


class _Remote:
    """A folder that epath reaches, as TFDS does; an object is there whole or not at all."""

    def __init__(self, folder: str) -> None:
        epath = tensorflow_datasets("core.utils.file_utils").epath
        self._path = epath.Path(folder)
        self._folder = folder

    @contextlib.contextmanager
    def _failing(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            lines = str(error).strip().splitlines()
            said = printable(lines[0] if lines else type(error).__name__, 200)
            raise UsageError(f"cannot write {quoted(self._folder, 200)}/{name}: {said}") from error

    def read(self, name: str) -> bytes | None:
        try:
            with self._failing(name):
                data: bytes = (self._path / name).read_bytes()
                return data
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with self._failing(name):
            (self._path / name).write_bytes(data)

    def restore(self, name: str, data: bytes | None) -> None:
        if data is None:
            (self._path / name).unlink()
        else:
            self.write(name, data)


_Folder = _Local | _Remote
