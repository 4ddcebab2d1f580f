"""A web server that answers each path in a wrong way, which the number in the path decides.

`http://HOST/7/l.yaml` is the valid file `l.yaml`, answered as number 7 says; 0 answers rightly.
"""

from __future__ import annotations

import atexit
import functools
import http.server
import random
import time
from collections.abc import Mapping
from multiprocessing import get_context
from typing import Any

from tests.stores.servers import ranged

SECRET = "pass-hunter2-word"
# What a client cannot tell from a right answer are other bytes, and headers that say so of them.
UNSEEN = ("right", "other", "cut whole")
WAYS = (
    *UNSEEN, "truncated", "longer", "endless", "drip", "no length", "lie", "wrong range",
    "no ranges", "redirect", "redirect there", "loop", "status", "gzip", "garbage", "headers",
    "silent",
)  # fmt: skip


def way_of(number: int) -> str:
    """Return how a number answers."""
    return random.Random(number).choice(WAYS) if number else "right"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: Mapping[str, bytes]

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        number, _, name = self.path.partition("?")[0].removeprefix("/").partition("/")
        rng, way = random.Random(number), way_of(int(number) if number.isdigit() else 0)
        data = self.files.get(name, b"")
        if not data:
            self._answer(404, b"none", {})
            return
        asked = "" if way == "no ranges" else self.headers.get("Range", "")
        if way in ("other", "cut whole"):
            data = data[: rng.randrange(len(data))] + rng.randbytes(3) * (way == "other")
        code, body, where = ranged(data, asked)
        headers = {"ETag": f'"{number}"', **({"Content-Range": where} if where else {})}
        host = self.headers.get("Host", "")
        if way == "redirect":  # to another host, with a login
            place = f"http://me:{SECRET}@{host.replace('127.0.0.1', 'localhost')}/0/{name}"
            self._answer(302, b"", {"Location": place})
            return
        if way == "redirect there":
            there = (
                f"http://me:{SECRET}@",
                f"ftp://me:{SECRET}@h/",
                "file:///etc/hosts",
                "//[",
                "",
            )
            self._answer(rng.choice((301, 307, 308)), b"", {"Location": rng.choice(there)})
            return
        if way == "loop":
            self._answer(302, b"", {"Location": f"{self.path}?token={SECRET}"})
            return
        if way == "status":
            code = rng.choice(
                (100, 204, 206, 304, 400, 401, 403, 410, 412, 416, 429, 500, 503, 999)
            )
        if way == "lie":
            lie = rng.choice((f"bytes 0-{len(body)}/9", "bytes */*", "\x1b[31m", "9" * 5000, ""))
            headers["Content-Range"] = lie
            code = 206
        if way == "wrong range" and where:
            body = body[:-1] + bytes([body[-1] ^ 1, 7]) if rng.random() < 0.5 else body[:-1]
        if way == "gzip":
            headers["Content-Encoding"] = rng.choice(("gzip", "br", "\x1b[31m", "x" * 5000))
        if way == "headers":
            headers |= {rng.choice(("ETag", "Last-Modified", "Date", "X")): "\x1b]8;;a\x07" * 9}
        self._answer(code, body, headers, way)

    def _answer(self, code: int, body: bytes, headers: dict[str, str], way: str = "") -> None:
        if way == "silent":
            self.close_connection = True
            return
        if way == "garbage":
            self.wfile.write(body + b"\0\xff\r\n\r\n" * 99)
            self.close_connection = True
            return
        self.send_response(code)
        length = len(body) + {"truncated": 9, "drip": 1 << 20, "longer": -1}.get(way, 0)
        if way not in ("endless", "no length"):
            self.send_header("Content-Length", str(max(length, 0)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        self.wfile.write(body)
        while way in ("endless", "drip"):
            self.wfile.write(b" " * (1 << 16 if way == "endless" else 1))
            time.sleep(0.05 if way == "drip" else 0)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that hang up."""


def server_of(files: Mapping[str, bytes], records: Mapping[str, bytes]) -> str:
    """Start a process that serves files, and record files by their format; return its address."""
    named = {f"toy-train.{form}-00000-of-00001": data for form, data in records.items()}
    handler = type("Handler", (_Handler,), {"files": {**files, **named}})
    server = _Server(("127.0.0.1", 0), functools.partial(handler))
    process = get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    atexit.register(process.kill)
    address = f"127.0.0.1:{server.server_port}"
    server.socket.close()
    return address
