"""Layouts of splits: which shards, which ids, how many bytes, how even."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.metadata.files_on_disk import check_files, with_disk_bytes
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.verbs.layout.answer import SplitLayout, layout
from tests.cli.conftest import Shardctl
from tests.golden import assert_evaluated
from tests.strategies import datasets
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset, write_dataset


def split_of(*lengths: int, **facts: object) -> Split:
    files = ShardFiles(pattern="toy-train-\0", num_shards=len(lengths))
    return Split(name="train", shard_lengths=lengths, files=(files,), **facts)  # type: ignore[arg-type]


def layout_of(*lengths: int, **facts: object) -> SplitLayout:
    return SplitLayout(split=split_of(*lengths, **facts))


def with_splits(*names: str) -> Dataset:
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
    there = read_tfds_folder(folder)
    dataset = with_disk_bytes(there, check_files(there))
    builder = tfds.builder_from_directory(folder)
    for split in layout(dataset).splits:
        info = builder.info.splits[split.split.name]
        shards = list(split.shards())
        assert [shard.filename for shard in shards] == sorted(info.filenames)
        assert [shard.num_examples for shard in shards] == list(info.shard_lengths)
        sizes = [(folder / shard.filename).stat().st_size for shard in shards]
        assert [shard.num_bytes for shard in shards] == sizes
        assert (split.num_bytes, split.bytes_from) == (sum(sizes), "disk")


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


def bytes_of(stated: int | None, sizes: tuple[int | None, ...] | None) -> object:
    split = layout_of(3, 0, 2, num_bytes=stated, shard_bytes=sizes)
    assert tuple(shard.num_bytes for shard in split.shards()) == (sizes or (None, None, None))
    return split.num_bytes, split.bytes_from


def test_splits_come_in_the_order_asked_each_once() -> None:
    assert_evaluated(globals(), "asked")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", splits={"train": [3, 4, 5], "test": [2, 0]})


def test_files_that_disagree_with_the_metadata_are_warnings(shardctl: Shardctl, toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00003").unlink()
    (toy / "toy-train.tfrecord-00001-of-00003").write_bytes(b"")
    (toy / "toy-train.tfrecord-00003-of-00003").write_bytes(b"x")
    (toy / "toy-test.tfrecord-00000-of-00009").write_bytes(b"x")
    ran = shardctl("layout", "-d", toy)
    assert ran.exit_code == 0
    warnings = ran.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in warnings)
    for words in (
        "'toy-train.tfrecord-00000-of-00003' is missing",
        "'toy-train.tfrecord-00001-of-00003' has 0 bytes",
        "'toy-train.tfrecord-00003-of-00003' is one too many",
        "'toy-test.tfrecord-00000-of-00009' is one of 9",
    ):
        assert sum(words in line for line in warnings) == 1
    assert "missing" in ran.stdout


def test_warnings_are_about_the_splits_asked_for(shardctl: Shardctl, toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00003").unlink()
    assert shardctl("layout", "-d", toy, "test").stderr == ""
    assert "is missing" in shardctl("layout", "-d", toy, "train").stderr


def test_many_warnings_are_a_handful_and_a_count(shardctl: Shardctl, tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "data", splits={"train": [1] * 20})
    for index in range(12):
        (folder / f"toy-train.tfrecord-{index:05}-of-00020").unlink()
    warnings = shardctl("layout", "-d", folder).stderr.splitlines()
    assert len(warnings) == 6
    assert warnings[-1] == "warning: and 7 more"


def test_a_pipe_gets_bars_where_they_are_asked_for(shardctl: Shardctl, toy: Path) -> None:
    table = shardctl("layout", "-d", toy).stdout
    shown = shardctl("layout", "-d", toy, "--picture").stdout
    assert shown.startswith(f"{table}\nA longer bar is a shard")
    picture = shown.removeprefix(table).splitlines()
    # Shards of 3, 4 and 5 examples: the third is a quarter over the mean.
    assert "shard 2 has the most: 5 examples (+25.0% over the mean)" in picture
    assert 70 < max(map(len, picture)) <= 80


def test_of_splits_without_examples_one_is_drawn(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text("splits: {one: {shard_lengths: [0]}, two: {shard_lengths: [0]}}")
    drawn = shardctl("layout", "-d", "toy.yaml", "-f", "svg").stdout
    assert ("one in toy" in drawn, "two in toy" in drawn) == (True, False)


def test_pictures_alone_are_one_svg(shardctl: Shardctl, toy: Path) -> None:
    ran = shardctl("layout", "-d", toy, "-f", "svg")
    texts = [element.text for element in ElementTree.fromstring(ran.stdout).iter()]
    assert {"train in toy:1.0.0: 3 shards", "test in toy:1.0.0: 2 shards"} <= set(texts)
    assert "5 most" in texts
