"""Files of a web server, `http://` and `https://`, by checked ranges; it lists no folders.

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
from http import HTTPStatus
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote, urlsplit

from shardctl.base.install import to_install
from shardctl.base.text import full_url, public_url, query_mark
from shardctl.errors import DatasetError, MissingDependencyError, NotThereError, ShardctlError
from shardctl.stores import failures
from shardctl.stores.failures import shown
from shardctl.stores.store import RemoteSource, StoredFile

_PIECE = 64 << 10
_MISSING = (404, 410)
_ANSWERS = (*_MISSING, 412, 416)
_NUMBER = "[0-9]{1,18}"  # of bytes
_CONTENT_RANGE = re.compile(rf"bytes ({_NUMBER})-({_NUMBER})/({_NUMBER}|\*)", re.IGNORECASE)
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
        name = _path_in(path)
        if name.endswith("/") or not name:
            return None
        # Not by HEAD, which signed URLs do not answer, and others without a length.
        reply = _ask(path, headers={"Range": "bytes=0-0"})
        if reply.status == 416:  # of an empty file, whose length some leave out there
            reply = _ask(path)
        sent_on = unquote(_path_in(reply.url)) == unquote(name) + "/"  # to the folder so called
        if reply.status in _MISSING or sent_on:
            return None
        length = _length(reply)
        if length is None:
            raise failures.end(path, "the server does not say how many bytes it has")
        version = version_of(reply.headers)
        return StoredFile(
            path=public_url(path), num_bytes=length, version=version and version + _mark(path)
        )

    def scan(self, folder: str) -> NoReturn:
        """Refuse, as `is_folder` and `subfolders` do: folders of a web server cannot be listed."""
        raise DatasetError(
            f"cannot list {shown(folder)}: no folder of a web server is listed; name its files, a "
            "layout file, or the folder that has dataset_info.json in it"
        )

    is_folder = subfolders = scan

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
    # Both by the server's clock, so that ours need not agree with it.
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
    return _number(total)


def _number(text: str) -> int | None:
    """Return the number in a header; None where it is none, or longer than any file is."""
    return int(text) if re.fullmatch(_NUMBER, text) else None


def _mark(url: str) -> str:
    """Return what tells in a version which query chose the file, "" where none did."""
    return query_mark(full_url(public_url(url)))


def _path_in(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        raise failures.end(url, "it is not a valid URL") from None


# Requests: tried again where that helps, and what comes back compared with what was asked for.


def _ask(url: str, *, headers: Headers | None = None, max_num_bytes: int = 0) -> Reply:
    """Return an answer, of success with its whole body where `max_num_bytes` is not 0.

    Raises:
        DatasetError: the place cannot be reached or refuses; the body is larger.
    """

    def once() -> Reply:
        with _sent(url, headers or {}) as response:
            body = b""
            if max_num_bytes and response.status_code < 300:
                body = _body(response, max_num_bytes + 1, url)
                length = _number(response.headers.get("Content-Length", ""))
                if len(body) > max_num_bytes:
                    message = f"{shown(url)} is larger than {max_num_bytes} bytes, the most read"
                    raise DatasetError(message)
                if length is not None and len(body) < length:
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
        with _sent(path, {"Range": f"bytes={start}-{stop - 1}"}) as response:
            status, headers = response.status_code, response.headers
            if status in _ANSWERS:
                raise failures.changed(path, "it is gone" if status in _MISSING else "")
            versions.append((headers.get("ETag", ""), headers.get("Last-Modified", "")))
            # The mark of the query is ours; headers know nothing of it.
            listed = file.version.removesuffix(_mark(path))
            if _is_another(listed, headers) or (not file.version and versions[-1] != versions[0]):
                raise failures.changed(path)
            _refuse_encoding(headers, path)
            if status == 206:
                _check_range(headers, file, start, stop)
            # A 200 is the whole file: right only where the whole was asked for.
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
def _sent(url: str, headers: Headers) -> Iterator[Any]:
    """Send a request; yield what begins to answer, where that is no failure."""
    bounds = failures.limits()
    with failures.slots():
        try:
            with _session(failures.surroundings()).get(
                full_url(public_url(url)),
                # No server may compress what it sends: ranges count the bytes of the file.
                headers={"Accept-Encoding": "identity", **headers},
                timeout=(bounds.connect_timeout, bounds.timeout),
                allow_redirects=True,
                stream=True,
            ) as response:
                _refuse(response, url)
                yield response
        except (ShardctlError, failures.TransientError):
            raise
        except Exception as error:
            raise failures.as_failure(error, url) from None


def _refuse(response: Any, path: str) -> None:
    status = response.status_code
    # No redirect that leads nowhere, whose empty body is no file.
    if status in (200, 206, *_ANSWERS):
        return
    with contextlib.suppress(ValueError):
        status = f"{status} {HTTPStatus(status).phrase}"
    if response.status_code in failures.RETRIED_STATUSES:
        # Seconds; the other form, a date, is left to our own waits.
        wait = _number(response.headers.get("Retry-After", "")) or 0
        raise failures.TransientError(f"the server answers {status}", wait=wait)
    reason = f"the server answers {status}"
    if response.status_code in (401, 403):
        reason = f"the server wants a login or forbids it ({response.status_code}); a user and a"
        reason += " password are taken from ~/.netrc"
    raise failures.end(path, reason)


def _body(response: Any, most: int, path: str) -> bytes:
    """Return a body up to its end, or to `most` bytes of it; fewer where it breaks off."""
    got = bytearray()
    # The time-out of `requests` is between two bytes; a server that drips them would never end.
    begin, bounds = time.monotonic(), failures.limits()
    try:
        # What has come, where urllib3 can tell: to fill a piece may take for ever, too.
        read = getattr(response.raw, "read1", response.raw.read)
        while data := read(min(_PIECE, most - len(got)), decode_content=False):
            got += data
            if time.monotonic() - begin > bounds.seconds_for(len(got)):
                raise failures.TransientError("the server sends less than 20 kB/s")
    except Exception as error:
        # A body that breaks off is returned as far as it came: the caller sees that it is short.
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
            f"reading over HTTP needs a package: {to_install('requests')}"
        ) from error
    from http.cookiejar import DefaultCookiePolicy

    session = requests.Session()
    # No cookies: what one file sets must not be sent with the request for another.
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.max_redirects = 10
    session.headers["User-Agent"] = "shardctl"
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=failures.limits().requests)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
