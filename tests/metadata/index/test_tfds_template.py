"""How files are named for TFDS, and as patterns in layouts."""

from __future__ import annotations

import re

import pytest

from shardctl import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index.count import Counts
from shardctl.metadata.index.index import ArrangedFiles
from shardctl.metadata.index.names import ArrangedSplit, Arrangement
from shardctl.metadata.index.tfds_metadata import TfdsMetadata, patterned, plan_tfds_metadata
from shardctl.records.contents import Damage, FileContents
from shardctl.stores.store import StoredFile


def planned(
    *names: str, folder: str = "/d", data_dir: str = "/d", split: str = "train", **fields: object
) -> TfdsMetadata:
    files = ShardFiles(data_dir=data_dir, names=names, num_shards=len(names))
    dataset = Dataset(
        name="toy",
        splits=(Split(name=split, shard_lengths=(1,) * len(names), files=(files,)),),
        data_dir=data_dir,
        **fields,  # type: ignore[arg-type]
    )
    return plan_tfds_metadata(dataset, folder, "1.0.0")


@pytest.mark.parametrize(
    ("names", "template"),
    [
        (
            ("toy-train.tfrecord-00000-of-00002", "toy-train.tfrecord-00001-of-00002"),
            "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        ),
        (("part-00000.rec", "part-00001.rec"), "part-{SHARD_INDEX}.rec"),
        (("a{b}-00000", "a{b}-00001"), "a{{b}}-{SHARD_INDEX}"),
        (("00000/00000", "00000/00001"), "00000/{SHARD_INDEX}"),
        (("00000/x", "00001/x"), "{SHARD_INDEX}/x"),
        (("000000", "000001"), "0{SHARD_INDEX}"),
        (("whole.tfrecord",), "whole.tfrecord"),
    ],
)
def test_the_template_of_names(names: tuple[str, ...], template: str | None) -> None:
    assert planned(*names).splits[0].template == template


@pytest.mark.parametrize(
    "names",
    [
        ("sub/part-0", "sub/part-1"),
        ("part-00001", "part-00002"),
        ("part-00000", "part-00002"),
        ("part-000", "part-001"),
        ("a-00000", "b-00001"),
    ],
)
def test_names_without_a_template_are_refused(names: tuple[str, ...]) -> None:
    said = f"'{names[0]}' would be 'toy-train.tfrecord-00000-of-00002'"
    with pytest.raises(DatasetError, match=re.escape(said)):
        planned(*names)


def test_files_below_the_folder_keep_their_path() -> None:
    assert planned("x-00000", "x-00001", folder="/", data_dir="/d").splits[0].template == (
        "d/x-{SHARD_INDEX}"
    )
    remote = planned("x-00000", "x-00001", folder="gs://b/", data_dir="gs://b/d")
    assert remote.splits[0].template == "d/x-{SHARD_INDEX}"


@pytest.mark.parametrize(
    ("folder", "data_dir"),
    [
        ("/e", "/d"),
        ("/d/sub", "/d"),
        ("gs://b/e", "gs://b/d"),
        ("/d", "gs://b/d"),
        ("s3://b", "/d"),
    ],
)
def test_files_elsewhere_are_refused(folder: str, data_dir: str) -> None:
    with pytest.raises(UsageError, match="not below"):
        planned("x-00000", folder=folder, data_dir=data_dir)


@pytest.mark.parametrize("split", ["all", "a b", "a+b", "x[1]", "--", "_", "v1.0"])
def test_splits_that_tfds_cannot_name_are_refused(split: str) -> None:
    with pytest.raises(UsageError, match="TFDS takes no split of the name"):
        planned("x-00000", split=split)


def test_what_tfds_cannot_read_is_refused() -> None:
    with pytest.raises(DatasetError, match="TFDS reads no mds files; it reads tfrecord"):
        planned("x-00000", file_format="mds")
    with pytest.raises(DatasetError, match=r"compressed as a whole \(GZIP\)"):
        planned("x-00000", compression="GZIP")


def arranged(*names: str) -> ArrangedFiles:
    files = [StoredFile(path=f"gs://b/d/{name}", num_bytes=9, version="etag:x") for name in names]
    split = ArrangedSplit(name="train", files=files)
    return ArrangedFiles(Arrangement(root="gs://b/d", splits=(split,), name="d"), "tfrecord")


def counts(*lengths: int, unsettled: tuple[int, ...] = ()) -> Counts:
    contents = [None if n < 0 else FileContents(num_records=n) for n in lengths]
    return Counts(contents=contents, unsettled=set(unsettled))


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
    assert [(one.path, one.finding.split) for one in answer.broken] == [("y", "train")]
