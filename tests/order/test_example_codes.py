"""Example codes: ids, split:id and tfds_ids there and back; rows that read an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.folders import combined
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.example_codes import ExampleCodes, RowLookup
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from tests.golden import assert_evaluated
from tests.strategies import datasets, error_line


def split(name: str, *lengths: int, folders: Sequence[str | None] = (None,)) -> Split:
    """Return a split whose shards lie in these folders, as many in each."""
    count = len(lengths) // len(folders)
    files = [
        ShardFiles(data_dir=folder, pattern=f"d-{name}-\0", num_shards=count) for folder in folders
    ]
    return Split(name=name, shard_lengths=lengths, files=tuple(files))


def reads(dataset: Dataset, name: str, start: int = 0, stop: int | None = None) -> Reads:
    one = dataset.split(name)
    stop = one.num_examples if stop is None else stop
    return reads_of(dataset, [SplitRange(split=one, start=start, stop=stop)])


def spread(*folders: str, start: int = 0, stop: int | None = None) -> ExampleCodes:
    """Return the codes of a split of two shards, of 2 and 1 examples, in each folder."""
    dataset = Dataset(name="d", splits=(split("x", *(2, 1) * len(folders), folders=folders),))
    return ExampleCodes(dataset, ["x"], reads(dataset, "x", start, stop))


TOY = Dataset(name="d", splits=(split("train", 2, 0, 3), split("empty", 0), split("test", 1, 2)))


@pytest.mark.long
@given(datasets(max_splits=4), st.data())
def test_every_example_has_one_code_one_name_and_one_tfds_id(
    dataset: Dataset, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(dataset.splits), min_size=1, max_size=5))
    codes = ExampleCodes(dataset, [split.name for split in chosen])
    read = [split for split in dataset.splits if split in chosen]
    every = np.arange(sum(split.num_examples for split in read))
    names, tfds_ids = [], []
    for one in read:
        named = f"{one.name}:" if len(read) > 1 else ""
        names += [f"{named}{number}" for number in range(one.num_examples)]
        for name, length in zip(one.filenames, one.shard_lengths, strict=True):
            tfds_ids += [f"{name}__{index}" for index in range(length)]
    assert codes.several_splits == (len(read) > 1)
    assert (codes.names(every), codes.tfds_ids(every)) == (names, tfds_ids)
    assert list(map(str, codes.ids(every))) == names
    assert [codes.parse(name) for name in names] == every.tolist()
    assert codes.of_ids(codes.ids(every[::-1])).tolist() == every[::-1].tolist()
    assert [codes.parse_tfds_id(name) for name in tfds_ids] == every.tolist()


def test_the_place_of_an_example() -> None:
    codes = ExampleCodes(TOY, ["test", "train", "empty"])
    splits, shards, indices = codes.places(np.arange(8))
    assert splits.tolist() == [0] * 5 + [2] * 3
    assert shards.tolist() == [0, 0, 2, 2, 2, 0, 1, 1]
    assert indices.tolist() == [0, 1, 0, 1, 2, 0, 0, 1]
    assert codes.split_ids(np.arange(8)).tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    alone = ExampleCodes(TOY, ["test"])
    assert alone.ids(np.array([0, 2])) == [0, 2]
    assert (alone.parse("2"), alone.parse("test:2"), alone.parse("0_2")) == (2, 2, 2)
    assert alone.of_ids(()).dtype == np.int64


def test_what_is_no_id_is_refused() -> None:
    def refused(splits: str, text: str) -> object:
        codes = ExampleCodes(TOY, splits.split())
        needed = "file__index is needed, as in imagenet2012-train.tfrecord-"
        assert needed in (error_line(lambda: codes.parse_tfds_id(text)) or "")
        assert error_line(lambda: codes.of_ids([text]))
        return codes.parse(text)

    assert_evaluated(globals(), "no_ids", refused)


def test_what_is_no_tfds_id_is_refused() -> None:
    codes = ExampleCodes(TOY, ["test"])
    for text, said in (
        ("d-train-00000__0", "'d-train-00000' is not read here"),
        ("d-test-00001__2", "the file has 2 examples, from 0"),
    ):
        assert said in (error_line(lambda text=text: codes.parse_tfds_id(text)) or "")  # type: ignore[misc]
    splits = (Split(name="a", shard_lengths=(2**62,)), Split(name="b", shard_lengths=(2**62,)))
    with pytest.raises(UsageError, match="more than 9223372036854775807 examples"):
        ExampleCodes(Dataset(name="d", splits=splits), ["a", "b"])


# Files in several folders, called in a tfds_id as TFDS calls them.

FOLDERS = {
    ("/data/mon/d/1.0.0", "/data/tue/d/1.0.0"): ("mon/d/1.0.0/", "tue/d/1.0.0/"),
    ("/a/x1/d", "/a/y1/d", "/a/z1/d"): ("x1/d/", "y1/d/", "z1/d/"),
    ("gs://b/one", "gs://b/two"): ("one/", "two/"),
    ("one/d", "two/d"): ("one/d/", "two/d/"),
    # What TFDS's pattern comes to where the common end is no whole folder, or holds a "+".
    ("/a/1/d", "/a/11/d"): ("/a/1/d/", "11/d/"),
    ("/a/b+c/d", "/e/b+c/d"): ("/a/b+c/d/", "/e/b+c/d/"),
}
BROKEN = {("/a(/d", "/b(/d"): ("a(/d/", "b(/d/")}  # a pattern that TFDS fails on


@pytest.mark.parametrize(("folders", "prefixes"), (FOLDERS | BROKEN).items())
def test_files_in_several_folders_are_called_by_the_folders_that_differ(
    folders: tuple[str, ...], prefixes: tuple[str, ...]
) -> None:
    codes = spread(*folders)
    ids = [
        f"{prefix}d-x-{file}"
        for prefix in prefixes
        for file in ("00000__0", "00000__1", "00001__0")
    ]
    assert codes.tfds_ids(range(len(ids))) == ids
    assert [codes.parse_tfds_id(tfds_id) for tfds_id in ids] == list(range(len(ids)))


@pytest.mark.parametrize(("folders", "prefixes"), FOLDERS.items())
def test_tfds_calls_them_the_same(folders: tuple[str, ...], prefixes: tuple[str, ...]) -> None:
    from tensorflow_datasets.core import reader
    from tensorflow_datasets.core.utils.shard_utils import FileInstruction

    files = [FileInstruction(f"{folder}/d-00000", 0, 2, 2) for folder in folders]
    found = reader._get_tfds_id_prefixes(files).values()
    assert list(found) == [f"{prefix}d-00000" for prefix in prefixes]


def test_a_slice_that_lies_in_one_folder_needs_no_folder_in_its_tfds_ids() -> None:
    codes = spread("/data/mon", "/data/tue", start=3, stop=6)
    assert codes.tfds_ids([3, 5]) == ["d-x-00000__0", "d-x-00001__0"]
    assert codes.parse_tfds_id("d-x-00001__0") == 5
    # A template whose folder holds the index of the shard, and names listed one by one.
    for files in (
        ShardFiles(data_dir="/data", pattern="\0/d", num_shards=2),
        ShardFiles(data_dir="/data", names=("00000/d", "00001/d"), num_shards=2),
    ):
        one = Split(name="x", shard_lengths=(2, 1), files=(files,))
        dataset = Dataset(name="d", splits=(one,))
        assert ExampleCodes(dataset, ["x"], reads(dataset, "x")).tfds_ids([0, 2]) == [
            *("00000/d__0", "00001/d__0")
        ]
        first = ExampleCodes(dataset, ["x"], reads(dataset, "x", 0, 2))
        assert first.tfds_ids([0]) == ["d__0"]


def test_each_reader_names_files_by_the_folders_that_it_reads() -> None:
    days = split("train", 4, 4, folders=("/data/mon/d", "/data/tue/d"))
    dataset = Dataset(name="d", splits=(days, split("test", 4, folders=("/data/mon/d",))))
    given = [reads(dataset, "train"), reads(dataset, "test")]
    codes = ExampleCodes(dataset, ["train", "test"], *given)
    expected = ["mon/d/d-train-00000__0", "tue/d/d-train-00000__1", "d-test-00000__1"]
    assert codes.tfds_ids([0, 5, 9]) == expected
    assert [codes.parse_tfds_id(name) for name in expected] == [0, 5, 9]
    differ = ExampleCodes(dataset, ["train"], given[0], reads(dataset, "train", 0, 4))
    assert differ.names([5]) == ["5"]
    with pytest.raises(UsageError, match="tfds_ids of train differ from reader to reader"):
        differ.tfds_ids([5])


def test_a_file_of_two_datasets_is_asked_for_by_its_split() -> None:
    old = Dataset(
        name="d", version="1.0.0", splits=(split("train", 4, folders=("/data/d/1.0.0",)),)
    )
    new = replace(old, version="2.0.0", splits=(split("train", 4, folders=("/d/2.0.0",)),))
    whole = combined([old, new])
    names = [one.name for one in whole.splits]
    codes = ExampleCodes(whole, names, *(reads(whole, name) for name in names))
    assert codes.tfds_ids([1, 5]) == ["d-train-00000__1"] * 2
    assert codes.parse("d-2.0.0/train:1") == 5
    with pytest.raises(UsageError, match=r"d-1\.0\.0/train and d-2\.0\.0/train"):
        codes.parse_tfds_id("d-train-00000__1")


SIZES = {"train": 11, "test": 4}
specs = st.lists(
    st.sampled_from(sorted(SIZES)).flatmap(
        lambda name: st.tuples(st.just(name), *[st.integers(0, SIZES[name])] * 2)
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.long
@given(specs, st.booleans())
def test_an_example_is_read_by_every_row_that_holds_it(
    drawn: list[tuple[str, int, int]], reverse: bool
) -> None:
    spec = "+".join(f"{name}[{min(a, b)}:{max(a, b)}]" for name, a, b in drawn)
    dataset = Dataset(name="d", splits=(split("train", 3, 0, 5, 3), split("test", 4)))
    rows = reads_of(dataset, resolve_subsplit(spec, dataset).ranges)
    rows = rows.select(slice(None, None, -1 if reverse else 1))
    # One number for an example: split train has 0 to 10, split test 11 to 14.
    first_codes = rows.first + np.array([0, 11])[rows.split]
    query, row, offset = RowLookup(rows, first_codes).rows_of(np.arange(15)[::-1])
    assert sorted(zip(query.tolist(), row.tolist(), offset.tolist(), strict=True)) == sorted(
        (14 - code, row, code - first)
        for row, (first, take) in enumerate(zip(first_codes.tolist(), rows.take, strict=True))
        for code in range(first, first + int(take))
    )
