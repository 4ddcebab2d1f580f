"""The hub: pages, revisions, private repositories, files on another host; as its client sees it."""

from __future__ import annotations

import hashlib

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.fsspec_store import FsspecStore
from shardctl.stores.store import StoredFile
from tests.stores.hub_server import Hub
from tests.stores.servers import status

DATA = bytes(range(256)) * 400


def read(file: StoredFile, start: int = 100, stop: int = 60_000) -> bytes:
    with FsspecStore("hf").open(file) as source:
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
    listed = status(hub.url("1.0.0/a.bin"))
    assert listed.version == f"etag:{hashlib.sha256(DATA).hexdigest()}"
    assert files.info(f"{folder}/a.bin")["lfs"]["sha256"] == listed.version.removeprefix("etag:")


@pytest.mark.long
def test_ten_thousand_files_come_in_pages(hub: Hub) -> None:
    for number in range(10_000):
        hub.put(f"many/{number:05d}", b"x")
    found = [file.path for file in FsspecStore("hf").scan(hub.url("many"))]
    assert found == [hub.url(f"many/{number:05d}") for number in range(10_000)]
    assert len(hub.requests) == 11


def test_revisions_are_part_of_the_path(hub: Hub) -> None:
    hub.put("a.bin", DATA)
    commit = hub.commit()
    for revision in ("main", commit, "refs/convert/parquet", "refs%2Fconvert%2Fparquet"):
        root = f"hf://datasets/user/digits@{revision}"
        (file,) = FsspecStore("hf").scan(root)
        assert file.path == f"{root}/a.bin"
        assert read(file) == DATA[100:60_000]
    with pytest.raises(DatasetError, match="the repository has no such revision"):
        list(FsspecStore("hf").scan("hf://datasets/user/digits@v9"))


def test_the_token_goes_to_the_hub_and_not_to_its_storage(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.private = True
    hub.put("a.bin", DATA)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    (file,) = FsspecStore("hf").scan(hub.url("").rstrip("/"))
    assert read(file) == DATA[100:60_000]
    assert hub.leaked == []


@pytest.mark.parametrize("token", ["", "hf_PLANTED_wrong"])
def test_private_repositories_say_the_way_out(
    hub: Hub, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.private = True
    monkeypatch.setenv("HF_TOKEN", token)
    hub.put("a.bin", DATA)
    with pytest.raises(
        DatasetError, match=r"needs a login|credentials are refused, .*401.*: run `hf auth login`"
    ):
        FsspecStore("hf").status(hub.url("a.bin"))
    with pytest.raises(DatasetError, match=r"HF_TOKEN") as refused:
        list(FsspecStore("hf").scan(hub.url("")))
    assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("hf://datasets/user/none/a", "there is no such repository, or it is private"),
        ("hf://", "it must be hf://datasets/user/name/"),
        ("hf://datasets", "it must be hf://datasets/user/name/"),
        ("hf://datasets/user", "it must be hf://datasets/user/name/"),
        ("hf://user", "it must be hf://datasets/user/name/"),
    ],
)
def test_a_repository_that_is_not_there_is_one_line(hub: Hub, path: str, said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        list(FsspecStore("hf").scan(path))
