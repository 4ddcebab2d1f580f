"""A layout file says what dataset there is or will be; no typo in it passes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata.layouts import LAYOUT_KEYS, SPLIT_KEYS, dataset_from_layout, read_layout_file
from tests.cases import FUZZ, check_cases
from tests.strategies import documents, error_line


def read(document: Any) -> Dataset:
    return dataset_from_layout(document, stem="toy", folder=Path("/data"))


def read_split(**split: Any) -> Sequence[int]:
    return read({"splits": {"train": split}}).splits[0].shard_lengths


class TestReading:
    def test_the_least_layout_takes_its_name_from_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "birds.yaml"
        path.write_text("splits:\n  train: {shard_lengths: [3, 0, 5]}\n")
        dataset = read_layout_file(path)
        assert (dataset.name, dataset.config, dataset.version) == ("birds", None, None)
        assert (dataset.file_format, dataset.ordered, dataset.data_dir) == ("tfrecord", False, None)
        assert dataset.splits[0].filename(2) == "birds-train.tfrecord-00002-of-00003"
        assert dataset.splits[0].num_bytes is None
        assert dataset.origin == "layout file"

    def test_every_key_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "layout.yaml"
        path.write_text(
            "name: birds\nconfig: small\nversion: 2.0.0\nfile_format: array_record\n"
            "ordered: yes\ndata_dir: files\nfilepath_template: '{SPLIT}/{SHARD_X_OF_Y}'\n"
            "splits:\n"
            "  train: {num_examples: 10, num_shards: 3, num_bytes: 999}\n"
            "  test: {shard_lengths: [1], filenames: [one.array_record]}\n"
        )
        dataset = read_layout_file(path)
        assert dataset.title == "birds/small:2.0.0"
        assert (dataset.file_format, dataset.ordered) == ("array_record", True)
        train, test = dataset.splits
        assert (train.shard_lengths, train.num_bytes) == ((3, 4, 3), 999)
        assert train.location(1) == (str(tmp_path / "files"), "train/00001-of-00003")
        assert test.location(0) == (str(tmp_path / "files"), "one.array_record")

    def test_json_says_the_same(self, tmp_path: Path) -> None:
        document = {"name": "a", "splits": {"train": {"num_examples": 7, "num_shards": 2}}}
        (tmp_path / "a.json").write_text(json.dumps(document))
        (tmp_path / "a.yaml").write_text(json.dumps(document))
        assert read_layout_file(tmp_path / "a.json") == read_layout_file(tmp_path / "a.yaml")

    def test_splits_may_be_a_list(self) -> None:
        as_list = read({"splits": [{"name": "train", "shard_lengths": [1, 2]}]})
        assert as_list == read({"splits": {"train": {"shard_lengths": [1, 2]}}})

    def test_boundaries_are_those_tfds_writes(self) -> None:
        def check(numbers: tuple[int, int]) -> None:
            from tensorflow_datasets.core.utils import shard_utils

            num_shards, more = numbers
            ends = shard_utils.get_shard_boundaries(num_shards + more, num_shards)
            lengths = read_split(num_examples=num_shards + more, num_shards=num_shards)
            assert [sum(lengths[: i + 1]) for i in range(num_shards)] == ends

        numbers = st.tuples(st.integers(1, 60), st.integers(0, 10**6))
        check_cases(numbers, check, 80)

    def test_fewer_examples_than_shards_leave_shards_empty(self) -> None:
        """TFDS refuses to write that; a plan for it is well defined all the same."""
        assert read_split(num_examples=2, num_shards=4) == (0, 1, 1, 0)
        assert read_split(num_examples=0, num_shards=2) == (0, 0)

    def test_counts_beside_lengths_must_agree(self) -> None:
        assert read_split(shard_lengths=[1, 2], num_examples=3, num_shards=2) == (1, 2)
        with pytest.raises(DatasetError, match="num_examples 4 is not that of shard_lengths, 3"):
            read_split(shard_lengths=[1, 2], num_examples=4)

    def test_ordered_is_disable_shuffling(self) -> None:
        splits = {"train": {"shard_lengths": [1]}}
        assert read({"disable_shuffling": True, "splits": splits}).ordered
        with pytest.raises(DatasetError, match="are one setting"):
            read({"disable_shuffling": True, "ordered": True, "splits": splits})


class TestRefusals:
    @pytest.mark.parametrize(
        ("document", "said"),
        [
            (None, "a layout must be a mapping, not nothing"),
            ([], "a layout must be a mapping, not a list"),
            ({1: 2}, "a layout: key 1 is not text; put it in quotes"),
            (
                {"split": {}},
                "unknown key 'split'; did you mean splits? a layout may have: name, config",
            ),
            ({}, "splits must be a mapping of split names, not nothing"),
            ({"splits": {}}, "dataset 'toy' has no splits"),
            ({"splits": "train"}, "splits must be a mapping of split names, not 'train'"),
            ({"splits": {True: {}}}, "split name must be text, not true; put it in quotes"),
            ({"splits": {"": {}}}, "split name is empty"),
            ({"splits": {"--": {}}}, "split name '--' holds no letter or digit"),
            ({"splits": {"a\x1b": {}}}, "split name 'a\\x1b' holds characters that cannot be"),
            ({"splits": {"train": 7}}, "split 'train': its value must be a mapping, not 7"),
            ({"splits": {"train": {}}}, "split 'train': no num_examples and no num_shards; give"),
            ({"splits": [{"name": "a", "shard_lengths": []}] * 2}, "has split 'a' twice"),
            ({"version": 1.0, "splits": {}}, "version must be text, not 1.0; put it in quotes"),
            ({"name": "x" * 5000, "splits": {}}, "has 5000 characters; a file name holds at most"),
            ({"file_format": "zip", "splits": {}}, "file format 'zip'; there are: tfrecord"),
            ({"ordered": "yes", "splits": {"a": {"shard_lengths": []}}}, "must be true or false"),
        ],
    )
    def test_a_broken_layout_is_refused_by_name_and_rule(self, document: Any, said: str) -> None:
        line = error_line(lambda: read(document))
        assert line is not None
        assert said in line

    @pytest.mark.parametrize(
        ("split", "said"),
        [
            ({"shard_lengths": [3, -1]}, "length of shard 1 -1 is negative"),
            ({"shard_lengths": [1.5]}, "length of shard 0 must be a whole number, not 1.5"),
            ({"shard_lengths": [1.0]}, "length of shard 0 must be a whole number, not 1.0"),
            ({"shard_lengths": ["7"]}, "length of shard 0 must be a whole number, not '7'"),
            ({"shard_lengths": [True]}, "length of shard 0 must be a whole number, not true"),
            ({"shard_lengths": [None]}, "length of shard 0 must be a whole number, not nothing"),
            ({"shard_lengths": [[1]]}, "length of shard 0 must be a whole number, not a list"),
            ({"shard_lengths": [2**63]}, "length of shard 0 9223372036854775808 is more than an"),
            ({"shard_lengths": [16**9999]}, "length of shard 0 a number of more than 40 digits"),
            ({"shard_lengths": [2**63 - 1] * 2}, "an int64 holds at most 9223372036854775807"),
            ({"shard_lengths": 7}, "shard_lengths must be a list, not 7"),
            (
                {"shard_length": [7]},
                "unknown key 'shard_length'; did you mean shard_lengths? a split may have: ",
            ),
            ({"num_examples": 7}, "no num_shards; give shard_lengths, or num_examples and"),
            ({"num_examples": 7, "num_shards": 0}, "num_shards 0 is not between 1 and 10000000"),
            ({"num_examples": 7, "num_shards": 10**7 + 1}, "num_shards 10000001 is not between"),
            ({"num_examples": -7, "num_shards": 1}, "num_examples -7 is negative"),
            (
                {"num_examples": 7.5, "num_shards": 1},
                "num_examples must be a whole number, not 7.5",
            ),
            ({"num_examples": 2**63 - 1, "num_shards": 3}, "is too large for TFDS's boundaries"),
            ({"num_examples": 2**63, "num_shards": 3}, "is more than an int64 holds"),
            ({"shard_lengths": [1], "num_bytes": -1}, "num_bytes -1 is negative"),
            (
                {"shard_lengths": [1], "filenames": ["../a"]},
                "file name '../a' leaves the dataset's",
            ),
            ({"shard_lengths": [1], "filenames": ["a", "b"]}, "2 file names for 1 shards"),
            (
                {"shard_lengths": [1], "filepath_template": "{X}"},
                "'{X}' is not a variable; TFDS knows",
            ),
            (
                {"shard_lengths": [1], "filepath_template": "/{SPLIT}"},
                "leaves the dataset's folder",
            ),
        ],
    )
    def test_a_broken_split_is_refused_by_name_and_rule(self, split: Any, said: str) -> None:
        line = error_line(lambda: read({"splits": {"train": split}}))
        assert line is not None
        assert line.startswith("split 'train'")
        assert said in line

    def test_an_error_names_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "l.yaml").write_text("splits: {train: {}}")
        line = error_line(lambda: read_layout_file(tmp_path / "l.yaml"))
        assert line is not None
        assert line.startswith(f"{tmp_path}/l.yaml: split 'train': no num_examples")

    @pytest.mark.long
    def test_nonsense_gives_a_dataset_or_one_line_of_error(self) -> None:
        check_cases(nonsense, check_nonsense, 200)

    @pytest.mark.fuzz
    def test_any_nonsense_gives_a_dataset_or_one_line_of_error(self) -> None:
        check_cases(nonsense, check_nonsense, FUZZ, fuzz=True)


_ANY = documents(LAYOUT_KEYS + SPLIT_KEYS)
nonsense = (
    _ANY
    | st.fixed_dictionaries({"splits": st.fixed_dictionaries({"train": _ANY})})
    | st.builds(
        lambda key, value: {"splits": {"train": {"shard_lengths": [1, 2], key: value}}},
        st.sampled_from(SPLIT_KEYS),
        _ANY,
    )
    | st.builds(
        lambda key, value: {"splits": {"train": {"shard_lengths": [1, 2]}}} | {key: value},
        st.sampled_from(LAYOUT_KEYS),
        _ANY,
    )
)


def check_nonsense(value: Any) -> None:
    try:
        dataset = read(value)
    except DatasetError as error:
        line = str(error)
    else:
        assert dataset.title.isprintable()
        assert all(name.isprintable() for split in dataset.splits for name in split.filenames)
        return
    assert line.isprintable()
