"""Files of a web server, `http://` and `https://`: checked ranges, folders by their page.

The requests go through `requests`, which TensorFlow and TFDS bring along and which knows proxies,
certificates and `~/.netrc` as pip and curl do. fsspec's own HTTP file system needs aiohttp besides,
takes every failure for a file that is not there, and whatever is sent for the range it asked for.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from html import unescape
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urldefrag, urljoin, urlsplit, urlunsplit

from shardctl.base.text import full_url, public_url
from shardctl.errors import DatasetError, MissingDependencyError, NotThereError, ShardctlError
from shardctl.stores import failures
from shardctl.stores.concurrently import concurrently
from shardctl.stores.failures import shown
from shardctl.stores.store import RemoteSource, StoredFile

_PAGE_BYTES = 256 << 20
_PIECE = 64 << 10
_MISSING = (404, 410)
_ANSWERS = (*_MISSING, 412, 416)
_NOT_BY_HEAD = (*_ANSWERS, 400, 403, 405, 501)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)", re.IGNORECASE)
_LINK = re.compile(
    r"""<a\s[^>]{0,1000}?\bhref\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE
)
_COMPRESSED = (".gz", ".tgz", ".gzip")

Headers = Mapping[str, str]


class Reply(NamedTuple):
    """An answer whose body was read, where it was asked for: names of its headers in any case."""

    status: int
    headers: Headers
    url: str
    body: bytes


class WebServerStore:
    """Files by their URLs, whose names stay as URLs write them, `a%20b`."""

    def status(self, path: str) -> StoredFile | None:
        """Return the file at a URL, None where there is none; a URL that ends with `/` is none.

        Raises:
            DatasetError: the server does not say how long it is.
        """
        name = _split(path).path
        if name.endswith("/") or not name:
            return None
        reply = _ask(path, "HEAD", answers=_NOT_BY_HEAD)
        if (reply.status != 200 or _length(reply) is None) and reply.status not in _MISSING:
            # Some answer GET alone, as signed URLs for GET do, and some say how long it is there.
            reply = _ask(path, headers={"Range": "bytes=0-0"})
        sent_on = unquote(_split(reply.url).path) == unquote(name) + "/"  # to the folder so called
        if reply.status in _MISSING or sent_on:
            return None
        length = _length(reply)
        if length is None:
            message = f"cannot read {shown(path)}: the server does not say how many bytes it has"
            raise DatasetError(message)
        return StoredFile(path=path, num_bytes=length, version=version_of(reply.headers))

    def is_folder(self, path: str) -> bool:
        """Return whether the server shows a page for a URL with a `/` at its end."""
        reply = _ask(_with_slash(path))
        return reply.status == 200 and "html" in reply.headers.get("Content-Type", "")

    def scan(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files that the page of a folder links to; each is asked for its size."""
        files, _ = self._page(folder)
        yield from filter(
            None, concurrently(self.status, files, at_once=failures.limits().requests)
        )

    def subfolders(self, folder: str) -> list[str]:
        """Return the names of the folders that the page of a folder links to, sorted."""
        names = [unquote(url.rstrip("/").rpartition("/")[2]) for url in self._page(folder)[1]]
        return sorted(name for name in names if not name.startswith("."))

    def read(self, path: str, *, max_num_bytes: int) -> bytes:
        """Return the bytes of a small file, in one request; it needs no ranges."""
        reply = _ask(path, max_num_bytes=max_num_bytes)
        if reply.status != 200:
            raise NotThereError(f"cannot read {shown(path)}: no such file")
        _refuse_encoding(reply.headers, path)
        return reply.body

    @contextlib.contextmanager
    def open(self, file: StoredFile) -> Iterator[RemoteSource]:
        """Open a file; another version is refused when it is read."""
        versions: list[tuple[str, str]] = []
        yield RemoteSource(file, lambda start, stop: _range(file, start, stop, versions))

    def _page(self, folder: str) -> tuple[list[str], list[str]]:
        reply = _ask(_with_slash(folder), max_num_bytes=_PAGE_BYTES)
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
    then, now = _time(modified), _time(headers.get("Date", ""))
    just_now = then is None or (now is not None and (now - then).total_seconds() < 1)
    return "" if just_now else f"modified:{modified}"


def _time(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None


def _is_another(version: str, headers: Headers) -> bool:
    """Return whether headers tell another version than that of a listing.

    A time of just now, which makes no version, is another time all the same.
    """
    modified = headers.get("Last-Modified", "").strip()
    if version.startswith("modified:") and modified and not headers.get("ETag"):
        return version != f"modified:{modified}"
    found = version_of(headers)
    return bool(version and found) and found != version


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


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        raise DatasetError(f"cannot read {shown(url)}: it is not a valid URL") from None


# Requests: tried again where that helps, and what comes back compared with what was asked for.


def _ask(
    url: str,
    method: str = "GET",
    *,
    headers: Headers | None = None,
    max_num_bytes: int = 0,
    answers: tuple[int, ...] = _ANSWERS,
) -> Reply:
    """Return an answer, of success with its whole body where `max_num_bytes` is not 0.

    answers: the statuses that are taken as answers besides those of success.

    Raises:
        DatasetError: the place cannot be reached or refuses; the body is larger.
    """

    def once() -> Reply:
        with _sent(method, url, headers or {}, answers) as response:
            body = b""
            if max_num_bytes and response.status_code < 300:
                body = _body(response, max_num_bytes + 1, url)
                length = response.headers.get("Content-Length", "")
                if len(body) > max_num_bytes:
                    message = f"{shown(url)} is larger than {max_num_bytes} bytes, the most read"
                    raise DatasetError(message)
                if length.isdigit() and len(body) < int(length):
                    raise failures.TransientError(f"truncated: {len(body)} of {length} bytes came")
            return Reply(response.status_code, response.headers, response.url, body)

    return failures.attempted(once, path=url)


def _range(file: StoredFile, start: int, stop: int, versions: list[tuple[str, str]]) -> bytes:
    """Return the bytes [start, stop) of a file, all of them.

    A server that ignores Range is noticed before its body is read. versions: what each answer says
    of its version; of one that is not sure all answers at least say the same.
    """
    path = file.path

    def once() -> bytes:
        with _sent("GET", path, {"Range": f"bytes={start}-{stop - 1}"}, _ANSWERS) as response:
            status, headers = response.status_code, response.headers
            if status in _ANSWERS:
                raise failures.changed(path, "it is gone" if status in _MISSING else "")
            versions.append((headers.get("ETag", ""), headers.get("Last-Modified", "")))
            if _is_another(file.version, headers) or (
                not file.version and versions[-1] != versions[0]
            ):
                raise failures.changed(path)
            _refuse_encoding(headers, path)
            if status == 206:
                _check_range(headers, file, start, stop)
            elif status != 200 or (start, stop) != (0, file.num_bytes):
                raise DatasetError(
                    f"cannot read {shown(path)} in parts: the server ignores Range requests"
                    f" (it answers {status} for a part of the file); copy the file to a disk, or"
                    " serve it with a server that knows ranges"
                )
            data = _body(response, stop - start + 1, path)
        if len(data) > stop - start:
            raise failures.changed(path, f"it has more than {file.num_bytes:,} bytes")
        if len(data) < stop - start:
            raise failures.TransientError(f"truncated: {len(data)} of {stop - start} bytes came")
        return data

    return failures.attempted(once, path=path)


def _check_range(headers: Headers, file: StoredFile, start: int, stop: int) -> None:
    """Refuse a 206 that is of other bytes than were asked for."""
    said = headers.get("Content-Range", "")
    found = _CONTENT_RANGE.fullmatch(said.strip())
    if found is not None and found[3] not in ("*", str(file.num_bytes)):
        raise failures.changed(file.path, f"it has {int(found[3]):,} bytes, not {file.num_bytes:,}")
    if found is None or (int(found[1]), int(found[2])) != (start, stop - 1):
        raise DatasetError(
            f"cannot read {shown(file.path)}: asked for the bytes {start}-{stop - 1}, the server"
            f" says it sends {said[:60]!r}"
        )


def _refuse_encoding(headers: Headers, path: str) -> None:
    """Refuse bytes that are not those of the file: what was compressed on its way."""
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    # A web server may say so of a file that lies there compressed: its bytes are sent as they are.
    named = path.partition("?")[0].lower().endswith(_COMPRESSED) and encoding.endswith("gzip")
    if encoding not in ("", "identity") and not named:
        raise DatasetError(
            f"cannot read {shown(path)}: the server sends it with Content-Encoding {encoding[:20]},"
            " so that places in the file are not those of what arrives; store it without"
        )


@contextlib.contextmanager
def _sent(method: str, url: str, headers: Headers, answers: tuple[int, ...]) -> Iterator[Any]:
    """Send a request; yield what begins to answer, where that is no failure."""
    bounds = failures.limits()
    with failures.slots():
        try:
            with _session(failures.surroundings()).request(
                method,
                url,
                # No server may compress what it sends: ranges count the bytes of the file.
                headers={"Accept-Encoding": "identity", **headers},
                timeout=(bounds.connect_timeout, bounds.timeout),
                allow_redirects=True,
                stream=True,
            ) as response:
                _refuse(response, url, answers)
                yield response
        except (ShardctlError, failures.TransientError):
            raise
        except Exception as error:
            raise failures.as_failure(error, url) from None


def _refuse(response: Any, path: str, answers: tuple[int, ...]) -> None:
    status = response.status_code
    if status < 400 or status in answers:
        return
    with contextlib.suppress(ValueError):
        status = f"{status} {HTTPStatus(status).phrase}"
    if response.status_code in failures.RETRIED_STATUSES:
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if wait.isdigit() else 0.0
        raise failures.TransientError(f"the server answers {status}", wait=seconds)
    reason = f"the server answers {status}"
    if response.status_code in (401, 403):
        reason = f"the server wants a login or forbids it ({response.status_code}); a user and a"
        reason += " password are taken from ~/.netrc"
    raise DatasetError(f"cannot read {shown(path)}: {reason}")


def _body(response: Any, most: int, path: str) -> bytes:
    """Return a body up to its end, or to `most` bytes of it; fewer where it breaks off."""
    got = bytearray()
    end = time.monotonic() + failures.limits().seconds_for(most)
    try:
        while data := response.raw.read(min(_PIECE, most - len(got)), decode_content=False):
            got += data
            if time.monotonic() > end:
                raise failures.TransientError("the server sends less than 20 kB/s")
    except Exception as error:
        if not any(type(each).__name__ == "IncompleteRead" for each in failures.causes(error)):
            raise
    return bytes(got)


@cache
def _session(around: failures.Surroundings) -> Any:
    """Return the connections of this process; those of the process that forked it are not its."""
    try:
        import requests
    except ImportError as error:
        raise MissingDependencyError(
            "reading over HTTP needs a package: pip install 'shardctl[http]'"
        ) from error
    from http.cookiejar import DefaultCookiePolicy

    session = requests.Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.max_redirects = 10
    session.headers["User-Agent"] = "shardctl"
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=failures.limits().requests)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


# The page on which a web server lists a folder: the names of what is right in it.


def links_of(page: str, url: str) -> tuple[list[str], list[str]]:
    """Return the URLs of the files and of the folders that a page at `url` lists, each once.

    Only links to what is right in the folder count: none that leave it, none with a query (these
    sort the page), none to a name that hides another folder (`%2F`, `..`).

    >>> links_of('<a href="../">..</a><a href="?C=N">Name</a><a href="a.txt">a.txt</a>', "http://h/d/")
    (['http://h/d/a.txt'], [])
    """
    references = (
        unescape(found[1] or found[2] or found[3] or "") for found in _LINK.finditer(page)
    )
    base = urlsplit(url)
    folder = base.path if base.path.endswith("/") else f"{base.path}/"
    files: dict[str, None] = {}
    folders: dict[str, None] = {}
    for reference in references:
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
