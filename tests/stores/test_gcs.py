"""Google Cloud Storage: long listings, conditions, faults, logins."""

from __future__ import annotations

import pytest

from shardctl.errors import DatasetError
from shardctl.stores import failures as attempts
from shardctl.stores.fsspec_store import FsspecStore
from shardctl.stores.store import StoredFile
from tests.stores.fault_server import Faults
from tests.stores.servers import GcsServer, lead_to, status

DATA = bytes(range(256)) * 400


@pytest.fixture
def broken(gcs: GcsServer, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """A server that fails in front of the emulator; `gs://` leads to it."""
    monkeypatch.setattr(attempts, "_FIRST_WAIT", 0.01)
    faults.behind = gcs.endpoint
    limits = {"SHARDCTL_REMOTE_PATIENCE": "30", "SHARDCTL_REMOTE_TIMEOUT": "1"}
    lead_to(monkeypatch, limits | {"STORAGE_EMULATOR_HOST": faults.base})
    gcs.put("faults/a.bin", DATA)
    return faults


def listed(gcs: GcsServer) -> StoredFile:
    file = status(gcs.url("faults/a.bin"))
    assert file.version.startswith("generation:")
    return file


def read(file: StoredFile) -> bytes:
    with FsspecStore("gs").open(file) as source:
        return source.read(100, 60_000)


def test_what_may_pass_is_tried_again(gcs: GcsServer, broken: Faults) -> None:
    file = listed(gcs)
    broken.fail, broken.status, broken.truncate, broken.reset = 1, 503, 1, 1
    assert read(file) == DATA[100:60_000]


def test_no_bucket_is_one_line(gcs: GcsServer) -> None:
    with pytest.raises(DatasetError, match="'gs://nobucket/a': there is no bucket of this name"):
        list(FsspecStore("gs").scan("gs://nobucket/a"))


def test_a_private_bucket_says_the_way_out(gcs: GcsServer, broken: Faults) -> None:
    broken.fail, broken.status, broken.body = 10, 401, b'{"error": {"message": "PLANTED"}}'
    with pytest.raises(
        DatasetError, match=r"no Google credentials: run `gcloud auth application-default login`"
    ) as refused:
        list(FsspecStore("gs").scan(gcs.url("faults")))
    assert "PLANTED" not in str(refused.value)


def test_a_bearer_token_goes_along_and_is_never_shown(
    gcs: GcsServer, broken: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("fsspec").config.conf, "gs", {"token": "ya29.PLANTED-token"})
    monkeypatch.setenv("FETCH_RAW_TOKEN_EXPIRY", "false")
    monkeypatch.setenv("FSSPEC_GS_NOTICED", "1")
    assert read(listed(gcs)) == DATA[100:60_000]
    assert set(broken.logins) == {"Bearer ya29.PLANTED-token"}
    broken.fail, broken.status, broken.body = 10, 403, b'{"error": "ya29.PLANTED-token"}'
    with pytest.raises(DatasetError, match="the account has no permission") as refused:
        list(FsspecStore("gs").scan(gcs.url("faults")))
    assert "PLANTED" not in str(refused.value)


def test_credentials_that_cannot_be_read_are_one_line(
    gcs: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")
    with pytest.raises(DatasetError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        FsspecStore("gs").status("gs://bucket/a")
