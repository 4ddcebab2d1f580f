"""Files of a reader -> dataset, spec and order of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.tfds.recognizing.reader import PLAIN_SPLIT, Listed, Piece, listed
from tests.tfds_datasets import build_dataset

LENGTHS = {"train": [3, 0, 5, 4, 2, 2, 3, 1, 4, 2], "test": [2, 2]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("files"), splits=LENGTHS)


def _piece(
    folder: Path, shard: int, skip: int = 0, take: int | None = None, split: str = "train"
) -> Piece:
    name = f"toy-{split}.tfrecord-{shard:05d}-of-{len(LENGTHS[split]):05d}"
    return Piece(path=str(folder / name), skip=skip, take=take)


def _listed(*pieces: Piece) -> Listed:
    return listed(pieces, file_format="tfrecord", compression="")


def _instructions(found: Listed) -> list[tuple[int, int, int, int]]:
    reads = reads_of(found.dataset, resolve_subsplit(found.spec, found.dataset).ranges)
    columns = (reads.split, reads.shard, reads.skip, reads.take)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_spec_lists_the_same_file_instructions(folder: Path) -> None:
    assert _listed(*(_piece(folder, i) for i in (0, 2, 3))).spec == "train[:12]"
    whole = _listed(*(_piece(folder, i) for i in (0, *range(2, 10))))
    assert whole.spec == "train"
    found = _listed(
        _piece(folder, 0, 1),
        _piece(folder, 2, 0, 2),
        _piece(folder, 1, split="test"),
        _piece(folder, 2, 2, -1),
        _piece(folder, 2, 2, 2),
    )
    assert found.spec == "train[1:5]+test[2:]+train[5:8]+train[5:7]"
    assert _instructions(found) == [
        (0, 0, 1, 2),
        (0, 2, 0, 2),
        (1, 1, 0, 2),
        (0, 2, 2, 3),
        (0, 2, 2, 2),
    ]


def test_a_list_back_to_front_and_one_in_an_order_of_its_own(folder: Path) -> None:
    shards = (0, *range(2, 10))
    turned = _listed(*(_piece(folder, i) for i in reversed(shards)))
    assert (turned.spec, turned.sorting) == ("train", (("reverse", True),))
    mixed = _listed(*(_piece(folder, i) for i in (9, 0, 5, 2, 7, 4, 6, 3, 8)))
    assert mixed.spec == "train"
    ((name, order),) = mixed.sorting
    assert (name, order[0], len(order)) == ("file_order", "toy-train.tfrecord-00009-of-00010", 9)
    few = _listed(*(_piece(folder, i) for i in (5, 0)))
    assert (few.spec, few.sorting) == ("train[14:16]+train[:3]", ())


def test_files_of_which_nothing_is_read_are_refused(folder: Path) -> None:
    with pytest.raises(DatasetError, match="takes a place in the interleave all the same"):
        _listed(_piece(folder, 0), _piece(folder, 1))


def test_record_files_without_metadata_are_counted(tmp_path: Path) -> None:
    import tensorflow as tf

    for name, count in (("b", 2), ("a", 3)):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            for _ in range(count):
                writer.write(b"record")
    found = _listed(Piece(path=str(tmp_path / "b")), Piece(path=str(tmp_path / "a"), skip=1))
    assert found.dataset.origin == "record files"
    (split,) = found.dataset.splits
    assert (split.name, tuple(split.shard_lengths)) == (PLAIN_SPLIT, (3, 2))
    assert (found.spec, found.sorting) == ("files[1:]", (("reverse", True),))
    with pytest.raises(DatasetError, match="missing"):
        _listed(Piece(path=str(tmp_path / "missing")))


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_files_are_counted(tmp_path: Path, compression: str) -> None:
    import tensorflow as tf

    path = str(tmp_path / "a")
    with tf.io.TFRecordWriter(path, compression) as writer:
        for _ in range(3):
            writer.write(b"record")
    piece = Piece(path=path)
    found = listed([piece], file_format="tfrecord", compression=compression)
    assert tuple(found.dataset.splits[0].shard_lengths) == (3,)
    assert found.dataset.compression == compression
    with pytest.raises(DatasetError, match=f"by {compression}, and the script reads it by none"):
        listed([piece], file_format="tfrecord", compression="")
