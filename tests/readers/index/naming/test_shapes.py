from __future__ import annotations

import hashlib
import itertools

import pytest

from shardctl.readers.index.naming.shapes import (
    MOST_SHAPES,
    NUMBER,
    RANDOM,
    Shape,
    shapes_of,
    uncompressed,
)
from tests.named_files import files_named


def shapes(*names: str) -> list[Shape]:
    found = shapes_of(files_named(names))
    assert found is not None
    return found


def shown(shape: Shape) -> str:
    return shape.text.replace(NUMBER, "#").replace(RANDOM, "?")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("a-007.tar", "a-#.tar"),
        ("part-00000-3f2504e0-4f89-11d3-9a0c-0305e82c3301.c000.parquet", "part-#-?.c#.parquet"),
        ("train-00000-of-00002-1234567890123456.parquet", "train-#-of-#-?.parquet"),
        ("train-00000-of-00002-abcdefabcdefabcd.parquet", "train-#-of-#-?.parquet"),
        ("train-00000-of-00002.parquet", "train-#-of-#.parquet"),
        ("a-20201231.tar", "a-#.tar"),
        ("facade-1.tar", "facade-#.tar"),
        ("t1234567890123456789.tar", "t?.tar"),
        ("a-1.tar.gz", "a-#.tar"),
        ("a-1.bz2", "a-#"),
    ],
)
def test_numbers_and_random_words_are_marks(name: str, shape: str) -> None:
    assert [shown(found) for found in shapes(name)] == [shape]


def test_numbers_are_columns() -> None:
    (shape,) = shapes("a-7-x-01", "a-10-x-01", "a-8-x-01.gz")
    assert [list(column) for column in shape.numbers] == [[7, 10, 8], [1, 1, 1]]
    assert shape.widths == [(1, 2), (2, 2)]
    assert shape.endings == {"", ".gz"}
    assert shape.varying() == [0]
    assert shape.text_of(1, [0]) == f"a-{NUMBER}-x-01"
    assert shape.random == []


def test_the_pair_is_the_last_that_says_x_of_y() -> None:
    assert shapes("1-of-2-x-3-of-4")[0].pair == (2, 3)
    assert shapes("1_of_2")[0].pair == (0, 1)
    assert shapes("1-2")[0].pair is None


def test_folders_have_shapes_of_their_own() -> None:
    assert len(shapes("a/0.tar", "b/0.tar", "a/1.tar")) == 2


def test_random_words_that_differ_are_not_kept() -> None:
    (same,) = shapes("1-0123456789abcdef", "2-0123456789abcdef")
    (other,) = shapes("1-0123456789abcdef", "2-1123456789abcdef")
    assert (same.random, other.random) == (["0123456789abcdef"], None)


def test_too_many_shapes_are_none() -> None:
    names = map("".join, itertools.product("mnopqrstuv", repeat=5))
    assert shapes_of(files_named(itertools.islice(names, MOST_SHAPES + 1))) is None
    assert uncompressed("a.GZ") == "a"


def test_a_random_word_may_have_no_letter() -> None:
    (found,) = shapes("part-0-12345678.tar", "part-2-abcdef01.tar", "part-10-1234567f.tar")
    assert (shown(found), list(found.places)) == ("part-#-?.tar", [1, 2, 0])
    assert [list(column) for column in found.numbers] == [[2, 10, 0]]
    assert (found.widths, found.random) == ([(1, 2)], None)
    # Numbers of another width are no words, nor are numbers beside one that looks like a word.
    assert len(shapes("a-1234567.tar", "a-abcdef01.tar")) == 2
    assert len(shapes("a-00000000.tar", "a-00000001.tar", "a-00000002.tar", "a-abcdef01.tar")) == 2


def test_hashes_are_of_one_shape_however_many_have_no_letter() -> None:
    hashes = [hashlib.md5(b"%d" % n, usedforsecurity=False).hexdigest()[:8] for n in range(500)]
    assert sum(word.isdigit() for word in hashes) > 5
    assert [shown(found) for found in shapes(*(f"train-{word}.tar" for word in hashes))] == [
        "train-?.tar"
    ]
