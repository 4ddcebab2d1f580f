"""The names of files as a field of a document, and back."""

from __future__ import annotations

import pytest

from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.files.fields import files_field, files_of_field

TEMPLATED = ShardFiles(data_dir="/d", pattern="{a}-\0-of-00002", num_shards=2)
NAMED = ShardFiles(data_dir=None, num_shards=2, names=("b", "sub/a"))


@pytest.mark.parametrize(
    ("parts", "folder", "field"),
    [
        ((), None, None),
        ((TEMPLATED,), "/d", "{{a}}-{SHARD_INDEX}-of-00002"),
        (
            (TEMPLATED,),
            "/e",
            [{"template": "{{a}}-{SHARD_INDEX}-of-00002", "num_shards": 2, "data_dir": "/d"}],
        ),
        ((NAMED,), None, [{"names": ["b", "sub/a"]}]),
        ((NAMED,), "/d", [{"names": ["b", "sub/a"], "data_dir": None}]),
    ],
)
def test_a_field_says_all_parts(
    parts: tuple[ShardFiles, ...], folder: str | None, field: object
) -> None:
    assert files_field(parts, folder) == field
    assert tuple(files_of_field(field, 2, folder)) == parts


@pytest.mark.parametrize("field", [3, [3], [{"template": 3, "num_shards": 1}], [{"names": [1]}]])
def test_a_field_that_is_none_is_refused(field: object) -> None:
    with pytest.raises(DatasetError):
        list(files_of_field(field, 2))
