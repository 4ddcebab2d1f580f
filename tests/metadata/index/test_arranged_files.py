"""Files that were counted as splits: names by a pattern where it says them, else one by one."""

from __future__ import annotations

import pytest

from shardctl.metadata.index.count import Counts
from shardctl.metadata.index.index import ArrangedFiles
from shardctl.metadata.index.names import ArrangedSplit, Arrangement
from shardctl.metadata.index.tfds_metadata import patterned
from shardctl.records.contents import Damage, FileContents
from shardctl.stores.store import StoredFile

NAMES = ("d-train.tfrecord-00000-of-00002", "d-train.tfrecord-00001-of-00002")


def arranged(*names: str) -> ArrangedFiles:
    files = [StoredFile(path=f"gs://b/d/{name}", num_bytes=9, version="etag:x") for name in names]
    split = ArrangedSplit(name="train", files=files)
    return ArrangedFiles(Arrangement(root="gs://b/d", splits=(split,), name="d"), "tfrecord")


def counts(*lengths: int, unsettled: tuple[int, ...] = ()) -> Counts:
    contents = [None if n < 0 else FileContents(num_records=n) for n in lengths]
    return Counts(contents=contents, unsettled=set(unsettled))


def test_a_pattern_that_says_the_names_is_kept() -> None:
    (split,) = arranged(*NAMES).index(counts(2, 3), keep_going=False, seconds=0).splits
    (files,) = split.split.files
    assert (files.names, files.data_dir) == (None, "gs://b/d")
    assert tuple(files) == NAMES
    assert (split.split.num_bytes, split.split.shard_bytes) == (18, (9, 9))


def test_names_that_no_pattern_says_are_kept_themselves() -> None:
    others = (
        arranged(NAMES[1], NAMES[0]),
        arranged("x", "y"),
        arranged("sub/" + NAMES[0], NAMES[1]),
    )
    for files in others:
        (split,) = files.index(counts(2, 3), keep_going=False, seconds=0).splits
        assert split.split.files[0].names == tuple(
            file.path.removeprefix("gs://b/d/") for file in files.all
        )


def many(text: str, num_shards: int = 3) -> list[str]:
    return [text.format(at, num_shards) for at in range(num_shards)]


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (many("toy-a.tfrecord-{:05d}-of-{:05d}"), "toy-a.tfrecord-#-of-00003"),
        (many("test/{:05d}.parquet"), "test/#.parquet"),
        (many("x{{y}}-{:05d}-of-{}.tar"), "x{y}-#-of-3.tar"),
        (many("00000/{:05d}.tar"), "00000/#.tar"),
        (many("x-{:06d}.tar"), "x-0#.tar"),
        (many("x-{:06d}", 100_001), "x-#"),
        (many("x-{}.tar"), None),
        (many("x-{:05d}.tar")[1:], None),
        (["x-00000.tar", "x-00002.tar"], None),
        (["x-00000.tar", "x-00001.tar", "x-00001.tar.gz"], None),
        ([], None),
    ],
)
def test_a_pattern_says_just_these_names(names: list[str], pattern: str | None) -> None:
    files = patterned(names)
    assert (files and files.pattern.replace("\0", "#")) == pattern
    assert files is None or list(files) == names


def test_broken_files_are_left_out_with_their_names_and_versions() -> None:
    found = counts(2, -1, 4, unsettled=(2,))
    found.fail(1, FileContents(num_records=None, damage=Damage(kind="cut", text="cut")))
    answer = arranged("x", "y", "z").index(found, keep_going=True, seconds=0)
    (split,) = answer.splits
    assert (split.split.shard_lengths, split.split.filenames) == ((2, 4), ("x", "z"))
    assert list(split.versions) == ["etag:x", ""]
    assert split.num_broken == 1
    assert [(one.path, one.finding.split) for one in answer.broken] == [("y", "train")]


def test_without_counts_there_are_names_alone() -> None:
    answer = arranged(*NAMES).index(counts(-1, -1), keep_going=False, seconds=0)
    assert (answer.splits, answer.num_files, answer.num_counted) == ((), 2, 0)
