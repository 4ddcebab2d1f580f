"""Datasets read as one: their splits join part after part."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.reference import merge_datasets, read_dataset
from tests.cases import FUZZ, check_cases
from tests.strategies import shard_lengths, split_names, templates
from tests.tfds_datasets import build_dataset


def split(name: str, folder: str, *lengths: int, num_bytes: int | None = None) -> Split:
    return Split(
        name=name,
        shard_lengths=lengths,
        files=(ShardFiles(data_dir=folder, pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        num_bytes=num_bytes,
    )


MON = Dataset(
    name="mon", version="1.0.0", splits=(split("train", "/mon", 3, 0), split("test", "/mon", 1))
)
TUE = Dataset(
    name="tue", version="2.0.0", splits=(split("extra", "/tue", 2), split("train", "/tue", 5))
)


def test_splits_of_one_name_join_where_they_first_appear() -> None:
    both = merge_datasets([MON, TUE])
    assert [(s.name, s.shard_lengths) for s in both.splits] == [
        ("train", (3, 0, 5)),
        ("test", (1,)),
        ("extra", (2,)),
    ]
    train = both.split("train")
    assert [train.location(shard) for shard in range(3)] == [
        ("/mon", "d-train-00000"),
        ("/mon", "d-train-00001"),
        ("/tue", "d-train-00000"),
    ]


def test_the_first_dataset_gives_the_name_the_version_and_the_order() -> None:
    assert merge_datasets([MON, TUE]).version == "1.0.0"
    assert merge_datasets([MON, TUE]).title == "mon:1.0.0 + tue:2.0.0"
    assert merge_datasets([MON, MON]).title == "mon:1.0.0"
    ordered = replace(TUE, ordered=True)
    assert merge_datasets([ordered, MON]).ordered
    assert not merge_datasets([MON, ordered]).ordered


def test_one_dataset_stays_as_it_is() -> None:
    assert merge_datasets([MON]) is MON


@pytest.mark.parametrize(
    ("sizes", "together"),
    [((4, 5), 9), ((4, None), 4), ((None, 5), 5), ((None, None), None), ((0, 0), 0)],
)
def test_sizes_that_are_stated_add_up(sizes: tuple[int | None, ...], together: int | None) -> None:
    parts = [
        Dataset(name="d", splits=(split("train", f"/{i}", 1, num_bytes=size),))
        for i, size in enumerate(sizes)
    ]
    assert merge_datasets(parts).splits[0].num_bytes == together


def test_sizes_of_files_are_known_where_those_of_all_files_are() -> None:
    one, two = (split("train", f"/{i}", 1) for i in range(2))
    sized = [
        Dataset(name="d", splits=(replace(part, shard_bytes=size),))
        for part, size in ((one, (10,)), (two, (20,)), (two, None))
    ]
    assert merge_datasets(sized[:2]).splits[0].shard_bytes == (10, 20)
    assert merge_datasets(sized[::2]).splits[0].shard_bytes is None


def test_two_file_formats_are_refused_by_name() -> None:
    with pytest.raises(DatasetError) as refused:
        merge_datasets([MON, TUE, replace(TUE, file_format="parquet")])
    assert str(refused.value) == (
        "'mon:1.0.0' is in tfrecord and 'tue:2.0.0' in parquet; "
        "datasets read as one must have one file format"
    )


def test_no_dataset_is_refused() -> None:
    with pytest.raises(DatasetError, match="no dataset given"):
        merge_datasets([])


several_parts = st.lists(
    st.tuples(st.dictionaries(split_names, shard_lengths(), min_size=1, max_size=3), templates),
    min_size=1,
    max_size=4,
)


def several_check(tmp_path: Path) -> Any:
    roots = itertools.count()

    def check(parts: list[tuple[dict[str, tuple[int, ...]], str | None]]) -> None:
        import tensorflow_datasets as tfds

        folders = [
            build_dataset(
                tmp_path / str(next(roots)), splits=splits, template=template, with_files=False
            )
            for splits, template in parts
        ]
        ours = read_dataset([str(folder) for folder in folders], env={}, cwd=tmp_path)
        theirs = tfds.builder_from_directories([str(folder) for folder in folders]).info
        assert {
            split.name: (
                list(split.shard_lengths),
                split.num_bytes or 0,
                [str(Path(*map(str, split.location(i)))) for i in range(split.num_shards)],
            )
            for split in ours.splits
        } == {
            name: (split.shard_lengths, int(split.num_bytes), [str(p) for p in split.filepaths])
            for name, split in theirs.splits.items()
        }
        in_order = dict.fromkeys(name for splits, _ in parts for name in splits)
        assert [split.name for split in ours.splits] == list(in_order)
        assert (ours.name, ours.version) == (theirs.name, str(theirs.version))

    return check


def test_several_folders_read_as_tfds_reads_them(tmp_path: Path) -> None:
    """Against builder_from_directories, whose order of splits is random."""
    check_cases(several_parts, several_check(tmp_path), 15)


@pytest.mark.fuzz
def test_any_folders_read_as_tfds_reads_them(tmp_path: Path) -> None:
    check_cases(several_parts, several_check(tmp_path), FUZZ // 4, fuzz=True)
