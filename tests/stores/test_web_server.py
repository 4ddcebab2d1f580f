"""Web servers: folders by their pages, sizes and versions by their headers."""

from __future__ import annotations

import os

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.stores import store_of
from shardctl.stores.web_server import WebServerStore, version_of
from tests.stores.fault_server import Faults
from tests.stores.servers import FolderServer


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({"ETag": '"a"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}, 'etag:"a"'),
        ({"ETag": 'W/"a"'}, 'etag:W/"a"'),
        (
            {"Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"},
            "modified:Sat, 21 Nov 2026 10:00:00 GMT",
        ),
        (
            {
                "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT",
                "Date": "Sat, 21 Nov 2026 10:00:01 GMT",
            },
            "modified:Sat, 21 Nov 2026 10:00:00 GMT",
        ),
        (
            {
                "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT",
                "Date": "Sat, 21 Nov 2026 10:00:00 GMT",
            },
            "",
        ),
        ({"Last-Modified": "yesterday"}, ""),
        ({}, ""),
    ],
)
def test_a_version_is_what_headers_tell_for_sure(headers: dict[str, str], version: str) -> None:
    assert version_of(headers) == version


def test_metadata_needs_no_ranges(web_without_ranges: FolderServer) -> None:
    web_without_ranges.put("1.0.0/dataset_info.json", b"{}")
    path = web_without_ranges.url("1.0.0/dataset_info.json")
    assert WebServerStore().read(path, max_num_bytes=10) == b"{}"
    assert WebServerStore().subfolders(web_without_ranges.base) == ["1.0.0"]


def test_a_file_that_is_replaced_just_now_is_not_the_one_that_was_listed(web: FolderServer) -> None:
    web.put("replaced.bin", b"0123456789")
    os.utime(web.folder / "replaced.bin", (1e9, 1e9))
    file = WebServerStore().status(web.url("replaced.bin"))
    assert file is not None
    assert file.version == "modified:Sun, 09 Sep 2001 01:46:40 GMT"
    web.put("replaced.bin", b"another 10")
    with (
        pytest.raises(DatasetError, match="changed while it was read"),
        WebServerStore().open(file) as source,
    ):
        source.read(2, 8)


def test_an_empty_file_has_no_bytes(web: FolderServer) -> None:
    web.put("empty", b"")
    file = WebServerStore().status(web.url("empty"))
    assert file is not None
    assert file.num_bytes == 0
    with WebServerStore().open(file) as source:
        assert source.read(0, 10) == b""
    assert WebServerStore().read(web.url("empty"), max_num_bytes=1) == b""


def test_a_server_that_answers_get_alone_is_asked_by_get(faults: Faults) -> None:
    faults.put("a.bin", bytes(1000))
    faults.put("empty.bin", b"")
    faults.no_head = True
    file = WebServerStore().status(faults.url("a.bin?X-Amz-Signature=s"))
    assert file is not None
    assert file.num_bytes == 1000
    empty = WebServerStore().status(faults.url("empty.bin"))
    assert empty is not None
    assert empty.num_bytes == 0
    assert WebServerStore().status(faults.url("none")) is None


def test_a_file_of_unknown_size_is_refused(faults: Faults) -> None:
    faults.put("a.bin", bytes(1000))
    faults.no_length, faults.ranges = True, False
    with pytest.raises(DatasetError, match="does not say how many bytes it has"):
        WebServerStore().status(faults.url("a.bin"))
    assert WebServerStore().read(faults.url("a.bin"), max_num_bytes=1000) == bytes(1000)
    with pytest.raises(DatasetError, match="is larger than 999 bytes"):
        WebServerStore().read(faults.url("a.bin"), max_num_bytes=999)
    faults.ranges = True
    file = WebServerStore().status(faults.url("a.bin"))
    assert file is not None  # a range tells
    assert file.num_bytes == 1000


def test_a_server_without_a_page_for_a_folder_says_the_way_out(faults: Faults) -> None:
    faults.put("folder/", b'{"files": []}')
    with pytest.raises(DatasetError, match="has no page that lists this folder; name the files"):
        list(WebServerStore().scan(faults.url("folder")))
    assert not WebServerStore().is_folder(faults.url("folder"))


def test_links_to_what_is_not_there_are_left_out(faults: Faults) -> None:
    faults.put("folder/", b'<a href="a.bin">a</a><a href="gone.bin">b</a>')
    faults.put("folder/a.bin", b"a")
    faults.extra = {"Content-Type": "text/html"}
    (file,) = WebServerStore().scan(faults.url("folder"))
    assert file.path == faults.url("folder/a.bin")


def test_a_login_in_a_url_is_sent_and_no_part_of_paths(faults: Faults) -> None:
    faults.put("d/a.bin", bytes(range(100)))
    faults.put("d/", b'<a href="a.bin">a</a>')
    faults.extra = {"Content-Type": "text/html"}
    folder = faults.url("d").replace("//", "//me:planted@") + "?X-Amz-Signature=planted"
    store = store_of(folder)
    (listed,) = store.scan(folder)
    assert listed == store.status(faults.url("d/a.bin"))
    assert listed.path == faults.url("d/a.bin")
    with store.open(listed) as source:
        assert source.read(5, 9) == bytes(range(5, 9))
    assert store.read(listed.path, max_num_bytes=100) == bytes(range(100))
    assert store.is_folder(faults.url("d"))
    assert all(login.startswith("Basic ") for login in faults.logins)
    assert all("X-Amz-Signature=planted" in request for request in faults.requests)
