"""Example codes: ids, split:id and tfds_ids, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import filenames_of
from tests.order.folders import codes_of, spread
from tests.strategies import datasets


def split(name: str, *lengths: int, data_dir: str | None = None) -> Split:
    files = ShardFiles(data_dir=data_dir, pattern=f"d-{name}-\0", num_shards=len(lengths))
    return Split(name=name, shard_lengths=lengths, files=(files,))


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
    expected_names, expected_tfds_ids = [], []
    for split in read:
        for number in range(split.num_examples):
            expected_names.append(f"{split.name}:{number}" if len(read) > 1 else str(number))
        for name, length in zip(split.filenames, split.shard_lengths, strict=True):
            expected_tfds_ids += [f"{name}__{index}" for index in range(length)]
    assert codes.several_splits == (len(read) > 1)
    assert codes.names(every) == expected_names
    assert codes.tfds_ids(every) == expected_tfds_ids
    assert [codes.parse(name) for name in expected_names] == every.tolist()
    assert [codes.parse_tfds_id(name) for name in expected_tfds_ids] == every.tolist()


def test_the_place_of_an_example() -> None:
    codes = ExampleCodes(TOY, ["test", "train", "empty"])
    splits, shards, indices = codes.places(np.arange(8))
    assert splits.tolist() == [0] * 5 + [2] * 3
    assert shards.tolist() == [0, 0, 2, 2, 2, 0, 1, 1]
    assert indices.tolist() == [0, 1, 0, 1, 2, 0, 0, 1]
    assert codes.split_ids(np.arange(8)).tolist() == [0, 1, 2, 3, 4, 0, 1, 2]


def test_ids_are_numbers_where_one_split_is_read_and_texts_where_several_are() -> None:
    assert ExampleCodes(TOY, ["test"]).ids(np.array([0, 2])) == [0, 2]
    assert ExampleCodes(TOY, ["test", "train"]).ids(np.array([4, 6])) == ["train:4", "test:1"]


@pytest.mark.parametrize("read", [["test"], ["test", "train"]])
def test_ids_lead_back_to_their_codes(read: list[str]) -> None:
    codes = ExampleCodes(TOY, read)
    every = np.arange(codes.num_codes)
    assert codes.of_ids(codes.ids(every[::-1])).tolist() == every[::-1].tolist()
    assert codes.of_ids(()).dtype == np.int64
    assert codes.of_ids(["test:1", "2"] if len(read) == 1 else ["test:1"])[0] == codes.parse(
        "test:1"
    )
    for beyond in (3, -1):
        with pytest.raises(UsageError, match=r"test has 3 examples|number from 0|split:id"):
            codes.of_ids([beyond])


def test_one_split_takes_ids_with_and_without_its_name() -> None:
    codes = ExampleCodes(TOY, ["test"])
    assert (codes.parse("2"), codes.parse("test:2")) == (2, 2)


@pytest.mark.parametrize(
    ("splits", "text", "message"),
    [
        (["test"], "", "a number from 0 is needed"),
        (["test"], "-1", "a number from 0 is needed"),
        (["test"], "1.0", "a number from 0 is needed"),
        (["test"], "3", "id '3': test has 3 examples, from 0"),
        (["test"], "train:1", "split 'train' is not read; it is test"),
        (["test"], "9" * 30, "a number from 0 is needed"),
        (["test", "train"], "1", "split:id, as in train:40 is needed"),
        (["test", "train"], "dev:1", "split 'dev' is not read; it is train, test"),
        (["test", "train"], "test:3", "test has 3 examples"),
        (["test"], "\x1b[31m", r"'\\x1b\[31m'"),
    ],
)
def test_what_is_no_id_is_refused(splits: list[str], text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ExampleCodes(TOY, splits).parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d-test-00001", "file__index is needed, as in imagenet2012-train.tfrecord-"),
        ("d-test-00001__x", "file__index is needed"),
        ("d-train-00000__0", "'d-train-00000' is not read here"),
        ("d-test-00001__2", "the file has 2 examples, from 0"),
    ],
)
def test_what_is_no_tfds_id_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ExampleCodes(TOY, ["test"]).parse_tfds_id(text)


@pytest.mark.parametrize("folders", [("/data",), ("/data/mon", "/data/tue")])
def test_examples_are_named_together_as_one_by_one(folders: tuple[str, ...]) -> None:
    codes = codes_of(*spread(*folders), 0, 3 * len(folders))
    every = np.random.default_rng(1).permutation(np.arange(3 * len(folders)).repeat(3))
    splits, shards, _ = codes.places(every)
    assert codes.tfds_ids(every) == [name for code in every for name in codes.tfds_ids([code])]
    assert filenames_of(codes.dataset, splits, shards) == [
        codes.dataset.splits[split].filename(shard)
        for split, shard in zip(splits.tolist(), shards.tolist(), strict=True)
    ]


def test_splits_that_together_pass_an_int64_are_refused() -> None:
    splits = (Split(name="a", shard_lengths=(2**62,)), Split(name="b", shard_lengths=(2**62,)))
    with pytest.raises(UsageError, match="more than 9223372036854775807 examples"):
        ExampleCodes(Dataset(name="d", splits=splits), ["a", "b"])
