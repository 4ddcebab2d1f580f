"""The calls behind the reader: written as mappings, read as those and as the words of old files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.saved.plan_file import call_record, read_call
from shardctl.saved.resume_plan import (
    AfterRead,
    BatchCall,
    ConcatenateCall,
    ShardCall,
    ShuffleCall,
    TakeCall,
)

OWN = " of all but the first 4 instructions, which are this host's alone"
CALLS: list[tuple[AfterRead, dict[str, Any], str]] = [
    (
        ShardCall(num_shards=3, index=1),
        {"call": "shard", "num_shards": 3, "index": 1},
        "shard(3, 1)",
    ),
    (
        ShardCall(num_shards=3, index=0, skip_instructions=4),
        {"call": "shard", "num_shards": 3, "index": 0, "skip_instructions": 4},
        f"shard(3, 0){OWN}",
    ),
    (
        ShuffleCall(buffer_size=1000, seed=7),
        {"call": "shuffle", "buffer_size": 1000, "seed": 7},
        "shuffle(1000, seed=7)",
    ),
    (
        ShuffleCall(buffer_size=-2, seed=-7),
        {"call": "shuffle", "buffer_size": -2, "seed": -7},
        "shuffle(-2, seed=-7)",
    ),
    (
        ShuffleCall(buffer_size=3, seed=None),
        {"call": "shuffle", "buffer_size": 3, "seed": None},
        "shuffle(3, seed=None)",
    ),
    (TakeCall(count=0), {"call": "take", "count": 0}, "take(0)"),
    (
        ConcatenateCall(first_epoch=1, last_epoch=12),
        {"call": "concatenate", "first_epoch": 1, "last_epoch": 12},
        "concatenate(epochs 1 to 12)",
    ),
    (
        BatchCall(batch_size=32, drop_remainder=False),
        {"call": "batch", "batch_size": 32, "drop_remainder": False},
        "batch(32)",
    ),
    (
        BatchCall(batch_size=32, drop_remainder=True),
        {"call": "batch", "batch_size": 32, "drop_remainder": True},
        "batch(32, drop_remainder=True)",
    ),
]


@pytest.mark.parametrize(("call", "record", "words"), CALLS, ids=[words for *_, words in CALLS])
def test_a_call_is_a_mapping_that_is_read_back(
    call: AfterRead, record: dict[str, Any], words: str
) -> None:
    assert call_record(call) == record
    assert next(iter(call_record(call))) == "call"
    assert read_call(json.loads(json.dumps(record))) == call


@pytest.mark.parametrize(("call", "record", "words"), CALLS, ids=[words for *_, words in CALLS])
def test_the_words_of_older_files_are_the_same_call(
    call: AfterRead, record: dict[str, Any], words: str
) -> None:
    assert read_call(words) == call


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "a call of after_read must be a mapping, not 3"),
        ({}, "nothing; there are shard, shuffle, take, concatenate, batch"),
        ({"call": "map"}, "'map'; there are shard"),
        ({"call": ["take"]}, "a list; there are shard"),
        ({"call": "take"}, "after_read.take has no count"),
        ({"call": "take", "count": 1, "counts": 1}, "unknown key 'counts'"),
        (
            {"call": "take", "count": True},
            "after_read.take.count must be a whole number, not true",
        ),
        (
            {"call": "take", "count": "1"},
            "after_read.take.count must be a whole number, not '1'",
        ),
        ({"call": "take", "count": None}, "after_read.take.count must be a whole number"),
        ({"call": "batch", "batch_size": 1, "drop_remainder": 1}, "must be true or false, not 1"),
        ("", "after_read holds calls, not ''"),
        ("take(1) ", "after_read holds calls"),
        ("take(\u0661)", "after_read.take has no count"),
        ("map(f)", "after_read holds calls, not 'map\\(f\\)'"),
        (f"batch(2){OWN}", "after_read holds calls"),
    ],
)
def test_what_is_not_a_call_is_refused(value: object, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        read_call(value)
