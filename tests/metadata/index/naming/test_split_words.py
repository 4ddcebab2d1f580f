from __future__ import annotations

import pytest

from shardctl.metadata.index.words import (
    NUMBER,
    named_split,
    speaks_of_several,
    split_in_place,
    split_word,
)


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


def test_names_that_speak_of_several() -> None:
    assert speaks_of_several("", "train-test-0")
    assert speaks_of_several("test/", "train-0")
    assert not speaks_of_several("val/", "valid-0")
    assert not speaks_of_several("a/", "b")


def test_what_stands_where_others_name_their_split() -> None:
    assert split_in_place("a-\2-#.tar", "", "a-odd-#.tar") == "odd"
    assert split_in_place("split=\2/", "split=odd/", "0.tar") == "odd"
    assert split_in_place("a-\2-#.tar", "", "b-odd-#.tar") is None
    assert split_in_place("\2/", "a/b/", "0.tar") is None
    assert split_word("TRAIN") == "TRAIN"
    assert split_word("my-train") is None
