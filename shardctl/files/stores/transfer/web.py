"""Requests to web servers.

They go through `requests`, which TensorFlow and TFDS bring along and which knows proxies,
certificates and `~/.netrc` as pip and curl do. fsspec's own HTTP file system needs aiohttp besides,
and returns the whole file in silence where a server ignores Range.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from shardctl.errors import DatasetError, MissingDependencyError
from shardctl.files.stores.transfer.failures import (
    RETRIED_STATUSES,
    Surroundings,
    TransientError,
    as_failure,
    attempted,
    changed,
    limits,
    shown,
    slots,
    surroundings,
)

_PIECE = 64 << 10
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)", re.IGNORECASE)
_COMPRESSED = (".gz", ".tgz", ".gzip")
ANSWERS = frozenset({404, 410, 412, 416})

Headers = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """An answer whose body was read: names of its headers in any case."""

    status: int
    headers: Headers
    url: str
    body: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Range:
    """A range of a file's bytes that is asked for.

    check: raises where the headers of an answer belong to another version of the file.
    resumes: whether answers tell that, so that one that broke off may be continued by another.
    """

    path: str
    start: int
    stop: int
    num_bytes: int
    headers: Headers = field(default_factory=dict)
    check: Callable[[Headers], None] = lambda headers: None
    resumes: bool = True

    @property
    def whole(self) -> bool:
        """Whether all of the file is asked for, so that an answer without a range is right too."""
        return self.start == 0 and self.stop == self.num_bytes


class Web:
    """Requests to web servers.

    Args:
        refusal: the sentence for a status that is no success, with the way out; None where the
            usual one does.
    """

    def __init__(self, refusal: Callable[[int], str | None] = lambda status: None) -> None:
        self._refusal = refusal

    def ask(
        self,
        url: str,
        *,
        path: str,
        method: str = "GET",
        headers: Headers | None = None,
        max_num_bytes: int = 0,
        answers: frozenset[int] = ANSWERS,
    ) -> Reply:
        """Return an answer, of success with its whole body where `max_num_bytes` is not 0.

        answers: the statuses that are taken as answers besides those of success.

        Raises:
            DatasetError: the place cannot be reached or refuses; the body is larger.
        """

        def once() -> Reply:
            with self._sent(method, url, path, headers or {}, answers) as response:
                read = method != "HEAD" and max_num_bytes > 0 and response.status_code < 300
                return Reply(
                    status=response.status_code,
                    headers=response.headers,
                    url=response.url,
                    body=_whole_body(response, path, max_num_bytes) if read else b"",
                )

        return attempted(once, path=path)

    def range(self, wanted: Range) -> bytes:
        """Return the bytes of a range, all of them.

        Where an answer breaks off, the rest is asked for, or all again, see `Range`. A server that
        ignores Range is noticed before its body is read.

        Raises:
            DatasetError: the file is gone or another one, the server does not answer ranges, the
                place cannot be reached or refuses.
        """
        got = bytearray()

        def once() -> bytes:
            if not wanted.resumes:
                got.clear()
            before = len(got)
            try:
                self._continue(wanted, got)
            except TransientError as error:
                error.progress = wanted.resumes and len(got) > before
                raise
            return bytes(got)

        return attempted(once, path=wanted.path)

    def _continue(self, wanted: Range, got: bytearray) -> None:
        first = wanted.start + len(got)
        headers = {**wanted.headers, "Range": f"bytes={first}-{wanted.stop - 1}"}
        with self._sent("GET", wanted.path, wanted.path, headers, ANSWERS) as response:
            status = response.status_code
            if status in (404, 410, 412, 416):
                gone = status in (404, 410)
                raise changed(wanted.path, "it is gone" if gone else "it is another file now")
            wanted.check(response.headers)
            refuse_encoding(response.headers, wanted.path)
            if status == 206:
                enough = _answered(response.headers, wanted, first) + 1 - wanted.start
            elif status == 200 and wanted.whole:
                enough = _whole(response.headers, wanted)
                got.clear()
            else:
                raise DatasetError(
                    f"cannot read {shown(wanted.path)} in parts: the server ignores Range requests"
                    f" (it answers {status} for a part of the file); copy the file to a disk, or"
                    " serve it with a server that knows ranges"
                )
            _receive(response, got, enough, wanted.path)
        if len(got) > wanted.stop - wanted.start:
            raise changed(wanted.path, f"it has more than {wanted.num_bytes:,} bytes")
        if len(got) < wanted.stop - wanted.start:
            came = f"{len(got)} of {wanted.stop - wanted.start} bytes came"
            raise TransientError(f"truncated: {came}, then the answer ended")

    @contextlib.contextmanager
    def _sent(
        self, method: str, url: str, path: str, headers: Headers, answers: frozenset[int]
    ) -> Iterator[Any]:
        """Send a request; yield what begins to answer, where that is no failure."""
        session = _session(surroundings())
        bounds = limits()
        with slots():
            try:
                with session.request(
                    method,
                    url,
                    # No server may compress what it sends: ranges count the bytes of the file.
                    headers={"Accept-Encoding": "identity", **headers},
                    timeout=(bounds.connect_timeout, bounds.timeout),
                    allow_redirects=True,
                    stream=True,
                ) as response:
                    self._refuse(response, path, answers)
                    yield response
            except (DatasetError, TransientError):
                raise
            except Exception as error:
                raise as_failure(error, path) from None

    def _refuse(self, response: Any, path: str, answers: frozenset[int]) -> None:
        status = response.status_code
        if status in RETRIED_STATUSES:
            wait = response.headers.get("Retry-After", "")
            seconds = float(wait) if wait.isdigit() else 0.0
            raise TransientError(f"the server answers {_status(status)}", wait=seconds)
        if status >= 400 and status not in answers:
            reason = self._refusal(status) or f"the server answers {_status(status)}"
            raise DatasetError(f"cannot read {shown(path)}: {reason}")


def _status(status: int) -> str:
    from http import HTTPStatus

    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def refuse_encoding(headers: Headers, path: str) -> None:
    """Refuse bytes that are not those of the file: what was compressed on its way."""
    encoding = headers.get("Content-Encoding", "identity").strip().lower()
    # A web server may say so of a file that lies there compressed: its bytes are sent as they are.
    named = path.partition("?")[0].lower().endswith(_COMPRESSED) and encoding.endswith("gzip")
    if encoding not in ("", "identity") and not named:
        raise DatasetError(
            f"cannot read {shown(path)}: the server sends it with Content-Encoding {encoding[:20]},"
            " so that places in the file are not those of what arrives; store it without"
        )


def _answered(headers: Headers, wanted: Range, first: int) -> int:
    """Return the last byte that a 206 holds; it must begin where it was asked to."""
    said = headers.get("Content-Range", "")
    found = _CONTENT_RANGE.fullmatch(said.strip())
    if found is None or int(found[1]) != first or not first <= int(found[2]) < wanted.stop:
        raise DatasetError(
            f"cannot read {shown(wanted.path)}: asked for the bytes {first}-{wanted.stop - 1}, the"
            f" server says it sends {said[:60]!r}"
        )
    if found[3] != "*" and int(found[3]) != wanted.num_bytes:
        raise changed(wanted.path, f"it has {int(found[3]):,} bytes, not {wanted.num_bytes:,}")
    return int(found[2])


def _whole(headers: Headers, wanted: Range) -> int:
    """Return how many bytes to read of a whole file: one more where its length is not told."""
    length = headers.get("Content-Length", "")
    if not length.isdigit():
        return wanted.num_bytes + 1
    if int(length) != wanted.num_bytes:
        raise changed(wanted.path, f"it has {int(length):,} bytes, not {wanted.num_bytes:,}")
    return wanted.num_bytes


def _receive(response: Any, got: bytearray, enough: int, path: str) -> None:
    """Add to `got` until there is `enough` or the answer ends; never more than enough."""
    from http.client import IncompleteRead

    from urllib3.exceptions import HTTPError

    end = time.monotonic() + limits().seconds_for(enough - len(got))
    raw = response.raw
    read = getattr(raw, "read1", raw.read)  # what has come, not all that was asked for
    try:
        while len(got) < enough:
            data = read(min(_PIECE, enough - len(got)), decode_content=False)
            if not data:
                return
            got += data
            if time.monotonic() > end:
                raise TransientError("the server sends less than 20 kB/s")
    except (HTTPError, OSError) as error:
        if not any(isinstance(each, IncompleteRead) for each in (error, *error.args)):
            raise as_failure(error, path) from None


def _whole_body(response: Any, path: str, max_num_bytes: int) -> bytes:
    length = response.headers.get("Content-Length", "")
    expected = int(length) if length.isdigit() else None
    got = bytearray()
    if expected is None or expected <= max_num_bytes:
        _receive(response, got, max_num_bytes + 1 if expected is None else expected, path)
    if (expected or len(got)) > max_num_bytes:
        raise DatasetError(f"{shown(path)} is larger than {max_num_bytes} bytes, the most read")
    if expected is not None and len(got) < expected:
        raise TransientError(f"truncated: {len(got)} of {expected} bytes came")
    return bytes(got)


@cache
def _session(around: Surroundings) -> Any:
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
    adapter = requests.adapters.HTTPAdapter(pool_maxsize=limits().requests)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
