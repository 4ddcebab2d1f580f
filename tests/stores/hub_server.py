"""A Hugging Face hub of one dataset, which huggingface_hub's own client reads too.

Listings come in pages, private repositories want a token, and large files are on another host, to
which it redirects.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.stores.servers import ranged, serving


@dataclass
class Hub:
    """What the hub holds; `private` repositories want `token`."""

    endpoint: str = ""
    storage: str = ""
    repository: str = "user/digits"
    files: dict[str, bytes] = field(default_factory=dict)
    private: bool = False
    token: str = "hf_token_of_the_tests"
    page_size: int = 1000
    requests: list[str] = field(default_factory=list)
    # What the storage host was sent as Authorization: must stay empty.
    leaked: list[str] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"hf://datasets/{self.repository}/{path}"

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = data

    def delete(self, path: str) -> None:
        del self.files[path]

    def variables(self) -> dict[str, str]:
        """Return the environment in which `hf://` is this server."""
        return {"HF_ENDPOINT": self.endpoint, "HF_HUB_DISABLE_XET": "1", "HF_HOME": "/nowhere"}

    def commit(self) -> str:
        """Return the commit of the files as they are."""
        known = hashlib.sha1(usedforsecurity=False)
        for path, data in sorted(self.files.items()):
            known.update(path.encode() + hashlib.sha1(data, usedforsecurity=False).digest())
        return known.hexdigest()

    def entry(self, path: str) -> dict[str, Any]:
        """Return a file as listings show it: large ones by LFS."""
        data = self.files[path]
        found: dict[str, Any] = {"type": "file", "oid": oid(data), "size": len(data), "path": path}
        if large(data):
            found["lfs"] = {"oid": etag(data), "size": len(data), "pointerSize": 130}
        return found


def large(data: bytes) -> bool:
    return len(data) > 1000


def oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if large(data) else oid(data)


def after(path: str, prefix: str) -> tuple[str, str]:
    """Return revision and name behind a prefix; a slash within a revision is written %2F."""
    revision, _, name = path.removeprefix(prefix).partition("/")
    return urllib.parse.unquote(revision), urllib.parse.unquote(name)


class _Handler(http.server.BaseHTTPRequestHandler):
    wbufsize = -1  # one packet an answer; of two the second waits for word of the first
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def bytes_of(self, data: bytes, **headers: str) -> None:
        status, body, where = ranged(data, self.headers.get("Range", ""))
        self.answer(status, body, **headers, **({"Content_Range": where} if where else {}))

    def handle_it(self) -> None:
        hub = self.hub
        parts = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(parts.path)
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub.requests.append(f"{self.command} {path} {self.headers.get('Range', '')}".strip())
        login = self.headers.get("Authorization", "")
        if login and login != f"Bearer {hub.token}":
            return self.answer(401, b"{}", X_Error_Message="Invalid credentials")
        if hub.private and not login:
            return self.answer(401, b"{}", X_Error_Code="RepoNotFound")
        if path.startswith(f"/datasets/{hub.repository}/resolve/"):
            return self.resolve(*after(parts.path, f"/datasets/{hub.repository}/resolve/"))
        if not re.match(rf"/api/datasets/{hub.repository}(/|$)", path):
            return self.answer(404, b"{}", X_Error_Code="RepoNotFound")
        kind = path.removeprefix(f"/api/datasets/{hub.repository}/").partition("/")[0]
        revision, name = after(parts.path, f"/api/datasets/{hub.repository}/{kind}/")
        if kind in ("tree", "paths-info", "revision") and not self.known(revision):
            return self.answer(404, b"{}", X_Error_Code="RevisionNotFound")
        if kind == "tree":
            return self.tree(name, urllib.parse.parse_qs(parts.query))
        if kind == "paths-info":
            return self.paths_info(sent)
        whole = {"id": hub.repository, "_id": "1", "sha": hub.commit(), "private": hub.private}
        return self.answer(200, json.dumps(whole | {"siblings": [], "tags": []}).encode())

    def known(self, revision: str) -> bool:
        return revision in ("main", "refs/convert/parquet", self.hub.commit())

    def tree(self, folder: str, query: dict[str, list[str]]) -> None:
        prefix = f"{folder}/" if folder else ""
        below = sorted(path for path in self.hub.files if path.startswith(prefix))
        rows: dict[str, dict[str, Any]] = {}
        for path in below:
            name, slash, _ = path.removeprefix(prefix).partition("/")
            here = prefix + name
            folder_row = {"type": "directory", "oid": "0" * 40, "size": 0, "path": here}
            rows.setdefault(here, folder_row if slash else self.hub.entry(path))
        if not rows:
            return self.answer(404, b"{}", X_Error_Code="EntryNotFound")
        first = int(query.get("cursor", ["0"])[0])
        page = list(rows.values())[first : first + self.hub.page_size]
        more: dict[str, str] = {}
        if first + self.hub.page_size < len(rows):
            path = self.path.partition("?")[0]
            cursor = first + self.hub.page_size
            more["Link"] = f'<{self.hub.endpoint}{path}?cursor={cursor}>; rel="next"'
        return self.answer(200, json.dumps(page).encode(), **more)

    def paths_info(self, sent: bytes) -> None:
        text = sent.decode()
        asked = json.loads(text) if text.startswith("{") else urllib.parse.parse_qs(text)
        names = asked["paths"]
        names = [names] if isinstance(names, str) else names
        rows = [self.hub.entry(name) for name in names if name in self.hub.files]
        folders = [name for name in names if any(p.startswith(f"{name}/") for p in self.hub.files)]
        rows += [{"type": "directory", "oid": "0" * 40, "size": 0, "path": p} for p in folders]
        self.answer(200, json.dumps(rows).encode())

    def resolve(self, revision: str, name: str) -> None:
        data = self.hub.files.get(name)
        if data is None or not self.known(revision):
            return self.answer(404, X_Error_Code="EntryNotFound")
        told = {"X_Repo_Commit": self.hub.commit(), "ETag": f'"{etag(data)}"'}
        if not large(data):
            return self.bytes_of(data, **told)
        linked = {"X_Linked_Size": str(len(data)), "X_Linked_Etag": f'"{etag(data)}"'}
        where = f"{self.hub.storage}/{urllib.parse.quote(name)}?X-Amz-Signature=signed"
        return self.answer(302, b"", Location=where, **linked, **told)

    do_GET = do_HEAD = do_POST = handle_it  # noqa: N815


class _Storage(_Handler):
    def handle_it(self) -> None:
        if self.headers.get("Authorization"):
            self.hub.leaked.append(self.headers["Authorization"])
        name = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        self.bytes_of(self.hub.files[name], ETag='"storage"')

    do_GET = do_HEAD = handle_it  # noqa: N815


@contextlib.contextmanager
def hub_server() -> Iterator[Hub]:
    """Start a hub and the host of its storage, by another name so that no token goes there."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    storage = type("Storage", (_Storage,), {"hub": hub})
    with serving(handler) as (host, port), serving(storage) as (_, other):
        hub.endpoint, hub.storage = f"http://{host}:{port}", f"http://localhost:{other}"
        yield hub
