"""Pages on which web servers list a folder: which links are files of it."""

from __future__ import annotations

import pytest

from shardctl.stores.web_server import links_of

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
