"""What names of files and folders say: their kind, split, dataset and version."""

from __future__ import annotations

import pytest

from shardctl.metadata.index.file_names import (
    NUMBER,
    FileKind,
    dataset_of_folder,
    file_kind,
    named_split,
    split_word,
)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            FileKind.RECORDS,
            "a.tfrecord a.tfrecords a-train.tfrecord-00000-of-00001 x.tfrecord-00012 "
            "TRAIN.TFRECORD a.record a.array_record a.arrayrecord-00000-of-00002 a.parquet "
            "a.snappy.parquet "
            "a.arrow shard.00000.mds shard.00000.mds.zstd 000.tar a.tfrecord.gz "
            "part-00000-3f2504e0-4f89-11d3-9a0c-0305e82c3301.c000.snappy.parquet",
        ),
        (FileKind.SHARD, "train-00000-of-01024 part-00003 part-r-00003 a_3_of_8 a-3-of-8.gz"),
        (FileKind.SIDECAR, "index.json dataset_info.json"),
        (
            FileKind.OTHER,
            "features.json README.md LICENSE labels.txt a.csv a.py a.jpg state.json a.jsonl.gz "
            "a.zip a.idx a.tfrecord.index a.7z a.mp4 a.h5 model.safetensors a.sha256 a.parquet.md5",
        ),
        (
            FileKind.UNFINISHED,
            "_SUCCESS _metadata .DS_Store .a.parquet.crc a.parquet.crc a.tfrecord.tmp a.tar.part "
            "a.tfrecord.incomplete a.tfrecord.incompleteA1 a.tfrecord~ a.arrow.lock "
            "cache-0123456789abcdef.arrow",
        ),
        (FileKind.UNKNOWN, "data blob-7 train"),
    ],
)
def test_kinds_by_names(kind: FileKind, names: str) -> None:
    assert {name: file_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)


@pytest.mark.parametrize(
    ("folder", "text", "split"),
    [
        ("", "toy-train.tfrecord-#-of-#", "train"),
        ("", "toy-train-clean.tfrecord-#-of-#", "train-clean"),
        ("", "train.tfrecord-#-of-#", "train"),
        ("", "my_val_#.tar", "val"),
        ("", "Test-#.parquet", "Test"),
        ("", "coco-train2017-#.tar", "train2017"),
        ("train/", "shard.#.mds", "train"),
        ("train/00/", "#.tar", "train"),
        ("val/", "validation-#.tar", "val"),
        ("split=odd/", "#.parquet", "odd"),
        ("", "trainer-#.tar", None),
        ("", "contest-#.tar", None),
        ("", "train-test-#.tar", None),
        ("test/", "train-#.tar", None),
        ("training_data/", "#.tar", None),
    ],
)
def test_the_split_that_a_name_speaks_of(folder: str, text: str, split: str | None) -> None:
    found = named_split(folder, text.replace("#", NUMBER))
    assert (found.split if found else None) == split


def test_a_folder_is_called_as_a_split_by_its_whole_name() -> None:
    assert split_word("TRAIN") == "TRAIN"
    assert split_word("my-train") is None


@pytest.mark.parametrize(
    ("root", "name", "version"),
    [
        ("/d/mnist/3.0.1", "mnist", "3.0.1"),
        ("/d/c4/en/3.0.1", "en", "3.0.1"),
        ("/d/mnist/train", "mnist", None),
        ("/d/mnist/data/train", "mnist", None),
        ("/data/train", "train", None),
        ("/w/parquet", "parquet", None),
        ("/home/me/tfrecords/val", "tfrecords", None),
        ("gs://bucket/FashionMNIST/1.0.0", "fashion_mnist", "1.0.0"),
        ("hf://datasets/me/my-data", "my_data", None),
        ("/", None, None),
        ("", None, None),
    ],
)
def test_names_and_versions(root: str, name: str | None, version: str | None) -> None:
    assert dataset_of_folder(root) == (name, version)
