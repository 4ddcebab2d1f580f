"""Which store has the files of a path, what is asked of each, and what is imported for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.stores import (
    AnyPath,
    RemotePath,
    answers,
    files_in,
    is_file,
    is_folder,
    is_remote,
    name_of,
    store_of,
    subfolders,
)
from tests.byte_sources import in_memory
from tests.golden import assert_evaluated


def test_each_scheme_has_its_store() -> None:
    assert_evaluated(globals(), "schemes", is_remote)


def test_chained_urls_are_refused_without_their_password() -> None:
    url = "simplecache::http://me:planted@host/a"
    assert is_remote(url)
    for ask in (store_of, RemotePath):
        with pytest.raises(DatasetError, match="chains by :: are not read") as refused:
            ask(url)
        assert "planted" not in str(refused.value)


def printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "path", "package"),
    [
        ("gcsfs", "gs://b/a", "gcsfs>=2024.2"),
        ("s3fs", "s3://b/a", "s3fs>=2024.2"),
        ("huggingface_hub", "hf://datasets/u/d/a", "huggingface-hub>=0.23"),
        ("requests", "http://127.0.0.1:1/a", "requests>=2.31"),
    ],
)
def test_a_missing_package_says_what_installs_it(module: str, path: str, package: str) -> None:
    code = f"""
import sys; sys.modules[{module!r}] = None
from shardctl.errors import MissingDependencyError
from shardctl.stores.stores import store_of
try: store_of({path!r}).status({path!r})
except MissingDependencyError as error: print(error)
"""
    said = printed(code)
    assert "needs a package: " in said
    assert f" -m pip install '{package}'" in said
    assert said.count("\n") == 1


def test_local_paths_import_nothing_of_networks() -> None:
    code = """
import sys
from shardctl.stores.stores import is_remote, store_of
assert list(store_of("/").scan("/proc/self/net")) is not None and not is_remote("/data")
names = ("fsspec", "requests", "urllib3", "asyncio", "s3fs")
print([name for name in names if name in sys.modules])
"""
    assert printed(code) == "[]\n"


@pytest.mark.long
def test_a_name_imports_nothing_of_places_far_away() -> None:
    """Every command that takes a name pays for it: 8 ms of 200 that `shardctl plan` takes."""
    code = """
import sys
import shardctl
shardctl.plan("imagenet2012")
far = ("fsspec", "sqlite3", "queue", "multiprocessing")
rooms = ("shardctl.stores.f", "shardctl.stores.r", "shardctl.metadata.index.n")
print([name for name in sys.modules if name in far or name.startswith(rooms)])
"""
    assert printed(code) == "[]\n"


@pytest.fixture(params=["disk", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> AnyPath:
    """A folder with a file and two folders, on a disk and elsewhere."""
    folder = tmp_path / "root"
    for name in ("a.json", "b/c.json", "b.2/c.json", ".hidden/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder if request.param == "disk" else RemotePath(in_memory(folder))


def test_files_and_folders_are_told_apart(root: AnyPath) -> None:
    assert [is_file(root / name) for name in ("a.json", "b", "no")] == [True, False, False]
    assert [is_folder(root / name) for name in ("a.json", "b", "no")] == [False, True, False]
    assert subfolders(root) == ["b", "b.2"]
    assert [(name_of(file.path), file.num_bytes) for file in files_in(root)] == [("a.json", 6)]


def test_answers_come_in_order_and_remote_places_are_asked_at_once() -> None:
    together = threading.Barrier(4, timeout=10)

    def ask(number: int) -> int:
        if number < 4:
            together.wait()  # passes where four are asked at once
        time.sleep(0.01 * (8 - number))
        return number

    assert list(answers(ask, range(8), at_once=True)) == list(range(8))
    assert list(answers(str, range(3), at_once=False)) == ["0", "1", "2"]
