"""Files and folders wherever they are: paths, a store for each place, the disks of this machine.

Remote places are reached as fsspec reaches them, whose file systems `etils.epath` uses too:
`pip install tensorflow-datasets` brings fsspec along (etils[epath] asks for it), and a login that
works for one works for the other. Not through epath itself: it tells no versions and reads no
ranges, only files that read ahead; and where TensorFlow is installed it asks tf.io.gfile instead,
which knows gs:// alone.

Paths are whole texts here, `gs://bucket/a` or `/data/a`: `pathlib.Path` makes one slash of two.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import re
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from shardctl.base.text import public_url, quoted
from shardctl.errors import DatasetError, NotThereError
from shardctl.stores.store import Store, StoredFile

MAX_FILE_BYTES = 1 << 30  # of a file read as a whole; a million shards take about 20 MB
_AT_ONCE = 16  # requests
_PIECE = 1 << 20
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def store_of(path: AnyPath | str) -> Store:
    """Return the store of a path, by its scheme.

    Raises:
        MissingDependencyError: the package that reaches the place is not installed.
        DatasetError: an unknown scheme, or several schemes.
    """
    scheme = scheme_of(str(path))
    if scheme is None:
        return _DISKS
    return _remote(scheme)


@cache
def _remote(scheme: str) -> Store:
    """Return the store of a scheme; its libraries are imported when it is first asked.

    It is asked by public paths, and by what was given with them: so no path that comes out of it,
    into a message, a cache or a file, has a password.
    """
    if scheme in _WEB:
        from shardctl.stores.web_server import WebServerStore

        return WebServerStore()
    from shardctl.stores.fsspec_store import FsspecStore

    return FsspecStore(scheme)


# What lies at a path of either kind; each raises DatasetError where a place cannot be asked.


def read_file(path: AnyPath, *, max_num_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file, of at most `max_num_bytes`."""
    return store_of(path).read(str(path), max_num_bytes=max_num_bytes)


def is_file(path: AnyPath) -> bool:
    """Return whether a file is at a path."""
    return store_of(path).status(str(path)) is not None


def is_folder(path: AnyPath) -> bool:
    """Return whether a folder is at a path, or objects whose names begin so."""
    return store_of(path).is_folder(str(path))


def subfolders(folder: AnyPath) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones."""
    return store_of(folder).subfolders(str(folder))


def files_in(folder: AnyPath) -> Iterator[StoredFile]:
    """Yield the files right in a folder, in no order."""
    return store_of(folder).scan(str(folder))


def listed(ask: Callable[[AnyPath], Iterable[Item]], folder: AnyPath) -> list[Item]:
    """Return what `ask` finds in a folder, as `files_in`; nothing where it is not there.

    Nor of a local one that cannot be listed. Of a remote one that cannot be asked it is not known
    whether it has what is looked for.

    Raises:
        DatasetError: a remote folder that cannot be listed.
    """
    try:
        return list(ask(folder))
    except DatasetError as error:
        if isinstance(folder, RemotePath) and not isinstance(error, NotThereError):
            raise
        return []


def answers(
    ask: Callable[[Item], Answer], about: Iterable[Item], *, at_once: bool
) -> Generator[Answer]:
    """Yield the answers to many questions in their order.

    Those about remote files are asked several `at_once`, since each waits for the network.
    """
    if not at_once:
        yield from map(ask, about)
        return
    from shardctl.stores.concurrently import concurrently

    yield from concurrently(ask, about, at_once=_AT_ONCE)


class LocalSource:
    """An open file of a disk."""

    def __init__(self, file: BinaryIO, path: str, num_bytes: int) -> None:
        self._file = file
        self.local_path: str | None = path
        self.num_bytes = num_bytes

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop), fewer where the file became shorter."""
        self._file.seek(start)
        return self._file.read(stop - start)


class LocalStore:
    """Files and folders of this machine, by their paths; see `Store`."""

    def status(self, path: str) -> StoredFile | None:
        """Return the regular file at a path."""
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            return None
        return _stored(path, found) if stat.S_ISREG(found.st_mode) else None

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        return os.path.isdir(path)

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the regular files right in a folder."""
        with reading(folder, "no such folder"), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat()
                    if stat.S_ISREG(found.st_mode):
                        yield _stored(entry.path, found)

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders right in a folder."""
        names = []
        with reading(folder, "no such folder"), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # links in a circle
                    if entry.is_dir() and not entry.name.startswith("."):
                        names.append(entry.name)
        return sorted(names)

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a regular file.

        A pipe or a device is refused before it is opened: opening or reading it could wait forever.
        No more memory is asked for than the file has bytes; one that grows is read to its end.
        """
        shown = quoted(path, 200)
        with reading(path):
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                raise DatasetError(f"{shown} is a folder; a file is needed here")
            if not stat.S_ISREG(mode):
                raise DatasetError(f"{shown} is a pipe, a socket or a device; it must be a file")
            with Path(path).open("rb") as file:
                data = _content(file, max_num_bytes)
        if data is None:
            raise DatasetError(
                f"{shown} is larger than {max_num_bytes} bytes, the most read as text"
            )
        return data

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[LocalSource]:
        """Open a file; one that changed since it was listed is refused, before and after."""
        with reading(file.path):
            # What was put there since then, a FIFO, must not be waited for.
            opened = open(os.open(file.path, _OPEN), "rb", buffering=0)  # noqa: SIM115
        with opened:
            # Of the open file itself, so that nothing can come between the look and the reading.
            _check_same(file, os.fstat(opened.fileno()))
            yield LocalSource(opened, file.path, file.num_bytes)
        # By its path: libraries open it themselves, and another file may be there by now.
        try:
            found = os.stat(file.path)
        except OSError as error:
            raise DatasetError(f"{quoted(file.path, 200)} vanished while it was read") from error
        _check_same(file, found)


_DISKS = LocalStore()


@contextlib.contextmanager
def reading(path: str, missing: str = "no such file") -> Iterator[None]:
    """Make what the system says of a path a DatasetError of one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotThereError(f"cannot read {quoted(path, 200)}: {missing}") from error
    except OSError as error:
        raise DatasetError(f"cannot read {quoted(path, 200)}: {os_reason(error)}") from error
    except ValueError as error:
        message = f"cannot read {quoted(path, 200)}: no path holds a NUL character"
        raise DatasetError(message) from error


def os_reason(error: OSError) -> str:
    """Return what went wrong in a few words, in lower case as in the middle of a sentence."""
    if error.errno is None:
        return "it cannot be opened"
    return "no such file" if error.errno == errno.ENOENT else os.strerror(error.errno).lower()


def _content(file: BinaryIO, max_num_bytes: int) -> bytes | None:
    """Return the bytes of an open file, None where they are more than `max_num_bytes`."""
    size = os.fstat(file.fileno()).st_size
    if size > max_num_bytes:
        return None
    # One more byte than it has shows in one call whether it grew.
    data = file.read(size + 1)
    if len(data) <= size:
        return data
    pieces, num_bytes = [data], len(data)  # it grows, or lies in /proc, where no file has a size
    while num_bytes <= max_num_bytes and (piece := file.read(_PIECE)):
        pieces.append(piece)
        num_bytes += len(piece)
    return b"".join(pieces) if num_bytes <= max_num_bytes else None


def _check_same(file: StoredFile, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or _stored(file.path, found) != file:
        raise DatasetError(f"{quoted(file.path, 200)} changed while it was read")


def _stored(path: str, found: os.stat_result) -> StoredFile:
    return StoredFile(path=path, num_bytes=found.st_size, version=f"mtime:{found.st_mtime_ns}")


# Paths of this machine and URLs: their parts, and how one is made of another.

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>[^/]*)(?P<path>.*)", re.DOTALL)
_WEB = ("http", "https")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(::.*)?://")
_ONE_SLASH = re.compile(r"(?:^|/)[a-z][a-z0-9]+:/[^/]")
A_SLASH_LOST = "a URL has two slashes, of which pathlib makes one: give it as text"
_PLAIN = "/!$&'()*+,;=:@~"  # what a path on the web has as it is, besides letters and digits


class RemotePath:
    """A place behind a URL: `gs://bucket/mnist/3.0.1`, `hf://datasets/me/mnist`.

    What is behind `scheme://bucket` goes by the rules of POSIX paths, and `..` does not leave it.
    Passwords, and the query of a web address, are no part of it; see `public_url`. There is no
    `__fspath__`: whatever asks the operating system for such a path is refused by Python and mypy.

    >>> folder = RemotePath("gs://bucket/mnist/3.0.1/")
    >>> str(folder / "dataset_info.json"), folder.name, str(folder.parent)
    ('gs://bucket/mnist/3.0.1/dataset_info.json', '3.0.1', 'gs://bucket/mnist')
    >>> str(folder / "../../../../x"), str(RemotePath("https://data.example/a?key=1") / "a b.json")
    ('gs://bucket/x', 'https://data.example/a/a%20b.json')

    Raises:
        ValueError: the text names no scheme.
        DatasetError: it chains several.
    """

    __slots__ = ("_path", "_root")

    def __init__(self, url: str) -> None:
        match = _URL.fullmatch(public_url(url))
        if match is None:
            scheme_of(url)
            raise ValueError(f"{url!r} is no URL")
        # The bucket is kept apart from the path, so that no `..` can leave it.
        self._root = f"{match['scheme'].lower()}://{match['place']}"
        self._path = _inside(PurePosixPath("/" + match["path"].lstrip("/")))

    def _with(self, path: PurePosixPath) -> RemotePath:
        made = object.__new__(RemotePath)
        made._root, made._path = self._root, _inside(path)
        return made

    @property
    def scheme(self) -> str:
        """What is before `://`, in lower case."""
        return self._root.partition("://")[0]

    @property
    def name(self) -> str:
        """The last part behind the bucket, "" of the bucket itself."""
        return self._read(self._path.name)

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """What the name ends with, from its last dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        """The folder that it is in; of a bucket itself."""
        return self._with(self._path.parent)

    def __truediv__(self, below: str) -> RemotePath:
        if self.scheme not in _WEB:
            return self._with(self._path / below)
        from urllib.parse import quote  # 2 ms

        return self._with(self._path / quote(below, safe=_PLAIN))

    def _read(self, written: str) -> str:
        """Return a part of the path as what it names: addresses of the web have `%20` in them."""
        if self.scheme not in _WEB:
            return written
        from urllib.parse import unquote

        return unquote(written)

    def relative_to(self, folder: RemotePath) -> str:
        """Return the way from a folder above, in POSIX form.

        >>> RemotePath("s3://b/tfds/mnist/3.0.1").relative_to(RemotePath("s3://b/tfds"))
        'mnist/3.0.1'

        Raises:
            ValueError: it is not below that folder.
        """
        if self._root != folder._root:
            raise ValueError(f"{str(self)!r} is not below {str(folder)!r}")
        return self._read(str(self._path.relative_to(folder._path)))

    def __str__(self) -> str:
        path = "" if self._path == _ROOT and self._root.rpartition("/")[2] else str(self._path)
        return f"{self._root}{path}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, RemotePath) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


AnyPath = Path | RemotePath
_ROOT = PurePosixPath("/")


def _inside(path: PurePosixPath) -> PurePosixPath:
    """Return an absolute path without `..`, which names of objects do not have."""
    return PurePosixPath(posixpath.normpath(path)) if ".." in path.parts else path


def path_of(text: str, folder: AnyPath | None = None) -> AnyPath:
    """Return the path that a text names, seen from a folder, else from the working folder.

    >>> path_of("gs://bucket/a", Path("/data")), path_of("../b", RemotePath("gs://bucket/a"))
    (RemotePath('gs://bucket/a'), RemotePath('gs://bucket/b'))
    >>> path_of("file:///data/mnist").as_posix(), path_of("mnist", Path("/data")).as_posix()
    ('/data/mnist', '/data/mnist')
    """
    match = _URL.fullmatch(text)
    if match is not None and match["scheme"].lower() == "file":
        return Path(match["path"] or "/")
    if match is not None:
        return RemotePath(text)
    if isinstance(folder, RemotePath):
        return Path(text) if os.path.isabs(text) else folder / text
    return Path(text) if folder is None else folder / text


def way_below(folder: AnyPath, path: AnyPath) -> str:
    """Return the way from a folder to a path below it.

    >>> way_below(RemotePath("s3://b/tfds"), RemotePath("s3://b/tfds/mnist/3.0.1"))
    'mnist/3.0.1'
    """
    if isinstance(folder, RemotePath) and isinstance(path, RemotePath):
        return path.relative_to(folder)
    return os.path.relpath(str(path), str(folder))


def file_in(data_dir: str, name: str) -> str:
    """Return the path of a file of a data dir; `name` may have folders in it.

    >>> file_in("gs://bucket/mnist", "a.tfrecord")
    'gs://bucket/mnist/a.tfrecord'
    """
    path = path_of(data_dir)
    return str(path / name) if isinstance(path, RemotePath) else os.path.join(data_dir, name)


def name_of(path: str) -> str:
    """Return the name of a file as a listing has its path.

    >>> name_of("/data/a.txt"), name_of("https://host/a%20b.txt?key=1")
    ('a.txt', 'a b.txt')
    """
    return RemotePath(path).name if _URL.match(path) else os.path.basename(path)


def scheme_of(path: str) -> str | None:
    """Return the scheme of a URL, None of a path of this machine.

    Raises:
        DatasetError: there are several.
    """
    found = _SCHEME.match(path)
    if found is not None and found[2]:
        from shardctl.stores.failures import chained

        raise DatasetError(chained(path))
    return None if found is None else found[1].lower()


def is_remote(path: str) -> bool:
    """Return whether a path names its scheme.

    >>> is_remote("gs://bucket/data"), is_remote("data/mnist")
    (True, False)
    """
    return _SCHEME.match(path) is not None


def has_lost_a_slash(path: str) -> bool:
    """Return whether a path, or one made absolute, is what pathlib makes of a URL.

    >>> [has_lost_a_slash(path) for path in ("gs:/bucket/a", "/home/me/s3:/bucket", "C:/a", "a:b")]
    [True, True, False, False]
    """
    return _ONE_SLASH.search(path) is not None


def as_bytes(text: str) -> bytes:
    """Return the bytes of a path, by which TensorFlow and `LC_ALL=C ls` sort.

    >>> sorted(["Z", "a", "é"], key=as_bytes)
    ['Z', 'a', 'é']
    """
    # Back to the bytes that the system gave for the name.
    return text.encode("utf-8", "surrogateescape")


def split_path(path: str) -> tuple[str, str]:
    r"""Return the folder of a path, with the slash at its end, and the name behind it.

    >>> split_path("gs://bucket/data/a"), split_path("a")
    (('gs://bucket/data/', 'a'), ('', 'a'))
    """
    at = path.rfind("/") + 1
    return path[:at], path[at:]


def working_folder() -> Path:
    """Return the working folder; `.` where it was deleted, so that relative paths alone fail."""
    try:
        return Path.cwd()
    except OSError:
        return Path()


def absolute(path: Path | str) -> str:
    """Return a path from the root, the same file.

    Raises:
        DatasetError: it is relative to a working folder that was deleted.
    """
    try:
        return os.path.abspath(path)
    except OSError as error:
        message = f"{quoted(path, 200)}: the working folder is gone; name it from the root, as /.."
        raise DatasetError(message) from error
