"""What a name that nobody knows is taken for."""

from __future__ import annotations

import difflib
import time

import pytest
from hypothesis import strategies as st

from shardctl.base.text import did_you_mean, nearest, nearest_first
from tests.cases import check_cases

SPLITS = ("test", "train", "validation")


@pytest.mark.parametrize(
    ("name", "names", "near"),
    [
        ("trian", SPLITS, ["train"]),
        ("TRAIN", SPLITS, ["train"]),
        ("val", SPLITS, ["validation"]),  # goes on where the name ends
        ("shuffle-sed", ("shuffle_files", "shuffle_seed"), ["shuffle_seed", "shuffle_files"]),
        ("FashionMinst", ("mnist", "fashion_mnist"), ["fashion_mnist"]),
        ("ImageNet2021", ("imagenet_a", "imagenet2012"), ["imagenet2012", "imagenet_a"]),
        ("SC0411", ("SC001", "SC011", "SC041"), ["SC041", "SC011", "SC001"]),
        ("xyz", SPLITS, []),
        ("", SPLITS, []),
        ("--", ("--hosts",), []),
    ],
)
def test_what_is_near(name: str, names: tuple[str, ...], near: list[str]) -> None:
    assert nearest(name, names) == near


def test_of_names_alike_the_first_comes_first_and_no_more_than_asked_for() -> None:
    names = [f"train{number}" for number in range(6)]
    assert nearest("train", names) == names[:3]
    assert nearest("train", names, 5) == names[:5]


def test_all_names_are_there_once_the_near_ones_before() -> None:
    assert nearest_first("trian", SPLITS) == ["train", "test", "validation"]
    assert nearest_first("xyz", [*SPLITS, "test"]) == list(SPLITS)


def test_a_question_is_asked_where_there_is_something_to_mean() -> None:
    assert did_you_mean("shufle_seed", ["cycle", "shuffle_seed"]) == "did you mean shuffle_seed? "
    assert did_you_mean("warp", ["cycle", "shuffle_seed"]) == ""


def test_lower_case_names_are_as_near_as_difflib_finds_them() -> None:
    words = st.text("abcde", min_size=1, max_size=8)

    def check(case: tuple[str, list[str]]) -> None:
        name, names = case
        ratios = {other: difflib.SequenceMatcher(None, other, name).ratio() for other in names}
        near = nearest(name, names, len(names))
        for other, ratio in ratios.items():
            assert (other in near) == (ratio >= 0.6 or other.startswith(name))
        close = [ratios[other] for other in near if ratios[other] >= 0.6]
        assert close == sorted(close, reverse=True)
        assert all(ratios[other] >= 0.6 for other in near[: len(close)])

    check_cases(st.tuples(words, st.lists(words, unique=True, max_size=8)), check, 150)


def test_a_name_of_a_million_characters_takes_no_time() -> None:
    start = time.perf_counter()
    nearest("ab" * 500_000, ["ba" * 500_000, "train"] * 20)
    assert time.perf_counter() - start < 5
