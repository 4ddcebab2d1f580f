"""Ranges over HTTP from a server that fails in every way that servers do."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.stores import failures as attempts
from shardctl.stores.concurrently import concurrently
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of
from tests.stores.fault_server import Faults, fault_server
from tests.stores.servers import status

DATA = bytes(range(256)) * 400  # 102,400 bytes


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_FIRST_WAIT", 0.01)
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.2")
    monkeypatch.setenv("SHARDCTL_REMOTE_TIMEOUT", "0.5")


@pytest.fixture
def listed(faults: Faults) -> StoredFile:
    faults.put("a.bin", DATA)
    file = status(faults.url("a.bin"))
    assert file.num_bytes == len(DATA)
    faults.requests.clear()
    return file


def opened(file: StoredFile, start: int = 1000, stop: int = 60_000) -> bytes:
    with store_of(file.path).open(file) as source:
        return source.read(start, stop)


@pytest.mark.parametrize("code", [429, 503])
def test_what_may_pass_is_tried_again(
    faults: Faults, listed: StoredFile, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "30")
    faults.fail, faults.status = 2, code
    assert opened(listed) == DATA[1000:60_000]
    assert len(faults.requests) == 3


def test_a_server_that_asks_for_time_gets_it(faults: Faults, listed: StoredFile) -> None:
    faults.fail, faults.headers = 1, {"Retry-After": "1"}
    begun = time.monotonic()
    assert opened(listed) == DATA[1000:60_000]
    assert time.monotonic() - begun > 0.19  # no longer than the patience


def test_an_answer_that_stays_short_is_truncated_not_the_end(
    faults: Faults, listed: StoredFile
) -> None:
    faults.truncate = 100_000
    with pytest.raises(DatasetError, match=r"truncated: [01] of 2 bytes came"):
        opened(listed, 10, 12)
    faults.ranges = False
    with pytest.raises(DatasetError, match=r"truncated: [0-9]+ of 102400 bytes came"):
        opened(listed, 0, len(DATA))


def test_connections_that_are_reset_are_made_again(
    faults: Faults, listed: StoredFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "30")
    faults.reset = 2
    assert opened(listed) == DATA[1000:60_000]
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.2")
    faults.reset = 1000
    with pytest.raises(DatasetError, match="the connection broke"):
        opened(listed)


@pytest.mark.long
def test_a_silent_server_is_given_up(faults: Faults, listed: StoredFile) -> None:
    faults.delay = 3.0
    begun = time.monotonic()
    with pytest.raises(DatasetError, match=r"no answer in time \(SHARDCTL_REMOTE_TIMEOUT"):
        opened(listed)
    assert time.monotonic() - begun < 2


@pytest.mark.long
def test_a_server_without_ranges_is_refused_before_its_body(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(50 << 20)
    faults.put("large.bin", data)
    faults.ranges = False
    file = StoredFile(path=faults.url("large.bin"), num_bytes=len(data))
    with pytest.raises(DatasetError, match="the server ignores Range requests"):
        opened(file, 10, 20)
    time.sleep(0.05)
    assert faults.sent < 8 << 20  # what fits into the buffers of sockets
    assert opened(file, 0, len(data)) == data  # all of it needs no range


@pytest.mark.parametrize(
    "said",
    ["bytes 0-58999/102400", "bytes 1000-99999/102400", "bytes */102400", "bytes", "x 1-2/3"],
)
def test_another_range_than_was_asked_for_is_refused(
    faults: Faults, listed: StoredFile, said: str
) -> None:
    faults.lie = said
    with pytest.raises(DatasetError, match="asked for the bytes 1000-59999, the server says"):
        opened(listed)


def test_a_file_of_another_size_is_another_file(faults: Faults) -> None:
    faults.put("a.bin", DATA)
    file = StoredFile(path=faults.url("a.bin"), num_bytes=len(DATA) + 1)
    with pytest.raises(DatasetError, match="changed while it was read: it has 102,400 bytes, not"):
        opened(file)
    with pytest.raises(DatasetError, match="changed while it was read"):
        opened(file, 0, file.num_bytes)


def test_a_file_replaced_between_two_ranges_is_refused(faults: Faults, listed: StoredFile) -> None:
    for file in (listed, StoredFile(path=listed.path, num_bytes=listed.num_bytes)):  # of no version
        faults.put("a.bin", DATA)
        with store_of(listed.path).open(file) as source:
            assert source.read(0, 10) == DATA[:10]
            faults.put("a.bin", DATA[::-1])
            with pytest.raises(DatasetError, match="changed while it was read"):
                source.read(10, 20)


def test_a_file_replaced_within_a_broken_answer_is_refused(
    faults: Faults, listed: StoredFile
) -> None:
    faults.truncate = 1

    def replaced() -> None:
        if len(faults.requests) == 2:
            faults.put("a.bin", DATA[::-1])

    faults.changed = replaced
    with pytest.raises(DatasetError, match="changed while it was read"):
        opened(listed)


def test_weak_etags_are_compared_without_a_condition(faults: Faults) -> None:
    faults.weak = True
    faults.put("a.bin", DATA)
    file = status(faults.url("a.bin"))
    assert file.version.startswith("etag:W/")
    assert opened(file) == DATA[1000:60_000]
    faults.put("a.bin", DATA[::-1])
    with pytest.raises(DatasetError, match="changed while it was read"):
        opened(file)


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_what_is_compressed_on_its_way_is_refused(
    faults: Faults, listed: StoredFile, encoding: str
) -> None:
    faults.encoding = encoding
    with pytest.raises(DatasetError, match=f"Content-Encoding {encoding}, so that places"):
        opened(listed)


def test_a_file_that_lies_there_compressed_is_its_bytes(faults: Faults) -> None:
    import gzip

    packed = gzip.compress(DATA)
    faults.put("a.tfrecord.gz", packed)
    faults.encoding = "x-gzip"
    file = status(faults.url("a.tfrecord.gz"))
    assert opened(file, 0, 100) == packed[:100]
    assert store_of(faults.base).read(file.path, max_num_bytes=9999) == packed


def test_a_login_goes_to_its_own_host_alone(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fault_server() as other:
        other.put("a.bin", DATA)
        faults.redirect = other.base.replace("127.0.0.1", "localhost")
        file = status(faults.url("a.bin").replace("//", "//user:pass-word@"))
        assert opened(file) == DATA[1000:60_000]
        assert all(login.startswith("Basic ") for login in faults.logins)
        assert set(other.logins) == {""}


@pytest.mark.long
def test_no_more_requests_run_at_once_than_the_limit(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDCTL_REMOTE_REQUESTS", "3")
    data = bytes(range(256)) * 40_000
    faults.put("a.bin", data)
    file = status(faults.url("a.bin"))
    faults.delay = 0.02
    with store_of(file.path).open(file) as source:
        places = range(0, 10_000_000, 700_000)
        read = concurrently(lambda at: source.read(at, at + 7), places, at_once=16)
        assert list(read) == [data[at : at + 7] for at in places]
    assert 1 < faults.most_open <= 3


def test_login_and_permission_say_the_way_out(faults: Faults, listed: StoredFile) -> None:
    faults.fail, faults.status = 100, 401
    with pytest.raises(DatasetError, match=r"\(401\); a user and a password are taken from ~/.net"):
        opened(listed)


def test_hosts_that_are_not_there_end_in_one_line() -> None:
    with pytest.raises(DatasetError, match=r"there is no host of this name|cannot be resolved"):
        store_of("http://x").status("http://host.invalid/a")
    with pytest.raises(DatasetError, match=r"the connection was refused \(after"):
        store_of("http://x").status("http://127.0.0.1:1/a")


@pytest.mark.parametrize("url", ["//[bad/a", "//a b/c", "//:x/a", "//h:99999/a"])
def test_malformed_urls_are_one_line(url: str) -> None:
    with pytest.raises(DatasetError) as refused:
        status(f"http:{url}")
    assert "\n" not in str(refused.value)


def test_a_whole_file_of_untold_length_is_read_to_its_end(faults: Faults) -> None:
    faults.put("a.bin", DATA)
    faults.no_length, faults.ranges = True, False
    assert opened(StoredFile(path=faults.url("a.bin"), num_bytes=len(DATA)), 0, len(DATA)) == DATA
    shorter = StoredFile(path=faults.url("a.bin"), num_bytes=len(DATA) - 1)
    with pytest.raises(DatasetError, match="changed while it was read: it has more than 102,399"):
        opened(shorter, 0, shorter.num_bytes)


@pytest.mark.parametrize(
    ("code", "headers", "match"),
    [
        (301, {"Location": ""}, "the server answers 301 Moved Permanently"),
        (304, {}, "the server answers 304 Not Modified"),
        (206, {"Content-Range": f"bytes 0-0/{'9' * 5000}"}, "does not say how many bytes it has"),
        (206, {"Content-Range": "bytes 0-0/²"}, "does not say how many bytes it has"),
        (503, {"Retry-After": "²"}, "503"),
    ],
)
def test_an_answer_that_is_no_file_is_refused(
    faults: Faults, code: int, headers: dict[str, str], match: str
) -> None:
    faults.fail, faults.status, faults.body, faults.headers = 99, code, b"", headers
    with pytest.raises(DatasetError, match=match):
        status(faults.url("a.bin"))


def test_a_server_that_drips_bytes_is_left(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(handler: Any, body: bytes) -> None:
        with contextlib.suppress(OSError):
            for _ in range(200):
                handler.wfile.write(body[:1])
                time.sleep(0.05)

    monkeypatch.setattr("tests.stores.fault_server._Handler.send_body", drip)
    faults.put("a.bin", DATA)
    begin = time.monotonic()
    with pytest.raises(DatasetError, match="less than 20 kB/s"):
        store_of("http://x").read(faults.url("a.bin"), max_num_bytes=1 << 28)
    assert time.monotonic() - begin < 5


def test_a_proxy_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://me:planted@127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        DatasetError, match=r"the proxy \(HTTP_PROXY, HTTPS_PROXY\) does"
    ) as refused:
        store_of("http://x").status("http://example.invalid/a")
    assert "planted" not in str(refused.value)
