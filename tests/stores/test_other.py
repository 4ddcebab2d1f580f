"""Places that fsspec alone knows: versions, places that give less than was asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import fsspec
import pytest

from shardctl.errors import DatasetError, MissingDependencyError
from shardctl.stores import failures as attempts
from shardctl.stores.fsspec_store import FsspecStore, version_of
from shardctl.stores.stores import store_of
from tests.golden import assert_evaluated

DATA = bytes(range(256)) * 40


def test_a_version_is_the_best_that_an_entry_says() -> None:
    assert_evaluated(globals(), "versions", version_of, datetime)


class Odd(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
    """A place that gives less, or all, of what is asked for."""

    protocol = "oddplace"
    gives = "less"
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("oddplace://").strip("/")

    def cat_file(self, path: str, start: int = 0, end: int = 0, **_: Any) -> bytes:
        data: bytes = super().cat_file(path)
        return data[start : end - 1] if self.gives == "less" else data


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> type[Odd]:
    monkeypatch.setattr(attempts, "_FIRST_WAIT", 0.01)
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", "0.1")
    fsspec.register_implementation("oddplace", Odd, clobber=True)
    fsspec.filesystem("oddplace").pipe_file("/d/a.bin", DATA)
    return Odd


def test_a_place_that_gives_less_is_truncated(odd: type[Odd]) -> None:
    (file,) = store_of("oddplace://d").scan("oddplace://d")
    odd.gives = "less"
    with store_of(file.path).open(file) as source:
        with pytest.raises(DatasetError, match=r"truncated: 9 of 10 bytes came"):
            source.read(10, 20)
        odd.gives = "all"
        with pytest.raises(DatasetError, match="in parts: the server ignores Range"):
            source.read(10, 20)


def test_a_file_that_changes_while_it_is_read_is_noticed_at_its_end(odd: type[Odd]) -> None:
    fsspec.filesystem("memory").pipe_file("/change/a.bin", DATA)
    (file,) = FsspecStore("memory").scan("memory://change")

    def read_while_it_changes() -> None:
        with FsspecStore("memory").open(file) as source:
            assert source.read(0, 5) == DATA[:5]
            fsspec.filesystem("memory").pipe_file("/change/a.bin", DATA[::-1])

    with pytest.raises(DatasetError, match="changed while it was read"):
        read_while_it_changes()


def test_a_scheme_that_nobody_knows_is_one_line() -> None:
    with pytest.raises(DatasetError, match="unknown scheme nosuch://; there are gs, s3"):
        store_of("nosuch://a/b")


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setitem(__import__("sys").modules, "adlfs", None)
    with pytest.raises(MissingDependencyError, match=r"reading abfs:// needs a package: .*adlfs"):
        store_of("abfs://c@a/x").status("abfs://c@a/x")
