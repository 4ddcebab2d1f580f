"""The hub: pages, revisions, private repositories, files on another host; as its client sees it."""

from __future__ import annotations

import hashlib

import pytest

from shardctl.errors import DatasetError
from shardctl.files.stores.places.hub import HubStore
from shardctl.files.stores.store import StoredFile
from tests.files.stores.hub_server import Hub

DATA = bytes(range(256)) * 400


def read(file: StoredFile, start: int = 100, stop: int = 60_000) -> bytes:
    with HubStore().open(file) as source:
        return source.read(start, stop)


@pytest.mark.long
def test_the_hub_of_the_tests_is_one_to_huggingface_hub(hub: Hub) -> None:
    from huggingface_hub import HfFileSystem

    hub.put("1.0.0/a.bin", DATA)
    hub.put("1.0.0/dataset_info.json", b"{}")
    files = HfFileSystem(endpoint=hub.endpoint, skip_instance_cache=True)
    folder = f"datasets/{hub.repository}/1.0.0"
    assert sorted(files.ls(folder, detail=False)) == [
        f"{folder}/a.bin",
        f"{folder}/dataset_info.json",
    ]
    assert files.cat_file(f"{folder}/a.bin", start=100, end=200) == DATA[100:200]
    listed = HubStore().status(hub.url("1.0.0/a.bin"))
    assert listed is not None
    assert listed.version == f"etag:{hashlib.sha256(DATA).hexdigest()}"
    assert files.info(f"{folder}/a.bin")["lfs"]["sha256"] == listed.version.removeprefix("etag:")


@pytest.mark.long
def test_ten_thousand_files_come_in_pages(hub: Hub) -> None:
    for number in range(10_000):
        hub.put(f"many/{number:05d}", b"x")
    found = [file.path for file in HubStore().scan(hub.url("many"))]
    assert found == [hub.url(f"many/{number:05d}") for number in range(10_000)]
    assert len(hub.requests) == 10


def test_revisions_are_part_of_the_path(hub: Hub) -> None:
    hub.put("a.bin", DATA)
    commit = hub.commit()
    for revision in ("main", commit, "refs/convert/parquet", "refs%2Fconvert%2Fparquet"):
        root = f"hf://datasets/user/digits@{revision}"
        (file,) = HubStore().scan(root)
        assert file.path == f"{root}/a.bin"
        assert read(file) == DATA[100:60_000]
    with pytest.raises(DatasetError, match="the repository has no such revision"):
        list(HubStore().scan("hf://datasets/user/digits@v9"))


def test_all_ranges_are_of_the_commit_that_was_listed(hub: Hub) -> None:
    hub.put("a.bin", DATA)
    (file,) = HubStore().scan(hub.url("").rstrip("/"))
    store = HubStore()
    with store.open(file) as source:
        assert source.read(0, 10) == DATA[:10]
        assert source.read(20, 30) == DATA[20:30]
    asked = [request for request in hub.requests if "/resolve/" in request]
    assert asked == [
        "HEAD /datasets/user/digits/resolve/main/a.bin",
        f"GET /datasets/user/digits/resolve/{hub.commit()}/a.bin bytes=0-9",
        f"GET /datasets/user/digits/resolve/{hub.commit()}/a.bin bytes=20-29",
    ]
    hub.put("a.bin", DATA[::-1])
    with pytest.raises(DatasetError, match="changed while it was read"):
        read(file)


def test_the_token_goes_to_the_hub_and_not_to_its_storage(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.private = True
    hub.put("a.bin", DATA)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    (file,) = HubStore().scan(hub.url("").rstrip("/"))
    assert read(file) == DATA[100:60_000]
    assert hub.leaked == []


@pytest.mark.parametrize("token", ["", "hf_PLANTED_wrong"])
def test_private_repositories_say_the_way_out(
    hub: Hub, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.private = True
    monkeypatch.setenv("HF_TOKEN", token)
    hub.put("a.bin", DATA)
    with pytest.raises(DatasetError, match=r"or it is private and needs a login: run `hf auth"):
        HubStore().status(hub.url("a.bin"))
    with pytest.raises(DatasetError, match=r"HF_TOKEN") as refused:
        list(HubStore().scan(hub.url("")))
    assert "PLANTED" not in str(refused.value)


def test_a_repository_that_is_not_there_is_one_line(hub: Hub) -> None:
    with pytest.raises(DatasetError, match="there is no such repository, or it is private"):
        list(HubStore().scan("hf://datasets/user/none/a"))


@pytest.mark.parametrize("path", ["hf://", "hf://datasets", "hf://datasets/user", "hf://user"])
def test_a_path_without_a_repository_says_how_it_is_written(hub: Hub, path: str) -> None:
    with pytest.raises(DatasetError, match="it must be hf://datasets/user/name/"):
        HubStore().is_folder(path)


def test_a_mirror_without_commits_is_asked_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.put("a.bin", DATA)
    (file,) = HubStore().scan(hub.url("").rstrip("/"))
    monkeypatch.setattr(Hub, "commit", lambda self: "")
    with HubStore().open(file) as source:
        assert source.read(0, 10) == DATA[:10]
        hub.put("a.bin", DATA[::-1])
        with pytest.raises(DatasetError, match="changed while it was read"):
            source.read(10, 20)
