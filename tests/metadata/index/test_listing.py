from __future__ import annotations

import ast
import contextlib
import os
import random
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.metadata.index.listing import Listing, list_files
from tests.byte_sources import in_memory
from tests.cases import add_cases
from tests.golden import assert_answers


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def names(found: Listing, folder: Path) -> list[str]:
    return sorted(os.path.relpath(file.path, folder) for file in found.files)


def listed(folder: Path, *paths: str) -> list[str]:
    with contextlib.chdir(folder):
        return names(list_files(paths), folder)


def test_a_folder_means_the_record_files_right_in_it(tmp_path: Path) -> None:
    make(tmp_path, "a.tfrecord", "b.parquet", "README.md", "notes", "deep/c.tfrecord", "index.json")
    found = list_files([str(tmp_path)])
    assert names(found, tmp_path) == ["a.tfrecord", "b.parquet"]
    assert found.root == str(tmp_path)
    assert [file.path for file in found.sidecars] == [str(tmp_path / "index.json")]
    assert "subfolders were not looked into: deep" in found.notes[0]


def test_a_folder_without_record_files_means_its_subfolders(tmp_path: Path) -> None:
    make(tmp_path, "index.json", "train/a.mds", "train/index.json", "val/x/b.mds", "_old/c.mds")
    make(tmp_path, ".git/d.mds", "2.0.0.incomplete3F/e.mds")
    found = list_files([f"{tmp_path}/."])
    assert names(found, tmp_path) == ["train/a.mds", "val/x/b.mds"]
    assert len(found.sidecars) == 2
    assert found.root == str(tmp_path)
    assert not found.notes


def test_files_named_as_shards_count_where_no_name_tells_a_format(tmp_path: Path) -> None:
    make(tmp_path, "train-00000-of-00002", "train-00001-of-00002", "part-00001", "x", "_SUCCESS")
    assert listed(tmp_path, ".") == ["part-00001", "train-00000-of-00002", "train-00001-of-00002"]
    make(tmp_path, "a.tfrecord")
    assert listed(tmp_path, ".") == ["a.tfrecord"]


def test_hidden_and_unfinished_files_are_ignored(tmp_path: Path) -> None:
    unfinished = [
        "_SUCCESS", "_metadata", ".a.tfrecord.crc", "a.tfrecord.tmp", "a.tfrecord.part",
        "a.tfrecord.incomplete", "a.tfrecord~", "cache-0123456789abcdef.arrow",
    ]  # fmt: skip
    make(tmp_path, "a.tfrecord", *unfinished)
    found = list_files([f"{tmp_path}/*"])
    assert names(found, tmp_path) == ["a.tfrecord"]
    assert listed(tmp_path, "_*") == ["_SUCCESS", "_metadata"]
    assert listed(tmp_path, "a.tfrecord.tmp") == ["a.tfrecord.tmp"]


def test_sharded_paths(tmp_path: Path) -> None:
    make(tmp_path, *(f"d/train.array_record-0000{at}-of-00002" for at in range(2)))
    make(tmp_path, *(f"d/test-0000{at}-of-00003.parquet" for at in range(3)))
    train = [f"d/train.array_record-0000{at}-of-00002" for at in range(2)]
    test = [f"d/test-0000{at}-of-00003.parquet" for at in range(3)]
    assert listed(tmp_path, "d/train.array_record@2") == train
    assert listed(tmp_path, "d/train.array_record@*") == train
    assert listed(tmp_path, "d/test@3.parquet") == listed(tmp_path, "d/test@3") == test
    assert listed(tmp_path, "d/t*@3") == test
    assert listed(tmp_path, "*/test@*") == test
    with pytest.raises(DatasetError, match=r"did you mean train.array_record-00000-of-00002"):
        listed(tmp_path, "d/train.array_record@8")
    make(tmp_path, "d/me@2")
    assert listed(tmp_path, "d/me@2") == ["d/me@2"]


def test_braces_need_all_that_they_stand_for(tmp_path: Path) -> None:
    make(tmp_path, *(f"s-{at:03d}.tar" for at in range(12)), "{odd}.tar")
    assert listed(tmp_path, "s-{002..011}.tar") == [f"s-{at:03d}.tar" for at in range(2, 12)]
    assert len(listed(tmp_path, "s-0{0?,1*}.tar")) == 12
    assert listed(tmp_path, "{odd}.tar") == ["{odd}.tar"]
    with pytest.raises(DatasetError, match=r"stands for 4 files, of which 2 not there: s-012"):
        listed(tmp_path, "s-{010..013}.tar")


def test_many_names_in_braces_far_away_are_listed_at_once(tmp_path: Path) -> None:
    make(tmp_path / "d", *(f"s-{at:03d}.tar" for at in range(70)))
    there = in_memory(tmp_path / "d")
    assert len(list_files([f"{there}/s-{{000..069}}.tar"]).files) == 70
    with pytest.raises(DatasetError, match=r"stands for 72 files, of which 2 not there: s-070"):
        list_files([f"{there}/s-{{000..071}}.tar"])


def test_a_glob_of_folders_means_what_is_in_them(tmp_path: Path) -> None:
    make(tmp_path, "train/a.tar", "test/b.tar")
    assert listed(tmp_path, "*") == ["test/b.tar", "train/a.tar"]
    assert listed(tmp_path, "t*n") == ["train/a.tar"]
    assert listed(tmp_path, "*/a.tar") == ["train/a.tar"]


def test_what_is_not_there_is_said_with_what_is_near(tmp_path: Path) -> None:
    make(tmp_path, "a.tfrecord", "README.md")
    (tmp_path / "empty").mkdir()

    def answer(question: str) -> None:
        try:
            listed(tmp_path, ast.literal_eval(question))
        except DatasetError as error:
            raise DatasetError(str(error).replace(str(tmp_path), "/here")) from None

    assert_answers(Path(__file__).parent / "golden" / "near.txt", answer)
    with pytest.raises(DatasetError, match="no path of files is given"):
        list_files([])


def _glob(rng: random.Random) -> str:
    part = ["*", "a*", "?", "[ab]*", "[!a]", "a", "b", "*.r", "a?b", "[a-b].r", "*b*", "ab", "[[]x"]
    return "/".join(rng.choice(part) for _ in range(rng.randint(1, 3)))


def test_globs_match_the_files_that_tensorflow_matches(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    rng = random.Random(11)
    folders = ["", "a/", "b/", "ab/", "a/b/", "b/aab/"]
    make(
        tmp_path,
        *(folder + name for folder in folders for name in ("a.r", "b.r", "c", "acb", "[x")),
    )
    num_matching = 0
    for _ in range(150):
        glob = _glob(rng)
        expected = sorted(
            os.path.relpath(path, tmp_path)
            for path in tf.io.gfile.glob(f"{tmp_path}/{glob}")
            if os.path.isfile(path)
        )
        if not expected and tf.io.gfile.glob(f"{tmp_path}/{glob}"):
            continue  # folders, which mean what is in them
        try:
            found = listed(tmp_path, glob)
        except DatasetError:
            found = []
        if glob in ("a", "b", "ab", "a/b"):
            continue
        assert found == expected, glob
        num_matching += bool(expected)
        add_cases()
    assert num_matching > 40


def test_two_stars_stand_for_any_number_of_folders(tmp_path: Path) -> None:
    make(tmp_path, "a.r", "x/b.r", "x/y/c.r", ".h/d.r")
    assert listed(tmp_path, "**/*.r") == listed(tmp_path, "**") == ["a.r", "x/b.r", "x/y/c.r"]
    assert listed(tmp_path, "x/**") == listed(tmp_path, "x/**/*.r") == ["x/b.r", "x/y/c.r"]
    assert listed(tmp_path, "**/y/*.r") == ["x/y/c.r"]


def test_links_that_lead_back_up_end(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    for link, target in (("a/b/up", ".."), ("a/b/top", "../.."), ("a/c", "../c"), ("c/a", "../a")):
        (tmp_path / link).symlink_to(target)
    with pytest.raises(DatasetError, match="has no record files"):
        listed(tmp_path, ".")
    with pytest.raises(DatasetError, match="no file matches"):
        listed(tmp_path, "**")
    with pytest.raises(DatasetError, match="no file matches"):
        listed(tmp_path, "**/x*.tfrecord")
    make(tmp_path, "real/x.tfrecord")
    (tmp_path / "d").symlink_to("real")
    assert listed(tmp_path, "d") == ["d/x.tfrecord"]
