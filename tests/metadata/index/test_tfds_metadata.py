"""Which template TFDS is report of, and which names it cannot be report of."""

from __future__ import annotations

import pytest

from shardctl import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index.tfds_metadata import TfdsMetadata, plan_tfds_metadata


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
        (("part-0", "part-1"), None),
        (("part-00001", "part-00002"), None),
        (("part-00000", "part-00002"), None),
        (("part-000", "part-001"), None),
        (("a-00000", "b-00001"), None),
    ],
)
def test_the_template_of_names(names: tuple[str, ...], template: str | None) -> None:
    assert planned(*names).splits[0].template == template


def test_names_without_a_template_get_others_in_their_folder() -> None:
    found = planned("sub/part-0", "sub/part-1")
    assert [tuple(each) for each in found.renames] == [
        ("train", "sub/part-0", "sub/toy-train.tfrecord-00000-of-00002"),
        ("train", "sub/part-1", "sub/toy-train.tfrecord-00001-of-00002"),
    ]
    assert not found.readable
    of_two = planned("a/x", "b/x")
    assert [each.new for each in of_two.renames] == [
        "toy-train.tfrecord-00000-of-00002",
        "toy-train.tfrecord-00001-of-00002",
    ]


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
