"""What every remote place answers alike: listings, ranges, other versions; by each protocol."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, NotThereError
from shardctl.stores.store import StoredFile, seekable
from shardctl.stores.stores import store_of
from tests.stores.fault_server import Faults
from tests.stores.servers import RemotePlace, lead_to, status

pytestmark = pytest.mark.long

DATA = bytes(range(256)) * 2048  # 512 KiB, each byte known by its place


@pytest.fixture(params=["s3", "gcs", "hub", "memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> RemotePlace:
    """One remote place after the other."""
    if request.param in ("memory", "file"):
        return FsspecPlace(request.param, tmp_path)
    found: RemotePlace = request.getfixturevalue(request.param)
    return found


class FsspecPlace:
    """A place that fsspec knows and shardctl has no store of its own for."""

    def __init__(self, scheme: str, folder: Path) -> None:
        import fsspec

        self._files = fsspec.filesystem(scheme)
        self._base = f"{scheme}://{folder}"

    def url(self, path: str) -> str:
        return f"{self._base}/{path}"

    def put(self, path: str, data: bytes) -> None:
        self._files.makedirs(self.url(path).rpartition("/")[0], exist_ok=True)
        self._files.pipe_file(self.url(path), data)

    def delete(self, path: str) -> None:
        self._files.rm_file(self.url(path))


def opened(file: StoredFile, start: int, stop: int) -> bytes:
    with store_of(file.path).open(file) as source:
        return source.read(start, stop)


def test_a_folder_is_listed_and_its_files_are_read(place: RemotePlace) -> None:
    place.put("listed/a.bin", DATA)
    place.put("listed/b.bin", b"b")
    place.put("listed/sub/c.bin", b"c")
    place.put("listed-too/d.bin", b"d")
    store = store_of(place.url("listed"))
    listed = sorted(store.scan(place.url("listed")), key=lambda file: file.path)
    assert [file.path for file in listed] == [place.url("listed/a.bin"), place.url("listed/b.bin")]
    assert [file.num_bytes for file in listed] == [len(DATA), 1]
    assert store.subfolders(place.url("listed")) == ["sub"]
    assert store.is_folder(place.url("listed"))
    assert not store.is_folder(place.url("nothing"))
    file = status(place.url("listed/a.bin"))
    assert (file.path, file.num_bytes) == (listed[0].path, len(DATA))
    assert store.status(place.url("listed")) is None
    assert store.status(place.url("listed/none")) is None
    assert store.read(place.url("listed/sub/c.bin"), max_num_bytes=5) == b"c"


def test_ranges_are_the_bytes_of_the_file_also_as_from_a_disk(place: RemotePlace) -> None:
    place.put("ranges/a.bin", DATA)
    file = status(place.url("ranges/a.bin"))
    with store_of(file.path).open(file) as source, seekable(source) as read:
        assert source.local_path is None
        assert source.num_bytes == len(DATA)
        assert source.read(0, 1) == DATA[:1]
        assert source.read(1000, 1300) == DATA[1000:1300]
        assert source.read(len(DATA) - 3, len(DATA) + 9) == DATA[-3:]
        assert source.read(7, 7) == source.read(9, 3) == b""
        assert source.read(len(DATA), len(DATA) + 1) == b""
        assert source.read(0, len(DATA)) == DATA
        assert read.seek(-8, 2) == len(DATA) - 8
        assert read.read(100) == DATA[-8:]
        assert read.read() == b""
        read.seek(1000)
        assert read.read(300_000) == DATA[1000:301_000]
        assert read.tell() == 301_000
        assert read.read() == DATA[301_000:]


def test_a_file_that_was_replaced_since_it_was_listed_is_refused(place: RemotePlace) -> None:
    for data in (DATA[:-1], DATA[::-1]):
        place.put("replaced/a.bin", DATA)
        (listed,) = store_of(place.url("replaced")).scan(place.url("replaced"))
        assert listed.version
        place.put("replaced/a.bin", data)
        with pytest.raises(DatasetError, match=r"a\.bin' changed while it was read"):
            opened(listed, 0, 10)
    place.delete("replaced/a.bin")
    with pytest.raises(DatasetError, match=r"a\.bin' changed while it was read: it is gone"):
        opened(listed, 0, 10)


def test_what_is_not_there_is_one_line(place: RemotePlace) -> None:
    store = store_of(place.url("x"))
    with pytest.raises(NotThereError, match=r"cannot read '.*/missing/a': no such file"):
        store.read(place.url("missing/a"), max_num_bytes=5)
    with pytest.raises(NotThereError, match=r"cannot read '.*/missing': no such folder"):
        list(store.scan(place.url("missing")))


def test_names_are_taken_as_they_are(place: RemotePlace) -> None:
    name = "odd/a b+c=d@2-00000-of-00001.bin"
    place.put(name, b"odd")
    (listed,) = store_of(place.url("odd")).scan(place.url("odd"))
    assert opened(listed, 0, 3) == b"odd"


_IN_OTHER_PROCESSES = """
import multiprocessing, sys
from shardctl.stores.stores import store_of

def first_bytes(path):
    store = store_of(path)
    file = store.status(path)
    with store.open(file) as source:
        return source.read(5, 9)

if __name__ == "__main__":
    paths = sys.argv[1:]
    here = [first_bytes(path) for path in paths]
    for kind in ("fork", "spawn"):
        with multiprocessing.get_context(kind).Pool(1) as pool:
            assert pool.map(first_bytes, paths * 2, 1) == here * 2, kind
    print(*here)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
@pytest.mark.parametrize(
    "names",
    [["hub", "web"], pytest.param(["s3", "gcs"], marks=pytest.mark.slow)],
    ids=["small", "large"],
)
def test_forked_and_spawned_processes_read_too(
    names: list[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    places: list[RemotePlace] = [request.getfixturevalue(name) for name in names]
    for place in places:
        place.put("fork/a.bin", DATA)
    script = tmp_path / "read.py"
    script.write_text(_IN_OTHER_PROCESSES)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    paths = [place.url("fork/a.bin") for place in places]
    done = subprocess.run(
        [sys.executable, str(script), *paths],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=environment,
    )
    assert done.stdout.split() == [repr(DATA[5:9])] * len(places), done.stderr


@pytest.mark.parametrize("kind", ["s3", "gs", "hf", "http"])
def test_no_answer_of_a_server_brings_a_secret_to_light(
    kind: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_to(monkeypatch, {"STORAGE_EMULATOR_HOST": faults.base, "AWS_ENDPOINT_URL": faults.base})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN"):
        monkeypatch.setenv(name, f"PLANTED-{name}")
    monkeypatch.setenv("HF_ENDPOINT", faults.base)
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.05")
    faults.fail = 10_000
    faults.headers = {"Location": "http://me:PLANTED@127.0.0.1:1/?token=PLANTED"}
    faults.body = b"<Error><Code>PLANTED-AWS_SECRET_ACCESS_KEY</Code>token=PLANTED</Error>"
    login = faults.base.replace("//", "//me:PLANTED@") + "/a?X-Amz-Signature=PLANTED"
    paths = {"s3": "s3://bucket/a", "gs": "gs://bucket/a", "hf": "hf://datasets/u/d/a"}
    path = paths.get(kind, login)
    store = store_of(path)
    file = StoredFile(path=path, num_bytes=10, version="etag:1")
    said: list[str] = []
    asked: tuple[Callable[[], object], ...] = (
        lambda: store.status(path),
        lambda: list(store.scan(path)),
        lambda: store.read(path, max_num_bytes=100),
        lambda: opened(file, 2, 4),
    )
    statuses = (200, 206, 302, 400, 401, 403, 404, 409, 418, 503)
    for faults.status, ask in itertools.product(statuses, asked):
        try:
            ask()
        except DatasetError as error:
            said.append("".join(traceback.format_exception(error)))
    assert len(said) > 25
    assert not [text for text in said if "PLANTED" in text]
