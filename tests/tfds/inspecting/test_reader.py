"""Readers of files: what a function does with a file, the list of files, the settings of it all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.spec.host import Host
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.tfds.inspecting.graph import NoConstantError, Operation, Options, operation_of
from shardctl.tfds.inspecting.reader import (
    PLAIN_SPLIT,
    FileFunction,
    FoundReader,
    Listed,
    Piece,
    Rows,
    UnknownReaderError,
    file_function,
    found_reader,
    listed,
    reads_files,
    rows_of,
)
from shardctl.tfds.inspecting.walk import behind_tfds
from tests.tfds_datasets import build_dataset

LENGTHS = {"train": [3, 0, 5, 4, 2, 2, 3, 1, 4, 2], "test": [2, 2]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("files"), splits=LENGTHS)


# What a function does with a file, by its body.


def _found(of_row: Callable[..., Any], *columns: Any) -> FileFunction | None:
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(columns)
    function = operation_of(rows.interleave(of_row, cycle_length=2)).function
    assert function is not None
    return file_function(function)


def _records(path: Any, *compression: str) -> Any:
    import tensorflow as tf

    return tf.data.TFRecordDataset(path, *compression)


def test_records_of_a_path_are_known(tf: Any) -> None:
    paths, numbers = ["a", "b"], [tf.constant(n, tf.int64) for n in ([1, 2], [3, 4])]
    assert _found(_records, paths) == FileFunction(path=0)
    assert _found(lambda n, path: _records(path), [1, 2], paths) == FileFunction(path=1)
    packed = _found(lambda path: _records(path, "GZIP"), paths)
    assert packed == FileFunction(path=0, compression="GZIP")
    mapped = _found(lambda path: _records(path).map(tf.strings.length).prefetch(1), paths)
    assert mapped == FileFunction(path=0)
    cut = _found(lambda path: _records(path).skip(1).take(2), paths)
    assert cut == FileFunction(path=0, skips=1, takes=2)
    given = (paths, *numbers)
    found = _found(lambda path, skip, take: _records(path).skip(skip).take(take), *given)
    assert found == FileFunction(path=0, skip=1, take=2)
    assert _found(lambda path, skip, take: _records(path).take(take).skip(skip), *given) is None


@pytest.mark.parametrize(
    "of_row",
    [
        lambda path: _records(path).filter(lambda record: True),
        lambda path: _records(path).shuffle(3, seed=1),
        lambda path: _records(path).repeat(2),
        lambda path: _records(path).skip(1).skip(2),
        lambda path: _records("a"),
        lambda path: _records(path).concatenate(_records(path)),
    ],
)
def test_anything_else_is_not_known(of_row: Callable[..., Any]) -> None:
    assert _found(of_row, ["a", "b"]) is None


# Files of a reader as dataset, spec and order of the files.


def _listed(folder: Path, *pieces: tuple[Any, ...]) -> Listed:
    """Return what pieces come to, each a shard, how many are skipped and taken, and a split."""
    made = []
    for piece in pieces:
        defaults: tuple[Any, ...] = (0, 0, None, "train")
        shard, skip, take, split = (*piece, *defaults[len(piece) :])
        name = f"toy-{split}.tfrecord-{shard:05d}-of-{len(LENGTHS[split]):05d}"
        made.append(Piece(path=str(folder / name), skip=skip, take=take))
    return listed(made, FileFunction(path=0))


def test_a_spec_lists_the_same_file_instructions(folder: Path) -> None:
    assert _listed(folder, (0,), (2,), (3,)).spec == "train[:12]"
    assert _listed(folder, (0,), *((i,) for i in range(2, 10))).spec == "train"
    found = _listed(folder, (0, 1), (2, 0, 2), (1, 0, None, "test"), (2, 2, -1), (2, 2, 2))
    assert found.spec == "train[1:5]+test[2:]+train[5:8]+train[5:7]"
    reads = reads_of(found.dataset, resolve_subsplit(found.spec, found.dataset).ranges)
    columns = (reads.split, reads.shard, reads.skip, reads.take)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert rows == [(0, 0, 1, 2), (0, 2, 0, 2), (1, 1, 0, 2), (0, 2, 2, 3), (0, 2, 2, 2)]
    with pytest.raises(DatasetError, match="takes a slot in the interleave all the same"):
        _listed(folder, (0,), (1,))


def test_a_list_back_to_front_and_one_in_an_order_of_its_own(folder: Path) -> None:
    turned = _listed(folder, *((i,) for i in (9, 8, 7, 6, 5, 4, 3, 2, 0)))
    assert (turned.spec, turned.sorting) == ("train", (("reverse", True),))
    mixed = _listed(folder, *((i,) for i in (9, 0, 5, 2, 7, 4, 6, 3, 8)))
    ((name, order),) = mixed.sorting
    assert (mixed.spec, name, len(order)) == ("train", "file_order", 9)
    assert order[0] == "toy-train.tfrecord-00009-of-00010"
    few = _listed(folder, (5,), (0,))
    assert (few.spec, few.sorting) == ("train[14:16]+train[:3]", ())


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_record_files_without_metadata_are_counted(
    tf: Any, tmp_path: Path, compression: str
) -> None:
    for name, count in (("b", 2), ("a", 3)):
        with tf.io.TFRecordWriter(str(tmp_path / name), compression) as writer:
            for _ in range(count):
                writer.write(b"record")
    pieces = [Piece(path=str(tmp_path / "b")), Piece(path=str(tmp_path / "a"), skip=1)]
    found = listed(pieces, FileFunction(path=0, compression=compression))
    (split,) = found.dataset.splits
    assert (found.dataset.origin, found.dataset.compression) == (
        "record files",
        compression or None,
    )
    assert (split.name, tuple(split.shard_lengths)) == (PLAIN_SPLIT, (3, 2))
    assert (found.spec, found.sorting) == ("files[1:]", (("reverse", True),))
    gone = Piece(path=str(tmp_path / "gone"))
    with pytest.raises(DatasetError, match=r"gone' missing"):
        listed([*pieces, gone], FileFunction(path=0, compression=compression))
    other, word = ("", "none") if compression else ("GZIP", "GZIP")
    said = f"is compressed by {compression or 'nothing'}, and the script reads it by {word}"
    with pytest.raises(DatasetError, match=said):
        listed(pieces, FileFunction(path=0, compression=other))


# The list of files of a reader, and what is done with it.


def _rows(make: Callable[[Any], Any]) -> Rows:
    import tensorflow as tf

    return rows_of(operation_of(make(tf.data.Dataset.from_tensor_slices(["a", "b", "c"]))))


def test_a_list_is_cut_shared_shuffled_and_repeated() -> None:
    cut = _rows(lambda files: files.skip(1).take(5))
    assert cut.columns[0].tolist() == [b"b", b"c"]
    rows = _rows(lambda files: files.shard(2, 1).shuffle(3, seed=7).repeat().prefetch(1))
    assert (rows.host, rows.pair) == (Host(index=1, count=2), (87654321, 7))
    assert (rows.reshuffle, rows.repeats) == (True, True)
    assert _rows(lambda files: files.shard(1, 0).repeat(1)).host is None
    assert len(_rows(lambda files: files.skip(-1))) == 0


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda files: files.shuffle(2, seed=1), "^shuffle does to the list"),
        (lambda files: files.shuffle(3, seed=1).shard(2, 0), "^shard does to the list"),
        (lambda files: files.shard(2, 0).shard(2, 0), "^shard does"),
        (lambda files: files.repeat(3), "^repeat does"),
        (lambda files: files.repeat().shuffle(9, seed=1), "^shuffle does"),
        (lambda files: files.shuffle(3, seed=1).take(2), "^take does"),
        (lambda files: files.filter(lambda file: True), "FilterDataset makes the list"),
    ],
)
def test_what_settings_cannot_say_is_said(make: Callable[[Any], Any], why: str) -> None:
    with pytest.raises(NoConstantError, match=why):
        _rows(make)


# Readers with the settings that they come to.


def _files(folder: Path) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(sorted(map(str, folder.glob("*test.tfrecord*"))))


def _reader(dataset: Any) -> FoundReader:
    operation = operation_of(dataset)
    assert reads_files(operation)
    return found_reader(operation)


def test_an_interleave_of_record_files(folder: Path) -> None:
    files = _files(folder).shard(2, 1).shuffle(3, seed=5, reshuffle_each_iteration=False)
    found = _reader(files.interleave(_records, cycle_length=3, block_length=4))
    assert dict(found.settings) == {
        "cycle": 3,
        "block": 4,
        "shuffle_files": True,
        "reshuffle": False,
        "host": Host(index=1, count=2),
        "host_by": "files",
    }
    assert (found.pair, found.listed.spec, found.is_tfds) == ((87654321, 5), "test", False)


def test_what_opens_no_file_that_is_here_is_no_reader(tf: Any, tmp_path: Path) -> None:
    with pytest.raises(UnknownReaderError, match="gone"):
        found_reader(operation_of(_records([str(tmp_path / "gone")])))
    numbers = tf.data.Dataset.range(3)
    assert not reads_files(operation_of(numbers))
    assert not reads_files(operation_of(numbers.interleave(tf.data.Dataset.range)))


# What TFDS puts behind its interleave belongs to its reader, and nothing else.


def _behind(
    folder: Path, then: Callable[[Any], Any], in_force: Options | None = None, **config: Any
) -> tuple[FoundReader, Any, list[str]]:
    """Return the reader, the options that it states, and the operations that are left."""
    import tensorflow_datasets as tfds

    made = tfds.builder_from_directory(folder).as_dataset(
        split="test", read_config=tfds.ReadConfig(**config), shuffle_files="shuffle_seed" in config
    )
    chain: list[Operation] = [operation_of(then(made))]
    while not reads_files(chain[-1]):
        chain.append(chain[-1].input)
    first, *rest = reversed(chain)
    reader, own, left = behind_tfds(found_reader(first), tuple(rest), in_force or Options())
    return reader, own, [operation.op for operation in left]


@pytest.mark.parametrize(
    ("config", "then", "left"),
    [
        ({}, lambda ds: ds, []),
        ({"shuffle_seed": 1}, lambda ds: ds, []),
        ({}, lambda ds: ds.cache().prefetch(2), ["CacheDatasetV2", "PrefetchDataset"]),
        # A cache that keeps a shuffled order is a stage, and so is one in a file.
        ({"shuffle_seed": 1, "skip_prefetch": True}, lambda ds: ds.cache(), ["CacheDatasetV2"]),
        ({"skip_prefetch": True, "try_autocache": False}, lambda ds: ds.cache(), []),
        (
            {"skip_prefetch": True, "try_autocache": False},
            lambda ds: ds.cache("/nowhere/kept"),
            ["CacheDatasetV2"],
        ),
    ],
)
def test_what_belongs_to_the_reader(
    folder: Path, config: dict[str, Any], then: Callable[[Any], Any], left: list[str]
) -> None:
    _, own, ops = _behind(folder, then, **config)
    assert (own, ops) == ((), left)
