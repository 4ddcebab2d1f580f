"""The list of files of a reader, and what is done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shardctl.spec.host import Host
from shardctl.tfds.recognizing.graph import NoConstantError, operation_of
from shardctl.tfds.recognizing.reader import Rows, rows_of


def _rows(make: Callable[[Any], Any]) -> Rows:
    import tensorflow as tf

    return rows_of(operation_of(make(tf.data.Dataset.from_tensor_slices(["a", "b", "c"]))))


def test_a_list_is_cut_shared_shuffled_and_repeated() -> None:
    cut = _rows(lambda files: files.skip(1).take(5))
    assert cut.columns[0].tolist() == [b"b", b"c"]
    rows = _rows(lambda files: files.shard(2, 1).shuffle(3, seed=7).repeat().prefetch(1))
    assert (rows.host, rows.pair, rows.reshuffle, rows.repeats) == (
        Host(index=1, count=2),
        (87654321, 7),
        True,
        True,
    )
    assert _rows(lambda files: files.shard(1, 0).repeat(1)).host is None
    assert len(_rows(lambda files: files.skip(-1))) == 0


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda files: files.shuffle(2, seed=1), "a buffer of 2, not as a whole"),
        (lambda files: files.shuffle(3, seed=1).shard(2, 0), "shuffled, then sharded"),
        (lambda files: files.shard(2, 0).shard(2, 0), "sharded twice"),
        (lambda files: files.repeat(3), "repeated 3 times"),
        (lambda files: files.repeat().shuffle(9, seed=1), "behind a shuffle or a repeat"),
        (lambda files: files.shuffle(3, seed=1).take(2), "cut behind"),
        (lambda files: files.filter(lambda file: True), "FilterDataset makes the list"),
    ],
)
def test_what_settings_cannot_say_is_said(make: Callable[[Any], Any], why: str) -> None:
    with pytest.raises(NoConstantError, match=why):
        _rows(make)
