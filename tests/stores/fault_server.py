"""A web server that fails as it is told: 503, slow, truncated, reset, no ranges, other contents.

In front of another server (`behind`) it hands on what it does not fail, so that S3, GCS and the hub
fail in these ways too.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import http.server
import socket
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.stores.servers import ranged, serving

_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive")


@dataclass
class Faults:
    """What the server does with the next requests.

    fail: as many requests are answered `status`, with `body` and `headers`.
    truncate: as many bodies end after half of their bytes, though their length was announced.
    reset: as many connections are cut without an answer.
    delay: seconds before each answer.
    ranges: whether Range is heard; `changed` is called before each GET is answered.
    """

    base: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    behind: str = ""
    fail: int = 0
    status: int = 503
    body: bytes = b"<Error>busy</Error>"
    headers: dict[str, str] = field(default_factory=dict)
    truncate: int = 0
    reset: int = 0
    delay: float = 0.0
    ranges: bool = True
    weak: bool = False
    no_length: bool = False
    lie: str = ""  # a Content-Range that is sent whatever was asked for
    encoding: str = ""
    redirect: str = ""
    changed: Callable[[], None] | None = None
    requests: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    sent: int = 0
    open: int = 0
    most_open: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def url(self, path: str) -> str:
        return f"{self.base}/{path}"

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = data

    def delete(self, path: str) -> None:
        del self.files[path]

    def takes(self, what: str) -> bool:
        """Return whether the next request is to fail in a way, and count it."""
        with self.lock:
            count = getattr(self, what)
            setattr(self, what, max(count - 1, 0))
            return bool(count)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: Faults

    def log_message(self, *_: Any) -> None:
        pass

    def handle_it(self) -> None:
        faults = self.faults
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = self.headers.get("Range", "")
        faults.requests.append(f"{self.command} {self.path} {asked}".strip())
        faults.logins.append(self.headers.get("Authorization", ""))
        with faults.lock:
            faults.open += 1
            faults.most_open = max(faults.most_open, faults.open)
        time.sleep(faults.delay)
        with faults.lock:  # before the answer, whose end a client may see sooner than this thread
            faults.open -= 1
        if faults.takes("reset"):
            # Linger 0 makes the kernel send RST instead of FIN.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
        elif faults.takes("fail"):
            self.answer(faults.status, faults.body, faults.headers)
        elif faults.behind:
            self.hand_on(sent)
        else:
            self.own_file()

    def own_file(self) -> None:
        faults = self.faults
        if faults.redirect:
            return self.answer(302, b"", {"Location": faults.redirect + self.path})
        if faults.changed is not None and self.command == "GET":
            faults.changed()
        data = faults.files.get(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)[1:])
        if data is None:
            return self.answer(404, b"none", {})
        known = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        tag = ("W/" if faults.weak else "") + f'"{known}"'
        headers = {"ETag": tag}
        if faults.encoding:
            headers["Content-Encoding"] = faults.encoding
        wanted = self.headers.get("If-Match")
        if wanted is not None and (wanted != tag or faults.weak):
            return self.answer(412, b"", headers)
        status, body, where = ranged(data, self.headers.get("Range", "") * faults.ranges)
        if where:
            headers["Content-Range"] = (status == 206 and faults.lie) or where
        return self.answer(status, body, headers)

    def hand_on(self, sent: bytes) -> None:
        target = urllib.parse.urlsplit(self.faults.behind)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=30)
        try:
            connection.request(self.command, self.path, sent, dict(self.headers))
            got = connection.getresponse()
            data = got.read()
        finally:
            connection.close()
        headers = {name: value for name, value in got.getheaders() if name.lower() not in _HOP}
        length = got.getheader("Content-Length") if self.command == "HEAD" else None
        self.answer(got.status, data, headers, length)

    def answer(
        self, status: int, body: bytes, headers: dict[str, str], length: str | None = None
    ) -> None:
        faults = self.faults
        self.send_response(status)
        if not faults.no_length:
            self.send_header("Content-Length", length or str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        if faults.no_length:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command == "HEAD":
            return
        # A single byte is of a listing, whose client may be gone before this.
        if len(body) > 1 and status in (200, 206) and faults.takes("truncate"):
            body = body[: len(body) // 2]
            self.close_connection = True
        self.send_body(body)

    def send_body(self, body: bytes) -> None:
        for start in range(0, len(body), 1 << 16):
            piece = body[start : start + (1 << 16)]
            self.wfile.write(piece)
            self.faults.sent += len(piece)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_it  # noqa: N815


@contextlib.contextmanager
def fault_server(behind: str = "") -> Iterator[Faults]:
    """Start the server; with `behind`, in front of another."""
    faults = Faults(behind=behind)
    with serving(type("Handler", (_Handler,), {"faults": faults})) as (host, port):
        faults.base = f"http://{host}:{port}"
        yield faults
