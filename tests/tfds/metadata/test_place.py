"""Several files get to a folder all or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.errors import UsageError
from shardctl.tfds import metadata as place
from shardctl.tfds.metadata import place_files


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    for name in ("a.json", "b.txt", "info.json"):
        (folder / name).write_text(f"new {name}")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_last_file_comes_last(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    assert place_files(made, str(target), last="a.json", force=False)[-1] == "a.json"
    assert contents(target) == contents(made)


@pytest.mark.tensorflow
def test_a_remote_folder_is_one_of_epath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "is_remote", lambda _: True)
    folder = place._Folder(str(tmp_path))  # epath reads and writes local folders as others
    assert folder.read("a.json") is None
    folder.write("a.json", b"one")
    folder.write("a.json", b"two")
    assert folder.read("a.json") == b"two"
    folder.restore("a.json", b"one")
    assert contents(tmp_path) == {"a.json": "one"}
    folder.restore("a.json", None)
    assert contents(tmp_path) == {}
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*/a/b"):
        folder.write("a/b", b"")


def test_others_are_replaced_when_told(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "b.txt").write_text("other")
    (target / "a.json").write_text("new a.json")
    with pytest.raises(UsageError, match=r"has b.txt already, of other contents; --force"):
        place_files(made, str(target), last="info.json", force=False)
    assert contents(target) == {"b.txt": "other", "a.json": "new a.json"}
    place_files(made, str(target), last="info.json", force=True)
    assert contents(target) == contents(made)


@pytest.mark.parametrize("fails_at", ["a.json", "b.txt", "info.json"])
def test_what_fails_on_the_way_leaves_all_as_it_was(
    fails_at: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "b.txt").write_text("other")
    before = contents(target)
    write = place._Folder.write
    failed: list[str] = []

    def failing(self: place._Folder, name: str, data: bytes) -> None:
        if name == fails_at and not failed:
            failed.append(name)
            raise UsageError("the disk is full")
        write(self, name, data)

    monkeypatch.setattr(place._Folder, "write", failing)
    with pytest.raises(UsageError, match="disk is full"):
        place_files(made, str(target), last="info.json", force=True)
    assert contents(target) == before


def test_a_folder_that_cannot_be_written_to_is_named(made: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        place_files(made, str(tmp_path / "none"), last="info.json", force=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        place_files(made, str(tmp_path / "file"), last="info.json", force=False)
