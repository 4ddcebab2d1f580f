from __future__ import annotations

import itertools
import random

from shardctl.readers.index.naming.shapes import NUMBER, shapes_of
from shardctl.readers.index.naming.shard_sets import ShardSet, ordered, sets_of, unnumbered
from tests.named_files import files_named


def sets(*names: str) -> list[ShardSet]:
    return sets_of(shapes_of(files_named(names)) or [])


def test_numbers_that_all_share_count_nothing() -> None:
    rng = random.Random(7)
    for _ in range(100):
        columns = rng.randint(1, 4)
        at = rng.randrange(columns)
        fixed = [rng.randint(0, 3000) for _ in range(columns)]
        indices = rng.sample(range(50), rng.randint(2, 12))
        names = []
        for index in indices:
            numbers = [*fixed]
            numbers[at] = index
            names.append("n" + "-".join(map(str, numbers)))
        (found,) = sets(*names)
        assert list(found.numbers or ()) == indices
        order = ordered(files_named(names), found)
        assert [indices[row] for row in order] == sorted(indices)


def test_a_number_that_repeats_another_is_the_same() -> None:
    (found,) = sets("a-0-0.tar", "a-1-1.tar", "a-2-2.tar")
    assert list(found.numbers or ()) == [0, 1, 2]


def test_sequences_that_begin_anew_are_apart() -> None:
    pairs = itertools.product((1, 2), range(3))
    found = sets(*(f"a-{outer}-{inner}.tar" for outer, inner in pairs))
    assert [(one.text, list(one.numbers or ())) for one in found] == [
        (f"a-1-{NUMBER}.tar", [0, 1, 2]),
        (f"a-2-{NUMBER}.tar", [0, 1, 2]),
    ]


def test_what_stands_before_x_of_y_tells_sets_apart() -> None:
    found = sets(*(f"v{version}-{at}-of-2" for version in (1, 2) for at in range(2)))
    assert [one.text for one in found] == [f"v1-{NUMBER}-of-{NUMBER}", f"v2-{NUMBER}-of-{NUMBER}"]
    (one,) = sets("a-0-of-2-len77", "a-1-of-2-len93")
    assert list(one.numbers or ()) == [0, 1]
    assert list(one.totals or ()) == [2, 2]


def test_a_copy_has_the_number_of_its_shard() -> None:
    (found,) = sets("a-0", "a-1", "a-1.gz", "a-2")
    assert list(found.numbers or ()) == [0, 1, 1, 2]
    assert len(found.texts) == 2
    assert not found.same_widths


def test_numbers_that_nobody_can_read_are_unclear() -> None:
    (found,) = sets("a-3-700", "a-20-5", "a-4-61")
    assert found.unclear
    assert found.numbers is None


def test_any_names_may_be_taken_as_they_are() -> None:
    files = files_named(["b.tar", "a.tar", "c.tfrecord"])
    found = unnumbered(files, [0, 1, 2])
    assert ordered(files, found) == [1, 0, 2]
    assert len(found) == 3
