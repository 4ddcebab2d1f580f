"""Protocol servers on this machine for tests: S3, Google Cloud Storage, the hub, web servers.

A fixture of a session starts each on a free port, in threads of the test process, so that it ends
with the process and every worker of pytest-xdist has its own. Tests of any room ask for the
fixtures `s3`, `gcs`, `hub`, `web` (`fixtures.py`); each has `put(path, data)` and `url(path)`.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of

Handler = type[http.server.BaseHTTPRequestHandler]


class RemotePlace(Protocol):
    """What a test needs of a remote place."""

    def url(self, path: str) -> str:
        """Return the path of a file for shardctl."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file."""

    def delete(self, path: str) -> None:
        """Remove a file."""


@contextlib.contextmanager
def serving(handler: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Serve HTTP in a thread; yield host and port."""
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ranged(data: bytes, asked: str) -> tuple[int, bytes, str]:
    """Return status, body and Content-Range of an answer to a Range, empty where none is."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
    if found is None:
        return 200, data, ""
    first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
    if first > last:
        return 416, b"", f"bytes */{len(data)}"
    return 206, data[first : last + 1], f"bytes {first}-{last}/{len(data)}"


def status(path: str) -> StoredFile:
    """Return what a store lists of a file that is there."""
    file = store_of(path).status(path)
    assert file is not None
    return file


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # requests come sixteen at once

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up, as those do who see that Range is ignored."""


class FolderServer:
    """A folder of the disk, served over HTTP by a handler that knows a `directory`."""

    def __init__(self, host: str, folder: Path) -> None:
        self.base, self.folder = host, folder
        self.requests: list[str] = []

    def url(self, path: str) -> str:
        return f"{self.base}/{path}"

    def put(self, path: str, data: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def delete(self, path: str) -> None:
        (self.folder / path).unlink()


class S3Server:
    """moto's S3, one bucket; AWS_* of the environment lead to it while a test uses it."""

    bucket = "bucket"

    def __init__(self, endpoint: str) -> None:
        import boto3

        self.endpoint = endpoint
        self.client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="AKIATESTTESTTEST",
            aws_secret_access_key="secret-of-the-tests",
        )
        self.client.create_bucket(Bucket=self.bucket)

    def url(self, path: str) -> str:
        return f"s3://{self.bucket}/{path}"

    def put(self, path: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=path, Body=data)

    def delete(self, path: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=path)

    def variables(self) -> dict[str, str]:
        """Return the environment in which `s3://` is this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "AKIATESTTESTTEST",
            "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class GcsServer:
    """gcp-storage-emulator, in memory, one bucket; STORAGE_EMULATOR_HOST leads to it."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        import requests

        self.endpoint, self.bucket = endpoint, bucket
        self._session = requests.Session()
        self._session.trust_env = False
        self._post("/storage/v1/b?project=p", json={"name": self.bucket})

    def url(self, path: str) -> str:
        return f"gs://{self.bucket}/{path}"

    def put(self, path: str, data: bytes) -> None:
        url = f"/upload/storage/v1/b/{self.bucket}/o"
        if data:
            self._post(url, params={"uploadType": "media", "name": path}, data=data)
            return
        # The emulator fails at an upload without a body, and takes a part without one.
        head = b'--x\r\nContent-Type: application/json\r\n\r\n{"name": "%b"}\r\n' % path.encode()
        body = head + b"--x\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--x--"
        headers = {"Content-Type": "multipart/related; boundary=x"}
        self._post(url, params={"uploadType": "multipart"}, data=body, headers=headers)

    def delete(self, path: str) -> None:
        from urllib.parse import quote

        url = f"{self.endpoint}/storage/v1/b/{self.bucket}/o/{quote(path, safe='')}"
        self._session.delete(url, timeout=10).raise_for_status()

    def _post(self, path: str, **what: Any) -> None:
        self._session.post(self.endpoint + path, timeout=10, **what).raise_for_status()

    def variables(self) -> dict[str, str]:
        """Return the environment in which `gs://` is this server."""
        return {"STORAGE_EMULATOR_HOST": self.endpoint}


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start moto."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()


@contextlib.contextmanager
def gcs_server(bucket: str = "bucket") -> Iterator[GcsServer]:
    """Start the emulator."""
    import logging

    from gcp_storage_emulator.server import RequestHandler
    from gcp_storage_emulator.storage import Storage

    logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)
    one_at_a_time = threading.Lock()  # its storage is no safer

    # Its own server runs in a thread that outlives the tests.
    class Handler(RequestHandler):  # type: ignore[misc]
        def handle(self) -> None:
            with one_at_a_time:
                super().handle()

    with serving(functools.partial(Handler, Storage(use_memory_fs=True))) as (host, port):
        yield GcsServer(f"http://{host}:{port}", bucket)


@contextlib.contextmanager
def folder_server(folder: Path) -> Iterator[FolderServer]:
    """Serve a folder, by RangeHTTPServer."""
    from RangeHTTPServer import RangeRequestHandler

    seen: list[str] = []

    class Quiet(RangeRequestHandler):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_: Any) -> None:
            pass

        def parse_request(self) -> bool:
            parsed = super().parse_request()
            if parsed:
                seen.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
            return bool(parsed)

    with serving(Quiet) as (host, port):
        server = FolderServer(f"http://{host}:{port}", folder)
        server.requests = seen
        yield server


def lead_to(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Set the environment of a test; no proxy and no login of the developer's machine is used."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
