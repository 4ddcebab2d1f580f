"""Fixtures of protocol servers, for tests of any room; see `servers.py`."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stores.fault_server import Faults, fault_server
from tests.stores.hub_server import Hub, hub_server
from tests.stores.servers import (
    FolderServer,
    GcsServer,
    S3Server,
    folder_server,
    gcs_server,
    lead_to,
    s3_server,
)


@pytest.fixture(scope="session")
def started_s3() -> Iterator[S3Server]:
    """moto, started once; the descriptions of its services are read once, not for each client."""
    pytest.importorskip("moto")
    pytest.importorskip("s3fs")
    from botocore.loaders import JSONFileLoader

    known = functools.cache(JSONFileLoader().load_file)

    def load_file(self: Any, path: str) -> Any:
        return known(path)

    with pytest.MonkeyPatch.context() as patch, s3_server() as server:
        patch.setattr(JSONFileLoader, "load_file", load_file)
        yield server


@pytest.fixture(scope="session")
def started_gcs() -> Iterator[GcsServer]:
    """The emulator of Google Cloud Storage, started once."""
    pytest.importorskip("gcp_storage_emulator")
    pytest.importorskip("gcsfs")
    with gcs_server() as server:
        yield server


@pytest.fixture
def s3(started_s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A bucket, `s3://bucket/`; tests keep to folders of their own."""
    lead_to(monkeypatch, started_s3.variables())
    return started_s3


@pytest.fixture
def gcs(started_gcs: GcsServer, monkeypatch: pytest.MonkeyPatch) -> GcsServer:
    """A bucket, `gs://bucket/`; tests keep to folders of their own."""
    lead_to(monkeypatch, started_gcs.variables())
    return started_gcs


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the dataset `hf://datasets/user/digits`, empty."""
    pytest.importorskip("huggingface_hub")
    with hub_server() as server:
        lead_to(monkeypatch, server.variables())
        yield server


@pytest.fixture
def web(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FolderServer]:
    """A web server that answers ranges, over an empty folder."""
    pytest.importorskip("RangeHTTPServer")
    lead_to(monkeypatch, {})
    with folder_server(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """A web server that fails as it is told; put in front of another by `faults.behind = url`."""
    lead_to(monkeypatch, {})
    with fault_server() as server:
        yield server
