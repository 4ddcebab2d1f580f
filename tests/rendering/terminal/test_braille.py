"""Dots of braille, and greys of places."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.rendering.terminal.quality import braille, grey
from tests.cases import check_cases, in_this_run

# Unicode 15, chapter 21.1: dots 1, 2, 3 are the left column from above, 4, 5, 6 the right one, 7
# and 8 the last line; dot n is bit n - 1 of what is added to U+2800.
_DOT = {(0, 0): 1, (1, 0): 2, (2, 0): 3, (0, 1): 4, (1, 1): 5, (2, 1): 6, (3, 0): 7, (3, 1): 8}


def _by_hand(dots: list[list[bool]]) -> list[str]:
    lines = []
    for top in range(0, len(dots), 4):
        line = ""
        for left in range(0, len(dots[0]), 2):
            code = 0
            for (down, right), number in _DOT.items():
                row, column = top + down, left + right
                if row < len(dots) and column < len(dots[0]) and dots[row][column]:
                    code += 2 ** (number - 1)
            line += chr(0x2800 + code)
        lines.append(line)
    return lines


def test_each_dot_has_the_bit_that_unicode_gives_it() -> None:
    names = {(0, 0): "⠁", (3, 0): "⡀", (0, 1): "⠈", (2, 1): "⠠", (3, 1): "⢀"}
    for place, character in names.items():
        dots = np.zeros((4, 2), bool)
        dots[place] = True
        assert braille(dots) == [character]


def test_dots_of_any_size_are_as_counted_one_by_one() -> None:
    sizes = st.tuples(st.integers(1, 13), st.integers(1, 9), st.integers(0, 99))

    def check(case: tuple[int, int, int]) -> None:
        rows, columns, seed = case
        dots = np.random.default_rng(seed).random((rows, columns)) < 0.5
        assert braille(dots) == _by_hand(dots.tolist())

    assert check_cases(sizes, check, 60) >= in_this_run(60)


def test_the_order_of_storage_is_a_diagonal_and_nothing_else() -> None:
    n = 96_000
    dots = grey((np.arange(n) + 0.5) / n, 24, 12)
    assert dots.shape == (48, 48)
    assert np.array_equal(dots, np.eye(48, dtype=bool))


def test_storage_read_backwards_is_the_other_diagonal() -> None:
    n = 4_800
    dots = grey((n - np.arange(n) - 0.5) / n, 24, 12)
    assert np.array_equal(dots, np.eye(48, dtype=bool)[::-1])


def test_a_uniform_permutation_is_an_even_grey() -> None:
    n = 200_000
    places = (np.random.default_rng(3).permutation(n) + 0.5) / n
    lines = braille(grey(places, 30, 8))
    assert lines == ["⠡" * 30] * 8  # two of eight dots of every character, the same two


def test_two_halves_that_are_mixed_by_themselves_are_two_patches() -> None:
    # Twice as much of each half lies where there is something, so four of eight dots are set.
    rng = np.random.default_rng(4)
    n = 100_000
    halves = np.concatenate([rng.permutation(n), n + rng.permutation(n)])
    dots = grey((halves + 0.5) / (2 * n), 20, 6)
    assert not dots[:12, 20:].any()
    assert not dots[12:, :20].any()
    assert dots[:12, :20].mean() == dots[12:, 20:].mean() == 0.5


def test_a_dot_is_set_only_where_something_lies_and_every_example_of_few_is_there() -> None:
    cases = st.tuples(
        st.integers(1, 40), st.integers(1, 20), st.integers(1, 80), st.integers(0, 999)
    )

    def check(case: tuple[int, int, int, int]) -> None:
        columns, lines, n, seed = case
        places = (np.random.default_rng(seed).permutation(n) + 0.5) / n
        dots = grey(places, columns, lines)
        there = {
            (int(place * lines * 4), (2 * at + 1) * columns * 2 // (2 * n))
            for at, place in enumerate(places.tolist())
        }
        assert dots.shape == (4 * lines, 2 * columns)
        assert set(zip(*(axis.tolist() for axis in np.nonzero(dots)), strict=True)) <= there
        if n <= columns:  # no character has more than a few, which is more than an even grey
            assert dots.any(axis=0).sum() == n

    assert check_cases(cases, check, 100) >= in_this_run(100)


def test_places_at_the_very_ends_are_within_the_picture() -> None:
    assert grey(np.array([0.0, 1.0]), 1, 1).tolist() == [
        [True, False],
        [False, False],
        [False, False],
        [False, True],
    ]
