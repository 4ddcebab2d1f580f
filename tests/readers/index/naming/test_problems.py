from __future__ import annotations

import random

import pytest

from shardctl.readers.index.naming.shapes import shapes_of
from shardctl.readers.index.naming.shard_sets import ShardSet, ordered, sets_of
from shardctl.readers.index.naming.splits_by_names import problems_of, several_writes, why_uncounted
from tests.named_files import ROOT, files_named


def found_in(names: list[str]) -> tuple[ShardSet, list[int], list[str]]:
    """Return the one set of some names, its rows in order, and what is said of it."""
    files = files_named(names)
    (found,) = sets_of(shapes_of(files) or [])
    order = ordered(files, found)

    def name_of(row: int) -> str:
        return files.path(found.places[row]).removeprefix(f"{ROOT}/")

    said = [problem.text for problem in problems_of("s", found, order, name_of)]
    return found, order, said


@pytest.mark.parametrize("missing", [[], [0], [9], [3], [0, 1, 2, 8], [1, 3, 5, 7, 8, 9]])
def test_missing_shards_of_n(missing: list[int]) -> None:
    names = [f"d/a-{at:05d}-of-00010.x" for at in range(10) if at not in missing]
    said = found_in(random.Random(0).sample(names, len(names)))[2]
    if not missing:
        assert said == []
    elif len(missing) == 1:
        (at,) = missing
        assert said == [f"s: shard {at} of 10 is missing (d/a-{at:05d}-of-00010.x)"]
    else:
        assert said[0].startswith(f"s: {len(missing)} of 10 shards are missing: ")
        assert f"(the first is d/a-{missing[0]:05d}-of-00010.x)" in said[0]


def test_shards_may_be_counted_from_1() -> None:
    assert found_in([f"a-{at}-of-3" for at in (1, 2, 3)])[2] == []
    assert found_in([f"a-{at}-of-3" for at in (1, 3)])[2] == [
        "s: shard 2 of 3 is missing (a-2-of-3)"
    ]


def test_many_copies_are_counted() -> None:
    names = [f"a-{at}.tar{end}" for at in range(8) for end in ("", ".gz")]
    (said,) = found_in(names)[2]
    assert said.startswith("s: 8 shards are there more than once: 0 (a-0.tar, a-0.tar.gz); 1 (")
    assert said.endswith("and 3 more")


def test_numbers_that_need_not_follow_each_other() -> None:
    for numbers, why in (
        ([0, 1, 2], None),
        ([0, 2], None),
        ([0, 1, 2, 4], None),
        ([0, 10, 20, 30], "their numbers are 10 apart"),
        ([3, 900], "their numbers, 3 to 900, do not follow each other"),
    ):
        found, order, said = found_in([f"a-{at}" for at in numbers])
        assert why_uncounted(found, order) == why
        assert bool(said) == (numbers in ([0, 2], [0, 1, 2, 4]))


def test_files_of_several_writes() -> None:
    words = ["3f2504e0-4f89-11d3-9a0c-0305e82c3301", "4f2504e0-4f89-11d3-9a0c-0305e82c3301"]
    found, _, said = found_in([f"part-0-{word}" for word in words] + [f"part-1-{words[0]}"])
    assert several_writes(found)
    assert said == []
