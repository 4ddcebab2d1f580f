"""Google Cloud Storage: long listings, conditions, faults, logins."""

from __future__ import annotations

import json

import pytest

from shardctl.errors import DatasetError
from shardctl.files.stores.places.gcs import GcsStore
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.transfer import failures as attempts
from tests.files.stores.fault_server import Faults
from tests.files.stores.servers import GcsServer, lead_to

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
    file = GcsStore().status(gcs.url("faults/a.bin"))
    assert file is not None
    assert file.version.startswith("generation:")
    return file


def read(file: StoredFile) -> bytes:
    with GcsStore().open(file) as source:
        return source.read(100, 60_000)


def test_ten_thousand_keys_are_listed_page_by_page(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The emulator takes minutes to write them; its pages, by its own words.
    lead_to(monkeypatch, {"STORAGE_EMULATOR_HOST": faults.base})
    monkeypatch.setattr("tests.files.stores.fault_server._Handler.own_file", pages_of_10_000)
    for number, file in enumerate(GcsStore().scan("gs://bucket/many")):
        assert file.path == f"gs://bucket/many/{number:05d}"
        assert len(faults.requests) == number // 1000 + 1  # no more than a page is held
    assert number == 9_999
    assert "delimiter=%2F&prefix=many%2F&maxResults=1000" in faults.requests[0]


def pages_of_10_000(handler: object) -> None:
    from urllib.parse import parse_qs, urlsplit

    query = parse_qs(urlsplit(handler.path).query)  # type: ignore[attr-defined]
    first, count = int(query.get("pageToken", ["0"])[0]), int(query["maxResults"][0])
    items = [
        {"name": f"many/{number:05d}", "size": "1", "generation": str(number + 1)}
        for number in range(first, min(first + count, 10_000))
    ]
    more = {"nextPageToken": str(first + count)} if first + count < 10_000 else {}
    handler.answer(200, json.dumps({"items": items, **more}).encode(), {})  # type: ignore[attr-defined]


def test_listings_of_the_emulator_in_pages(gcs: GcsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardctl.files.stores.places.gcs._PAGE", 4)
    for number in range(11):
        gcs.put(f"pages/{number:02d}", b"x")
        gcs.put(f"pages/sub{number % 3}/x", b"x")
    names = [file.path.rpartition("/")[2] for file in GcsStore().scan(gcs.url("pages"))]
    assert sorted(names) == [f"{number:02d}" for number in range(11)]
    assert GcsStore().subfolders(gcs.url("pages")) == ["sub0", "sub1", "sub2"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(gcs: GcsServer, broken: Faults, status: int) -> None:
    file = listed(gcs)
    broken.fail, broken.status, broken.truncate, broken.reset = 1, status, 1, 1
    assert read(file) == DATA[100:60_000]


def test_a_generation_is_asked_for_and_checked(
    gcs: GcsServer, faults: Faults, broken: Faults
) -> None:
    file = listed(gcs)
    read(file)
    generation = file.version.removeprefix("generation:")
    assert any(f"alt=media&ifGenerationMatch={generation}" in one for one in broken.requests)
    broken.fail, broken.status = 1, 412
    with pytest.raises(DatasetError, match="changed while it was read: it is another file now"):
        read(file)
    broken.behind, broken.redirect, broken.files = "", "", {}
    broken.fail, broken.status, broken.body = 1, 206, DATA[100:60_000]
    broken.headers = {
        "Content-Range": f"bytes 100-59999/{len(DATA)}",
        "X-Goog-Generation": "1",
    }
    with pytest.raises(DatasetError, match="changed while it was read"):
        read(file)


def test_no_bucket_is_one_line(gcs: GcsServer) -> None:
    with pytest.raises(DatasetError, match="'gs://nobucket/a': there is no bucket of this name"):
        list(GcsStore().scan("gs://nobucket/a"))


def test_a_private_bucket_says_the_way_out(gcs: GcsServer, broken: Faults) -> None:
    broken.fail, broken.status, broken.body = 10, 401, b'{"error": {"message": "PLANTED"}}'
    with pytest.raises(
        DatasetError, match=r"no Google credentials: run `gcloud auth application-default login`"
    ) as refused:
        list(GcsStore().scan(gcs.url("faults")))
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
        list(GcsStore().scan(gcs.url("faults")))
    assert "PLANTED" not in str(refused.value)


def test_credentials_that_cannot_be_read_are_one_line(
    gcs: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")
    with pytest.raises(DatasetError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        GcsStore().status("gs://bucket/a")
