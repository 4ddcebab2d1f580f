"""Files that a script lists itself: the same order as the real list_files, or a warning."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ, check_cases


def files_named(names: list[str], lengths: list[int], origin: str = COUNTED_FILES) -> Dataset:
    """Return a dataset of one split with these files, in this order."""
    files = ShardFiles(names=tuple(names), num_shards=len(names))
    split = Split(name="train", shard_lengths=tuple(lengths), files=(files,))
    return Dataset(name="d", splits=(split,), origin=origin)


def any_names(rng: random.Random, number: int) -> list[str]:
    """Return names of shards in the order of their numbers, which need not be that of bytes."""
    name = rng.choice(["train-{}.tfrecord", "part-{:03}.tfrecord", "{}.tfrecord", "t-{}-of-N"])
    return [name.format(index) for index in range(number)]


def check_listed(tf: Any, folder: Path, rng: random.Random) -> int:
    """Compare two iterations of a random pipeline over listed files; return how many examples."""
    folder.mkdir()
    names = any_names(rng, rng.randint(1, 13))
    lengths = [rng.randint(1, 5) for _ in names]
    first = 0
    for name, length in zip(names, lengths, strict=True):
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for example in range(first, first + length):
                writer.write(str(example).encode())
        first += length
    cycle, block = rng.randint(1, 6), rng.randint(1, 4)
    seed = rng.choice([None, rng.randint(0, 99)])
    parallel = rng.choice([None, tf.data.AUTOTUNE])
    listed = tf.data.Dataset.list_files(f"{folder}/*", shuffle=seed is not None, seed=seed)
    dataset = listed.interleave(
        tf.data.TFRecordDataset,
        cycle_length=cycle,
        block_length=block,
        num_parallel_calls=parallel,
        deterministic=True if parallel else None,
    )
    in_bytes = sorted(names, key=str.encode)
    for pass_index in range(2):
        settings = ReadSettings(
            cycle=cycle,
            block=block,
            shuffle_seed=seed,
            file_order=None if in_bytes == names else tuple(in_bytes),
            pass_index=pass_index,
        )
        planned = plan_order(files_named(names, lengths), "train", settings)
        assert planned.warnings == ()
        real = [int(example) for example in dataset.as_numpy_iterator()]
        assert planned.order.read(0, sum(lengths)).tolist() == real
    shutil.rmtree(folder)
    return 2


def test_the_order_of_list_files_is_that_of_the_files_by_their_bytes(
    tf: Any, tmp_path: Path
) -> None:
    def check(rng: random.Random) -> int:
        return check_listed(tf, tmp_path / "files", rng)

    check_cases(st.randoms(use_true_random=False), check, 8)


@pytest.mark.fuzz
def test_random_list_files(tf: Any, tmp_path: Path) -> None:
    def check(rng: random.Random) -> int:
        folder = tmp_path / "files"
        shutil.rmtree(folder, ignore_errors=True)
        return check_listed(tf, folder, rng)

    check_cases(st.randoms(use_true_random=True), check, FUZZ // 4, fuzz=True)


def test_numbers_of_several_widths_are_warned_of() -> None:
    names = ["t-1", "t-2", "t-10"]
    dataset = files_named(names, [1, 1, 1])
    (warning,) = plan_order(dataset).warnings
    assert str(warning) == (
        "train: files are in the order of their numbers, 't-2' before 't-10'; tf.data's list_files "
        "and sorted() have them the other way round: a list in their order, as "
        "--file-order FILE, is "
        "what such a script reads"
    )
    assert plan_order(dataset, "train", {"file_order": sorted(names)}).warnings == ()
    assert plan_order(files_named(["t-01", "t-02", "t-10"], [1, 1, 1])).warnings == ()
    assert plan_order(files_named(names, [1, 1, 1], origin="builder")).warnings == ()


def test_readers_of_stages_are_warned_of_too() -> None:
    dataset = files_named(["t-1", "t-2", "t-10"], [1, 1, 1])
    stages = "shuffle(2, seed=1) | batch(2) | shuffle(2, seed=2)"
    (warning,) = plan_order(dataset, "train", {"stages": stages}).warnings
    assert warning.startswith("train: files are in the order of their numbers")


def test_files_without_examples_are_warned_of(tf: Any, tmp_path: Path) -> None:
    names, lengths = ["a", "b", "c"], [2, 0, 2]
    (warning,) = plan_order(files_named(names, lengths)).warnings
    assert warning.startswith("train: 1 file has no examples; TFDS's reader passes by such files")
    for name, length in zip(names, lengths, strict=True):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            for example in range(length):
                writer.write(f"{name}{example}".encode())
    listed = tf.data.Dataset.list_files(f"{tmp_path}/*", shuffle=False)
    read = listed.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=1)
    real = [example.decode() for example in read.as_numpy_iterator()]
    predicted = plan_order(files_named(names, lengths), "train", {"cycle": 2, "block": 1})
    assert predicted.order.read(0, 4).tolist() == [0, 2, 1, 3]
    assert real == ["a0", "a1", "c0", "c1"]
