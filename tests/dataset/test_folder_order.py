"""Folders told apart by what their metadata says, then by what is left of their paths."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from shardctl.dataset.identity import (
    FolderIdentity,
    FolderOrder,
    fingerprints_tell_order,
    first_of_two,
    folder_order,
    order_in_words,
    paths_left,
)

A = FolderIdentity(path="a", title="toy:1.0.0", fingerprint="f", num_bytes=8, splits=("train",))
B, C = replace(A, path="b"), replace(A, path="c")


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ([], []),
        (["/data/a"], ["."]),
        (["/data/a", "/data/b"], ["a", "b"]),
        (["/data/a/toy/1.0.0", "/data/b/toy/1.0.0"], ["a/toy/1.0.0", "b/toy/1.0.0"]),
        (["/data", "/data/b/"], [".", "b"]),
        (["/data/ab", "/data/ac"], ["ab", "ac"]),
        (["a", "/a"], ["a", "/a"]),
    ],
)
def test_only_what_differs_in_a_path_is_left(paths: list[str], left: list[str]) -> None:
    assert paths_left(paths) == left
    if len(paths) > 1 and paths[0].startswith("/"):
        assert paths_left([f"/mnt/disk{path}" for path in paths]) == left  # all were moved
        assert paths_left(left) == left


@pytest.mark.parametrize(
    ("then", "now", "order"),
    [
        ([], [], "same"),
        ([A, B], [A, B], "same"),
        ([A, B], [B, A], "other"),
        ([A, B, C], [C, A, B], "other"),
        ([A, B], [A, C], "unknown"),
        ([A, A], [A, A], "same"),
        ([A, B], [A, B, C], "number"),
        ([], [A, B], "number"),
        # What only one side knows, and what has another value by now, does not tell.
        ([A, replace(B, num_bytes=9)], [A, replace(B, num_bytes=None)], "same"),
        ([A, replace(B, num_bytes=9)], [A, replace(B, num_bytes=10)], "same"),
        ([A, replace(B, num_bytes=9)], [replace(A, num_bytes=9), B], "other"),
        # One fact says that they are as before, the next that they were swapped.
        (
            [replace(A, title="toy:2.0.0"), replace(B, num_bytes=9)],
            [replace(B, title="toy:2.0.0", num_bytes=9), A],
            "unknown",
        ),
        ([replace(A, path=None), B], [replace(A, path=None), B], "unknown"),
    ],
)
def test_an_order_is_the_same_another_or_cannot_be_told(
    then: list[FolderIdentity], now: list[FolderIdentity], order: FolderOrder
) -> None:
    assert folder_order(then, now) == order
    assert folder_order(now, then) == order


def test_every_permutation_of_folders_that_differ_in_anything_is_noticed() -> None:
    rng, checked = random.Random(10), 0
    for _ in range(300):
        folders = [
            replace(
                A,
                path=rng.choice("pqrs"),
                title=f"toy:{rng.randrange(2)}.0.0",
                num_bytes=rng.randrange(2),
            )
            for _ in range(rng.randrange(1, 5))
        ]
        for places in itertools.permutations(range(len(folders))):
            now = [folders[place] for place in places]
            assert folder_order(folders, now) == ("same" if now == folders else "other")
            checked += 1
    assert checked > 2000


@pytest.mark.parametrize(
    ("folders", "tells"),
    [
        ([A, B], False),
        ([A, replace(B, fingerprint="g")], True),
        ([A, replace(B, fingerprint="g"), C], False),
        ([A, replace(B, fingerprint="g", splits=("test", "train"))], False),  # train may be alike
    ],
)
def test_fingerprints_of_the_same_splits_tell_an_order(
    folders: list[FolderIdentity], tells: bool
) -> None:
    assert fingerprints_tell_order(folders) is tells


@pytest.mark.parametrize(
    ("data_dir", "folders", "first"),
    [
        ("/data/a", [A, B], True),
        ("/data/b", [A, B], False),
        ("/data/xa", [A, B], False),
        ("/data/a", [A, A], False),
        ("/data/a", [A, B, C], False),
        (None, [A, B], False),
        ("/data/a", [A, replace(B, path=None)], True),
        ("/data", [replace(A, path="."), B], False),
        ("/data/a/1.0.0", [replace(A, path="a/1.0.0"), replace(B, path="b/1.0.0")], True),
    ],
)
def test_a_data_dir_is_the_first_of_two_folders(
    data_dir: str | None, folders: list[FolderIdentity], first: bool
) -> None:
    assert first_of_two(data_dir, folders) is first


def test_what_is_said_names_both_orders() -> None:
    assert order_in_words([A, B], [B, A]) == (
        "folders a and b are read in the other order: they were a, b, now b, a"
    )
    assert order_in_words([A, B, C], [B, C, A]) == (
        "folders a, b, c are read in another order: they were a, b, c, now b, c, a"
    )
    assert order_in_words([A, B], []) == "its folders were a, b, now one or not known"
    nameless = replace(A, path=None), replace(A, path=None, title="toy:2.0.0")
    assert "folders toy:1.0.0 and toy:2.0.0 are" in order_in_words(nameless, nameless[::-1])
