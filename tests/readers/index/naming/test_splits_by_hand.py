from __future__ import annotations

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.readers.index.naming.shard_sets import Folders
from shardctl.readers.index.naming.splits_by_hand import splits_by_hand
from tests.named_files import ROOT, files_named

_NAMES = ["train/a-0.tar", "train/a-1.tar", "test/a-0.tar", "x-00000-of-00001.tar"]


def chosen(glob: str) -> list[str]:
    folders = Folders(files=files_named(_NAMES), root=ROOT)
    (split,), _ = splits_by_hand(folders, {"s": glob})
    places = sorted(place for found in split.sets for place in found.places)
    return [_NAMES[place] for place in places]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("a-0.tar", [0, 2]),
        ("train/*", [0, 1]),
        ("train", [0, 1]),
        ("./train/", [0, 1]),
        ("**/train/**", [0, 1]),
        (f"{ROOT}/t*/a-0.tar", [0, 2]),
        ("*/*", [0, 1, 2, 3]),
        ("t*/a-{0,1}.tar", [0, 1, 2]),
        ("x@1", [3]),
        ("x@*.tar", [3]),
        ("digits/x@1", [3]),
        ("*", [0, 1, 2, 3]),
    ],
)
def test_a_glob_is_held_against_the_end_of_a_path(glob: str, expected: list[int]) -> None:
    assert chosen(glob) == [_NAMES[place] for place in expected]


@pytest.mark.parametrize("glob", ["rain/*", "a-0", "x@2", "/a-0.tar", "tar"])
def test_a_glob_that_matches_nothing(glob: str) -> None:
    with pytest.raises(DatasetError, match="no file of split 's' matches") as error_info:
        chosen(glob)
    files = ", ".join(f"{ROOT}/{name}" for name in sorted(_NAMES)[:3])  # in whatever order listed
    assert str(error_info.value).endswith(f"files are {files} and 1 more")


def test_what_is_no_name_of_a_split() -> None:
    folders = Folders(files=files_named(_NAMES), root=ROOT)
    for name in ("", "a b", "a[", "-a", "a+b"):
        with pytest.raises(UsageError, match="is no name of a split"):
            splits_by_hand(folders, {name: "*"})
    with pytest.raises(UsageError, match="split 'a' has no glob"):
        splits_by_hand(folders, {"a": ""})
