"""Web servers: folders by their pages, sizes and versions by their headers."""

from __future__ import annotations

import os

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.stores import store_of
from shardctl.stores.web_server import WebServerStore, links_of, version_of
from tests.stores.fault_server import Faults
from tests.stores.servers import FolderServer

THEN = "Sat, 21 Nov 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        ({"ETag": '"a"', "Last-Modified": THEN}, 'etag:"a"'),
        ({"ETag": 'W/"a"'}, 'etag:W/"a"'),
        ({"Last-Modified": THEN}, f"modified:{THEN}"),
        ({"Last-Modified": THEN, "Date": THEN.replace(":00 G", ":01 G")}, f"modified:{THEN}"),
        ({"Last-Modified": THEN, "Date": THEN}, ""),
        ({"Last-Modified": "yesterday"}, ""),
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


URL = "https://host/data/mnist/"

APACHE = """<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><html><body><table>
<tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><a href="/data/">Parent Directory</a></td></tr>
<tr><td><a href="1.0.0/">1.0.0/</a></td></tr>
<tr><td><a href="train-00000-of-00001.tfrecord">train-00000-of-00001.tfr..&gt;</a></td></tr>
</table></body></html>"""
NGINX = """<html><head><title>Index of /data/mnist/</title></head><body><pre><a href="../">../</a>
<a href="1.0.0/">1.0.0/</a>   22-Nov-2026 11:00  -
<a href="train-00000-of-00001.tfrecord">train-00000-of-00001.tfrecord</a>  22-Nov-2026 100
</pre></body></html>"""
ABSOLUTE = """<a href="/data/mnist/1.0.0/">a</a>
<A HREF='https://host/data/mnist/train-00000-of-00001.tfrecord'>b</A>"""


@pytest.mark.parametrize("page", [APACHE, NGINX, ABSOLUTE])
def test_files_and_folders_of_common_servers(page: str) -> None:
    files, folders = links_of(page, URL)
    assert files == [f"{URL}train-00000-of-00001.tfrecord"]
    assert folders == [f"{URL}1.0.0/"]


@pytest.mark.parametrize(
    "link",
    [
        "../other.tfrecord", "/etc/passwd", "//evil/data/mnist/a", "https://evil/data/mnist/a",
        "http://host/data/mnist/a", "a?download=1", "?C=N", "#top", "", "..", ".", "./", "%2e%2e/",
        "a%2Fb", "..%2Fa", "a%5Cb", "javascript:alert(1)", "mailto:a@b", "deeper/a", "a%00",
        "https://[bad/a", "https://user:pw@host/data/mnist/a", "https://host:444/data/mnist/a",
    ],
)  # fmt: skip
def test_links_that_are_no_files_of_the_folder_are_left_out(link: str) -> None:
    assert links_of(f'<a href="{link}">x</a>', URL) == ([], [])


def test_names_stay_as_urls_write_them_and_come_once() -> None:
    page = '<a href="a%20b+c.bin">x</a><a href="a%20b+c.bin">icon</a><a href="b#part">b</a>'
    assert links_of(page, URL) == ([f"{URL}a%20b+c.bin", f"{URL}b"], [])


def test_a_folder_whose_name_is_written_in_two_ways_is_the_same() -> None:
    page = '<a href="/a%20b/x%2D1">x</a>'
    assert links_of(page, "http://h/a%20b/") == (["http://h/a%20b/x%2D1"], [])
    assert links_of(page, "http://h/a b/")[0] == ["http://h/a b/x%2D1"]
