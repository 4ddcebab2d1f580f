"""Files in several folders, called in a tfds_id as TFDS calls them."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange
from tests.order.folders import codes_of, spread

FOLDERS = [
    (("/data/mon/d/1.0.0", "/data/tue/d/1.0.0"), ("mon/d/1.0.0/", "tue/d/1.0.0/")),
    (("/a/x1/d", "/a/y1/d", "/a/z1/d"), ("x1/d/", "y1/d/", "z1/d/")),
    (("gs://b/one", "gs://b/two"), ("one/", "two/")),
    (("one/d", "two/d"), ("one/d/", "two/d/")),
    # What TFDS's pattern comes to where the common end is no whole folder, or holds a "+".
    (("/a/1/d", "/a/11/d"), ("/a/1/d/", "11/d/")),
    (("/a/b+c/d", "/e/b+c/d"), ("/a/b+c/d/", "/e/b+c/d/")),
]


BROKEN = (("/a(/d", "/b(/d"), ("a(/d/", "b(/d/"))  # a pattern that TFDS fails on


@pytest.mark.parametrize(("folders", "prefixes"), [*FOLDERS, BROKEN])
def test_files_in_several_folders_are_called_by_the_folders_that_differ(
    folders: tuple[str, ...], prefixes: tuple[str, ...]
) -> None:
    codes = codes_of(*spread(*folders), 0, 3 * len(folders))
    expected = [
        f"{prefix}d-{file}__{i}"
        for prefix in prefixes
        for file, i in (("00000", 0), ("00000", 1), ("00001", 0))
    ]
    every = list(range(len(expected)))
    assert codes.tfds_ids(every) == expected
    assert [codes.parse_tfds_id(tfds_id) for tfds_id in expected] == every


@pytest.mark.parametrize(("folders", "prefixes"), FOLDERS)
def test_tfds_calls_them_the_same(folders: tuple[str, ...], prefixes: tuple[str, ...]) -> None:
    from tensorflow_datasets.core import reader
    from tensorflow_datasets.core.utils import shard_utils

    files = [
        shard_utils.FileInstruction(f"{folder}/d-00000", 0, 2, 2)  # filename, skip, take, length
        for folder in folders
    ]
    assert list(reader._get_tfds_id_prefixes(files).values()) == [
        f"{prefix}d-00000" for prefix in prefixes
    ]


def test_a_slice_that_lies_in_one_folder_needs_no_folder_in_its_tfds_ids() -> None:
    codes = codes_of(*spread("/data/mon", "/data/tue"), 3, 6)
    assert codes.tfds_ids([3, 5]) == ["d-00000__0", "d-00001__0"]
    assert codes.parse_tfds_id("d-00001__0") == 5


def test_files_of_a_part_may_lie_in_folders_of_their_own() -> None:
    # A template whose folder holds the index of the shard, and names listed one by one.
    for files in (
        ShardFiles(data_dir="/data", pattern="\0/d", num_shards=2),
        ShardFiles(data_dir="/data", names=("00000/d", "00001/d"), num_shards=2),
    ):
        split = Split(name="train", shard_lengths=(2, 1), files=(files,))
        dataset = Dataset(name="d", splits=(split,))
        ranges = [SplitRange(split=split, start=0, stop=3)]
        codes = ExampleCodes(dataset, ["train"], reads_of(dataset, ranges))
        assert codes.tfds_ids([0, 2]) == ["00000/d__0", "00001/d__0"]
        # Of a slice that one folder holds the base name will do.
        first = reads_of(dataset, [SplitRange(split=split, start=0, stop=2)])
        assert ExampleCodes(dataset, ["train"], first).tfds_ids([0]) == ["d__0"]
