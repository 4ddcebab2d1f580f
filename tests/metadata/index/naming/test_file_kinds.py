from __future__ import annotations

import pytest

from shardctl.metadata.index.words import FileKind, file_kind, is_passed_over


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


def test_folders_that_nobody_looks_into() -> None:
    assert all(map(is_passed_over, ("_temporary", ".git", "3.0.1.incompleteA1B2C3")))
    assert not any(map(is_passed_over, ("train", "3.0.1", "a_b")))
