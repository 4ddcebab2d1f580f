from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.metadata.index.listing import folders_of, no_match, nothing_in, with_subfolders
from shardctl.stores.stores import LocalStore


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/x/train", "a/y", "b/x/train", "_c/x", ".d/x"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/file").touch()
    (tmp_path / "a/train-0.tar").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("a/", ["a/"]),
        ("*/", ["a/", "b/"]),
        ("*/x/", ["a/x/", "b/x/"]),
        ("*/[xy]/", ["a/x/", "a/y/", "b/x/"]),
        ("**/train/", ["a/x/train/", "b/x/train/"]),
        ("a/**/", ["a/", "a/x/", "a/x/train/", "a/y/"]),
        ("nowhere/*/", []),
        ("*/nowhere/", []),
        ("a/file/", []),
    ],
)
def test_folders_that_a_glob_means(tree: Path, glob: str, found: list[str]) -> None:
    expected = [f"{tree}/{name}" for name in found]
    assert list(folders_of(LocalStore(), f"{tree}/{glob}")) == expected


def test_a_folder_and_all_below_it(tree: Path) -> None:
    below = ["", "x/", "x/train/", "y/"]
    found = list(with_subfolders(LocalStore(), f"{tree}/a/"))
    assert found == [f"{tree}/a/{name}" for name in below]


def test_what_is_there_instead(tree: Path) -> None:
    store = LocalStore()
    assert no_match(store, f"{tree}/a/trian-0.tar").endswith("did you mean train-0.tar?")
    assert no_match(store, f"{tree}/s3:/data/a*").endswith("pathlib makes one: give it as text")
    assert no_match(store, f"{tree}/c/d").endswith(f"there is no folder '{tree}/c/'")
    assert no_match(store, f"{tree}/a/q*").endswith("its folder has file, train-0.tar, x/, y/")
    assert nothing_in(store, f"{tree}/b").endswith("it has x/")
    (tree / "lost.tar").symlink_to("gone")
    assert no_match(store, f"{tree}/lost.tar").startswith(f"'{tree}/lost.tar' is neither")
    assert "is neither a file nor a folder" in no_match(store, "/dev/null")
