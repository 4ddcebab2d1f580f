from __future__ import annotations

import pytest

from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.readers.index.naming.shapes import shapes_of
from shardctl.readers.index.naming.shard_sets import Folders, named_split, sets_of
from shardctl.readers.index.naming.splits_by_names import template_of
from tests.named_files import ROOT, files_named


def template(names: list[str]) -> str | None:
    folders = Folders(files=files_named(names), root=ROOT)
    (found,) = sets_of(shapes_of(folders.files) or [])
    below = folders.below(found)
    named = named_split(below, found.text)
    split = named.split if named else "train"
    (file_format,) = folders.file_formats(found)
    made = template_of(
        found,
        below,
        named=named,
        dataset="toy",
        split=split,
        file_format=file_format,
    )
    if made is not None:
        templated = ShardFiles.from_template(
            made,
            dataset="toy",
            split=split,
            file_format=file_format or "",
            num_shards=len(names),
        )
        assert list(templated) == names
    return made


def many(text: str, num_shards: int = 3) -> list[str]:
    return [text.format(at, num_shards) for at in range(num_shards)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (many("toy-a.tfrecord-{:05d}-of-{:05d}"), "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"),
        (many("dog-a.tfrecord-{:05d}-of-{:05d}"), "dog-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"),
        (many("test/{:05d}.parquet"), "{SPLIT}/{SHARD_INDEX}.{FILEFORMAT}"),
        (many("test/shard.{:05d}.mds"), "{SPLIT}/shard.{SHARD_INDEX}.{FILEFORMAT}"),
        (many("x{{y}}-{:05d}-of-{}.tar"), "x{{y}}-{SHARD_INDEX}-of-3.tar"),
        (many("x_{:05d}_of_{:05d}.tar"), "x_{SHARD_INDEX}_of_00003.tar"),
        (many("x-{:05d}.tfrecord.gz"), "x-{SHARD_INDEX}.{FILEFORMAT}.gz"),
        (many("x-{:06d}.tar"), None),
        (many("x-{}.tar"), None),
        (many("x-{:05d}.tar")[1:], None),
        (["x-00000.tar", "x-00002.tar"], None),
        (["x-00000.tar", "x-00001.tar", "x-00001.tar.gz"], None),
        (many("x-{:05d}-of-{:05d}-0123456789abcdef.parquet"),
         "x-{SHARD_X_OF_Y}-0123456789abcdef.{FILEFORMAT}"),
    ],
)  # fmt: skip
def test_a_template_gives_just_these_names(names: list[str], expected: str | None) -> None:
    assert template(names) == expected


@pytest.mark.long
def test_many_shards_have_more_digits() -> None:
    names = many("x-{:06d}-of-{:06d}", 100_001)
    assert template(names) == "x-{SHARD_X_OF_Y}"
