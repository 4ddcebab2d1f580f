"""Names become samples as webdataset's own group_by_keys makes them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shardctl.records.webdataset import Samples
from tests.cases import counted


def samples(*names: str, size: int = 1) -> Samples:
    found = Samples()
    for name in names:
        assert found.add(name, size) is None
    return found


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), 0),
        (("a.jpg", "a.cls", "b.jpg"), 2),
        (("a.jpg", "b.jpg", "a.cls"), 3),  # runs, not sets
        (("x/a.seg.png", "x/a.png", "y/a.png"), 2),  # up to the first dot behind the last slash
        (("v1.0/a.jpg", "v1.0/b.jpg"), 2),
        (("a.jpg", "README", ".hidden", "a.cls"), 1),  # those without suffix end no sample
        (("dir/.hidden",), 1),  # whose key is "dir/"
        (("a.jpg", "__meta__", "__x__/a.jpg", "a.cls"), 1),
        (("__a.jpg", "__b__.jpg"), 2),
    ],
)
def test_runs_of_names_with_one_key_are_samples(names: tuple[str, ...], expected: int) -> None:
    assert samples(*names).num_samples == expected


def test_a_suffix_that_is_there_twice_is_refused() -> None:
    found = samples("a.jpg")
    assert found.add("a.JPG", 1) == "'a.JPG': sample 'a' has 'jpg' twice"
    assert found.without_last() == 0
    assert str(samples("a.jpg").add("a.__key__", 1)).endswith("has '__key__' twice")


def test_a_sample_that_says_that_it_is_bad_is_none() -> None:
    assert samples("a.jpg", "a.__bad__", "b.jpg").num_samples == 1
    assert samples("a.jpg", "a.__bad__", "b.jpg", size=0).num_samples == 2
    bad = samples("a.jpg", "a.__bad__")
    assert (bad.num_samples, bad.without_last()) == (0, 0)


def test_the_last_file_may_belong_to_no_sample() -> None:
    found = samples("a.jpg", "README")
    assert (found.num_samples, found.without_last()) == (1, 1)


def by_webdataset(names: list[str]) -> tuple[int, bool]:
    tariterators = pytest.importorskip("webdataset.tariterators")
    files: list[dict[str, Any]] = []
    for name in names:
        if not ("/" not in name and name.startswith("__") and name.endswith("__")) and not (
            tariterators.re.match(r"__[^/]*__($|/)", name)
        ):
            files.append({"fname": name, "data": b"x", "__url__": "u"})
    number = 0
    try:
        for _ in tariterators.group_by_keys([*files, {}]):
            number += 1
    except ValueError:
        return number, True
    return number, False


def test_any_names_make_the_samples_of_webdataset() -> None:
    rng = random.Random(5)
    letters = ["a", "b", ".", "/", "_", "__", "\n", "é", "É", "J"]
    for _ in counted(range(3000)):
        names = ["".join(rng.choices(letters, k=rng.randrange(1, 7))) for _ in range(6)]
        found, refused = Samples(), None
        for name in names:
            refused = found.add(name, 1)
            if refused is not None:
                break
        number, is_refused = by_webdataset(names)
        assert is_refused == (refused is not None), names
        assert number == (found.without_last() if is_refused else found.num_samples), names
