"""A web server that answers each path in a wrong way, which the number in the path decides.

`http://HOST/7/l.yaml` is the valid file `l.yaml`, answered as number 7 says; 0 answers rightly.
"""

from __future__ import annotations

import atexit
import http.server
import random
import time
from collections.abc import Mapping
from multiprocessing import get_context
from typing import Any

from tests.stores import fault_server
from tests.stores.fault_server import Faults

SECRET = "pass-hunter2-word"
_STATUSES = (100, 201, 204, 206, 304, 400, 401, 403, 410, 412, 416, 429, 500, 503, 999)
_ODD = ("\x1b]8;;a\x07", "9" * 5000, "\xb2", "bytes */*", "bytes 0-3/9", "", f"token={SECRET}")
_NOWHERE = (f"http://me:{SECRET}@", f"ftp://me:{SECRET}@h/", "file:///etc/hosts", "//[", "")
UNSEEN = ("other", "right")  # which a client cannot tell from a right answer
WAYS: dict[str, dict[str, Any]] = {
    **{way: {} for way in (*UNSEEN, "longer", "endless", "drip")},
    "truncated": {"truncate": 9},
    "reset": {"reset": 9},
    "without length": {"no_length": True},
    "without ranges": {"ranges": False},
    "lie": {"lie": _ODD},
    "encoding": {"encoding": _ODD},
    "redirect": {"redirect": (f"http://me:{SECRET}@localhost:PORT/0", f"/0/..?token={SECRET}")},
    "loop": {"redirect": "/NUMBER"},
    "nowhere": {"fail": 9, "status": (301, 307, 308), "Location": _NOWHERE},
    "status": {"fail": 9, "status": _STATUSES, "Retry-After": _ODD},
    "header": {"fail": 9, "status": (200, 206), "Content-Range": _ODD, "ETag": _ODD},
}


def way_of(number: int) -> str:
    """Return how a number answers."""
    return random.Random(number).choice(list(WAYS)) if number else "right"


class _Handler(fault_server._Handler):
    files: Mapping[str, bytes]

    def handle_it(self) -> None:
        number, _, path = self.path[1:].partition("/")
        self.path, self.way = f"/{path}", way_of(int(number) if number.isdigit() else 0)
        rng, port, named = random.Random(number), f"{self.server.server_port}", {}  # type: ignore[attr-defined]
        for name, value in WAYS[self.way].items():
            one: Any = rng.choice(value) if isinstance(value, tuple) else value
            text = isinstance(one, str)
            named[name] = one.replace("PORT", port).replace("NUMBER", number) if text else one
        headers = {name: str(named.pop(name)) for name in list(named) if name.istitle()}
        self.faults = Faults(files=dict(self.files), headers=headers, **named)
        if self.way == "other":
            cut = {name: data[: rng.randrange(len(data))] for name, data in self.files.items()}
            self.faults.files = cut
        super().handle_it()

    def send_body(self, body: bytes) -> None:
        self.wfile.write(body)
        more = {"longer": b"7", "endless": b" " * (1 << 16), "drip": b" "}.get(self.way, b"")
        while more:
            self.wfile.write(more)
            if self.way == "longer":
                return
            time.sleep(0.05 if self.way == "drip" else 0)

    def send_header(self, keyword: str, value: str) -> None:
        if self.way in ("endless", "drip") and keyword == "Content-Length":
            value = f"{1 << 40}"
        super().send_header(keyword, value)

    do_GET = do_HEAD = handle_it  # noqa: N815


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that hang up."""


def server_of(files: Mapping[str, bytes], records: Mapping[str, bytes]) -> str:
    """Start a process that serves files, and record files by their format; return its address."""
    named = {f"toy-train.{form}-00000-of-00001": data for form, data in records.items()}
    handler = type("Handler", (_Handler,), {"files": {**files, **named}})
    server = _Server(("127.0.0.1", 0), handler)
    process = get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    atexit.register(process.kill)
    server.socket.close()
    return f"127.0.0.1:{server.server_port}"
