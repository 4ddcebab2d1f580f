"""Web servers: sizes and versions by their headers, logins, and folders that are not listed."""

from __future__ import annotations

import os

import pytest

from shardctl.base.text import public_url
from shardctl.errors import DatasetError
from shardctl.stores.stores import store_of
from shardctl.stores.web_server import WebServerStore, version_of
from tests.golden import assert_evaluated
from tests.stores.fault_server import Faults
from tests.stores.servers import FolderServer, status

THEN = "Sat, 21 Nov 2026 10:00:00 GMT"


def test_a_version_is_what_headers_tell_for_sure() -> None:
    assert_evaluated(globals(), "versions_of_web", version_of)


def test_metadata_needs_no_ranges(faults: Faults) -> None:
    faults.ranges = False
    faults.put("1.0.0/dataset_info.json", b"{}")
    path = faults.url("1.0.0/dataset_info.json")
    assert WebServerStore().read(path, max_num_bytes=10) == b"{}"


def test_a_file_that_is_replaced_just_now_is_not_the_one_that_was_listed(web: FolderServer) -> None:
    web.put("replaced.bin", b"0123456789")
    os.utime(web.folder / "replaced.bin", (1e9, 1e9))
    file = status(web.url("replaced.bin"))
    assert file.version == "modified:Sun, 09 Sep 2001 01:46:40 GMT"
    web.put("replaced.bin", b"another 10")
    with (
        pytest.raises(DatasetError, match="changed while it was read"),
        WebServerStore().open(file) as source,
    ):
        source.read(2, 8)


def test_an_empty_file_has_no_bytes(web: FolderServer) -> None:
    web.put("empty", b"")
    file = status(web.url("empty"))
    with WebServerStore().open(file) as source:
        assert (file.num_bytes, source.read(0, 10)) == (0, b"")
    assert WebServerStore().read(web.url("empty"), max_num_bytes=1) == b""


def test_files_are_asked_for_by_get_which_signed_urls_answer(faults: Faults) -> None:
    for name, data in (("a.bin", bytes(1000)), ("empty.bin", b"")):
        faults.put(name, data)
        assert status(faults.url(f"{name}?X-Amz-Signature=s")).num_bytes == len(data)
    assert {asked.partition(" ")[0] for asked in faults.requests} == {"GET"}
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
    assert status(faults.url("a.bin")).num_bytes == 1000  # a range tells


def test_folders_are_not_listed_and_the_way_out_is_said(web: FolderServer) -> None:
    web.put("folder/a.bin", b"a")
    store = store_of(web.base)
    asked = (lambda f: list(store.scan(f)), store.subfolders, store.is_folder)
    for ask in asked:
        with pytest.raises(DatasetError, match="/folder': no folder of a web server is listed; na"):
            ask(web.url("folder"))


def test_names_are_taken_as_urls_write_them(web: FolderServer) -> None:
    web.put("odd/a b+c=d@2-00000-of-00001.bin", b"odd")
    url = web.url("odd/a%20b+c=d@2-00000-of-00001.bin")
    file = status(url)
    assert (file.path, file.num_bytes) == (url, 3)
    assert store_of(url).status(web.url("odd")) is None  # the folder so called
    assert store_of(url).read(url, max_num_bytes=3) == b"odd"


def test_a_login_in_a_url_is_sent_and_no_part_of_paths(faults: Faults) -> None:
    faults.put("d/a.bin", bytes(range(100)))
    folder = public_url(faults.url("d").replace("//", "//me:pw@") + "?X-Amz-Signature=planted")
    store = store_of(folder)
    assert folder == faults.url("d")
    listed = status(faults.url("d/a.bin"))
    assert listed.path == faults.url("d/a.bin")
    with store.open(listed) as source:
        assert source.read(5, 9) == bytes(range(5, 9))
    assert store.read(listed.path, max_num_bytes=100) == bytes(range(100))
    assert set(faults.logins) == {"Basic bWU6cHc="}
    assert all("X-Amz-Signature=planted" in request for request in faults.requests)
