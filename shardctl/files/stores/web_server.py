"""Files of a web server, `http://` and `https://`: checked ranges, folders by their page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from urllib.parse import SplitResult, unquote, urldefrag, urljoin, urlsplit, urlunsplit

from shardctl.core.secrets import full_url, public_url
from shardctl.errors import DatasetError, NotThereError
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer.concurrently import concurrently
from shardctl.files.stores.transfer.failures import changed, limits, shown
from shardctl.files.stores.transfer.ranges import RemoteSource
from shardctl.files.stores.transfer.web import (
    ANSWERS,
    Headers,
    Range,
    Reply,
    Web,
    refuse_encoding,
)

_PAGE_BYTES = 256 << 20
_NOT_BY_HEAD = ANSWERS | {400, 403, 405, 501}
_NO_LOGIN = (
    "the server wants a login or forbids it (%d); a user and a password are taken from ~/.netrc"
)


class WebServerStore:
    """Files by their URLs, whose names stay as URLs write them, `a%20b`."""

    def __init__(self) -> None:
        self._web = Web(refusal=lambda status: _NO_LOGIN % status if status in (401, 403) else None)

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a URL, None where there is none; a URL that ends with `/` is none.

        Raises:
            DatasetError: the server does not say how long it is.
        """
        name = _split(path).path
        if name.endswith("/") or not name:
            return None
        reply = self._looked_at(path)
        if reply is None or _folder_of(reply.url) == _folder_of(path) + "/":
            return None  # sent on to the folder of this name
        length = _length(reply)
        if length is None:
            message = f"cannot read {shown(path)}: the server does not say how many bytes it has"
            raise DatasetError(message)
        return StoredFile(path=path, num_bytes=length, version=version_of(reply.headers))

    def is_folder(self, path: str) -> bool:
        """Return whether the server shows a page for a URL with a `/` at its end."""
        reply = self._web.ask(_with_slash(path), path=path, max_num_bytes=0)
        return reply.status == 200 and "html" in reply.headers.get("Content-Type", "")

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files that the page of a folder links to; each is asked for its size."""
        files, _ = self._page(folder)
        yield from filter(None, concurrently(self.status, files, at_once=limits().requests))

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders that the page of a folder links to, sorted."""
        names = [unquote(url.rstrip("/").rpartition("/")[2]) for url in self._page(folder)[1]]
        return sorted(name for name in names if not name.startswith("."))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file, in one request; it needs no ranges."""
        reply = self._web.ask(path, path=path, max_num_bytes=max_num_bytes)
        if reply.status != 200:
            raise NotThereError(f"cannot read {shown(path)}: no such file")
        refuse_encoding(reply.headers, path)
        return reply.body

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[RemoteSource]:
        """Open a file; another version is refused when it is read."""
        conditions = _conditions(file.version)
        told: list[tuple[str, str]] = []

        def check(headers: Headers) -> None:
            if _is_another(file.version, headers):
                raise changed(file.path)
            # Of a version that is not sure all answers at least tell the same.
            told.append((headers.get("ETag", ""), headers.get("Last-Modified", "")))
            if not file.version and told[-1] != told[0]:
                raise changed(file.path)

        def fetch(start: int, stop: int) -> bytes:
            return self._web.range(
                Range(
                    path=file.path,
                    start=start,
                    stop=stop,
                    num_bytes=file.num_bytes,
                    headers=conditions,
                    check=check,
                    resumes=bool(file.version),
                )
            )

        yield RemoteSource(file, fetch)

    def _looked_at(self, path: str) -> Reply | None:
        """Return what a server says of a URL, None where it has nothing there."""
        reply = self._web.ask(path, path=path, method="HEAD", answers=_NOT_BY_HEAD)
        known = reply.status == 200 and _length(reply) is not None
        if not known and reply.status not in (404, 410):
            # Some answer GET alone, as signed URLs for GET do, and some say how long it is there.
            reply = self._web.ask(path, path=path, headers={"Range": "bytes=0-0"}, max_num_bytes=0)
        return None if reply.status in (404, 410) else reply

    def _page(self, folder: str) -> tuple[list[str], list[str]]:
        reply = self._web.ask(_with_slash(folder), path=folder, max_num_bytes=_PAGE_BYTES)
        if reply.status != 200:
            raise NotThereError(f"cannot read {shown(folder)}: no such folder")
        if "html" not in reply.headers.get("Content-Type", ""):
            raise DatasetError(
                f"cannot list {shown(folder)}: the server has no page that lists this folder; name"
                " the files, or use a layout file"
            )
        # A link has no login and no signature: those of the folder are good for its files.
        page = reply.body.decode("utf-8", "replace")
        files, folders = links_of(page, public_url(_with_slash(folder)))
        return list(map(full_url, files)), folders


def version_of(headers: Headers) -> str:
    """Return the version that headers tell, "" where they tell none that can be relied on.

    A time tells versions apart where the file was not changed within the last second (RFC 9110,
    8.8.2.2).

    >>> version_of({"ETag": '"a1"'}), version_of({})
    ('etag:"a1"', '')
    """
    etag, modified = headers.get("ETag", "").strip(), headers.get("Last-Modified", "").strip()
    if etag:
        return f"etag:{etag}"
    if not modified or _just_now(modified, headers.get("Date", "")):
        return ""
    return f"modified:{modified}"


def _is_another(version: str, headers: Headers) -> bool:
    """Return whether headers tell another version than that of a listing.

    A time of just now, which makes no version, is another time all the same.
    """
    modified = headers.get("Last-Modified", "").strip()
    if version.startswith("modified:") and modified and not headers.get("ETag"):
        return version != f"modified:{modified}"
    found = version_of(headers)
    return bool(version and found) and found != version


def _just_now(modified: str, date: str) -> bool:
    then, now = _time(modified), _time(date)
    return then is None or (now is not None and (now - then).total_seconds() < 1)


def _time(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None


def _conditions(version: str) -> dict[str, str]:
    """Return the headers that make a server refuse another version itself, where it can.

    If-Match never holds for a weak ETag (RFC 9110, 13.1.1), so none is sent for one.
    """
    if version.startswith('etag:"'):
        return {"If-Match": version.removeprefix("etag:")}
    if version.startswith("modified:"):
        return {"If-Unmodified-Since": version.removeprefix("modified:")}
    return {}


def _length(reply: Reply) -> int | None:
    """Return how long a file is, None where the headers do not say so of its own bytes."""
    if reply.status in (206, 416):
        total = reply.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        total = reply.headers.get("Content-Length", "")
    return int(total) if total.isdigit() else None


def _with_slash(url: str) -> str:
    parts = _split(url)
    path = parts.path if parts.path.endswith("/") else f"{parts.path}/"
    return urlunsplit(parts._replace(path=path))


def _folder_of(url: str) -> str:
    return unquote(_split(url).path)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise DatasetError(f"cannot read {shown(url)}: it is not a valid URL") from None


# The page on which a web server lists a folder: the names of what is right in it.


def links_of(page: str, url: str) -> tuple[list[str], list[str]]:
    """Return the URLs of the files and of the folders that a page at `url` lists, each once.

    Only links to what is right in the folder count: none that leave it, none with a query (these
    sort the page), none to a name that hides another folder (`%2F`, `..`).

    >>> links_of('<a href="../">..</a><a href="?C=N">Name</a><a href="a.txt">a.txt</a>', "http://h/d/")
    (['http://h/d/a.txt'], [])
    """
    parser = _Links()
    parser.feed(page)
    base = urlsplit(url)
    folder = base.path if base.path.endswith("/") else f"{base.path}/"
    files: dict[str, None] = {}
    folders: dict[str, None] = {}
    for reference in parser.references:
        name = _name(reference, base.scheme, base.netloc, folder)
        if name is None:
            continue
        whole = f"{base.scheme}://{base.netloc}{folder}{name}"
        (folders if name.endswith("/") else files)[whole] = None
    return list(files), list(folders)


def _name(reference: str, scheme: str, host: str, folder: str) -> str | None:
    """Return what a link calls right in a folder, None where it leads elsewhere."""
    try:
        target = urlsplit(urldefrag(urljoin(f"{scheme}://{host}{folder}", reference.strip()))[0])
    except ValueError:
        return None
    if (target.scheme, target.netloc) != (scheme, host) or target.query or "?" in reference:
        return None
    path = target.path
    # A server may write in a link what it need not, `%2D`, so the folders are compared as names.
    parent, _, last = path.rstrip("/").rpartition("/")
    if unquote(f"{parent}/") != unquote(folder) or not last:
        return None
    plain = unquote(last)
    if plain in (".", "..") or "/" in plain or "\\" in plain or "\0" in plain:
        return None
    return last + ("/" if path.endswith("/") else "")


class _Links(HTMLParser):
    """Collects where the links of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.references += [value for name, value in attrs if name == "href" and value]
