"""The layout of splits: which shards, which ids, how many bytes, how even."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.metadata.files_on_disk import with_disk_bytes
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.verbs.layout.answer import Balance, SplitLayout, layout
from tests.strategies import datasets
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset


def split_of(*lengths: int, **facts: object) -> Split:
    files = ShardFiles(pattern="toy-train-\0", num_shards=len(lengths))
    return Split(name="train", shard_lengths=lengths, files=(files,), **facts)  # type: ignore[arg-type]


def layout_of(*lengths: int, **facts: object) -> SplitLayout:
    return SplitLayout(split=split_of(*lengths, **facts))


def toy(*names: str) -> Dataset:
    files = ShardFiles(pattern="toy-\0", num_shards=1)
    splits = tuple(Split(name=name, shard_lengths=(1,), files=(files,)) for name in names)
    return Dataset(name="toy", splits=splits)


def names_of(dataset: Dataset, *asked: str) -> list[str]:
    return [split.split.name for split in layout(dataset, *asked).splits]


@pytest.mark.long
@given(datasets())
def test_the_ids_of_the_shards_are_those_of_the_split_in_order(dataset: Dataset) -> None:
    for split in layout(dataset).splits:
        ids = [
            shard.first_id + number
            for shard in split.shards()
            for number in range(shard.num_examples)
        ]
        assert ids == list(range(sum(split.split.shard_lengths)))


@pytest.mark.long
@given(datasets())
def test_a_stretch_of_the_shards_is_that_slice_of_all(dataset: Dataset) -> None:
    for split in layout(dataset).splits:
        shards = list(split.shards())
        for start in range(len(shards) + 1):
            assert list(split.shards(start)) == shards[start:]
            assert list(split.shards(0, start)) == shards[:start]


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
def test_shards_are_the_files_that_tfds_wrote(tmp_path: Path, file_format: str) -> None:
    import tensorflow_datasets as tfds

    lengths = {"train": [3, 0, 5], "test": [1]}
    folder = build_dataset(tmp_path, splits=lengths, file_format=file_format)
    dataset = with_disk_bytes(read_tfds_folder(folder))
    builder = tfds.builder_from_directory(folder)
    for split in layout(dataset).splits:
        info = builder.info.splits[split.split.name]
        shards = list(split.shards())
        assert [shard.filename for shard in shards] == sorted(info.filenames)
        assert [shard.num_examples for shard in shards] == list(info.shard_lengths)
        sizes = [(folder / shard.filename).stat().st_size for shard in shards]
        assert [shard.num_bytes for shard in shards] == sizes
        assert (split.num_bytes, split.bytes_from) == (sum(sizes), "disk")


def test_an_empty_shard_has_the_id_that_comes_next() -> None:
    assert [shard.first_id for shard in layout_of(0, 2, 0, 0, 3, 0).shards()] == [0, 0, 2, 2, 2, 5]


@pytest.mark.parametrize(
    ("lengths", "balance"),
    [
        ((4, 4, 4), Balance(min=4, max=4, mean=4.0, imbalance=1.0)),
        ((1, 3), Balance(min=1, max=3, mean=2.0, imbalance=1.5)),
        ((6, 0, 0), Balance(min=0, max=6, mean=2.0, imbalance=3.0)),
        ((7,), Balance(min=7, max=7, mean=7.0, imbalance=1.0)),
        ((0, 0), Balance(min=0, max=0, mean=0.0, imbalance=None)),
        ((), Balance(min=None, max=None, mean=None, imbalance=None)),
        ((0, 2**63 - 1), Balance(min=0, max=2**63 - 1, mean=2.0**62, imbalance=2.0)),
    ],
)
def test_imbalance_is_the_largest_shard_over_the_mean(
    lengths: tuple[int, ...], balance: Balance
) -> None:
    assert layout_of(*lengths).balance == balance


@pytest.mark.long
@given(datasets())
def test_imbalance_is_1_where_all_are_equal_and_more_elsewhere(dataset: Dataset) -> None:
    for split in layout(dataset).splits:
        lengths, imbalance = split.split.shard_lengths, split.balance.imbalance
        if not any(lengths):
            assert imbalance is None
            continue
        assert imbalance is not None
        assert (imbalance == 1.0) == (len(Counter(lengths)) == 1)
        assert imbalance == pytest.approx(
            float(max(lengths) / Fraction(sum(lengths), len(lengths)))
        )


def test_shards_divide_among_as_many_hosts_as_leave_no_remainder() -> None:
    for num_shards in [*range(200), 1024, 1000, 9973]:
        by_trying = [hosts for hosts in range(1, num_shards + 1) if num_shards % hosts == 0]
        assert list(layout_of(*[1] * num_shards).even_host_counts) == by_trying


@pytest.mark.parametrize(
    ("stated", "sizes", "num_bytes", "bytes_from"),
    [
        (100, None, 100, "metadata"),
        (None, None, None, None),
        (100, (60, 0, 50), 110, "disk"),
        (None, (60, None, 50), 110, "disk"),  # the shard without a file is empty
        (100, (60, 0, None), 100, "metadata"),  # a part of the bytes is not the bytes
        (None, (60, 0, None), None, None),
        (0, None, 0, "metadata"),
    ],
)
def test_bytes_are_those_of_the_files_where_all_are_here(
    stated: int | None,
    sizes: tuple[int | None, ...] | None,
    num_bytes: int | None,
    bytes_from: str | None,
) -> None:
    split = layout_of(3, 0, 2, num_bytes=stated, shard_bytes=sizes)
    assert (split.num_bytes, split.bytes_from) == (num_bytes, bytes_from)
    assert tuple(shard.num_bytes for shard in split.shards()) == (sizes or (None, None, None))


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ((), ["test", "train"]),
        (("all",), ["test", "train"]),
        (("train",), ["train"]),
        (("train", "test"), ["train", "test"]),
        (("train", "train"), ["train"]),
        (("train", "all"), ["train", "test"]),
    ],
)
def test_splits_come_in_the_order_asked_each_once(
    asked: tuple[str, ...], answered: list[str]
) -> None:
    assert names_of(toy("test", "train"), *asked) == answered


def test_a_split_whose_name_looks_like_a_subsplit_is_a_split() -> None:
    assert names_of(toy("train+test"), "train+test") == ["train+test"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("trian", "no split 'trian' in toy; it has: train, test"),
        ("", "no split '' in toy; it has: test, train"),
        (
            "train[:5]",
            "'train[:5]' is a subsplit, which plan resolves; "
            "a layout is that of whole splits: test, train",
        ),
        (
            "train+test",
            "'train+test' is a subsplit, which plan resolves; "
            "a layout is that of whole splits: test, train",
        ),
    ],
)
def test_what_is_no_split_is_refused_with_the_choices(asked: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        layout(toy("test", "train"), asked)
    assert str(refusal.value) == message
