"""Paths of this machine and URLs: their parts, and how one is made of another."""

from __future__ import annotations

import os
import re
from functools import total_ordering
from pathlib import Path, PurePosixPath

from shardctl.base.text import public_url, quoted
from shardctl.errors import DatasetError

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>[^/]*)(?P<path>.*)", re.DOTALL)
_WEB = ("http", "https")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(::.*)?://")
_ONE_SLASH = re.compile(r"(?:^|/)[a-z][a-z0-9]+:/[^/]")
A_SLASH_LOST = "a URL has two slashes, of which pathlib makes one: give it as text"
_PLAIN = "/!$&'()*+,;=:@~"  # what a path on the web has as it is, besides letters and digits


@total_ordering
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

    def __lt__(self, other: RemotePath) -> bool:
        return str(self) < str(other) if isinstance(other, RemotePath) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


AnyPath = Path | RemotePath
_ROOT = PurePosixPath("/")


def _inside(path: PurePosixPath) -> PurePosixPath:
    """Return an absolute path without `..`, which names of objects do not have."""
    if ".." not in path.parts:
        return path
    parts: list[str] = []
    for part in path.parts[1:]:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
    return _ROOT.joinpath(*parts)


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
