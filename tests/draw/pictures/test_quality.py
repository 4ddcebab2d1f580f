"""The pictures of `quality` in a terminal."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import strategies as st

from shardctl.draw.drawers import picture_lines
from shardctl.draw.tables import Screen, display_width
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.view import quality_table
from tests.cases import check_cases, few_or_many, in_this_run
from tests.verbs.quality.quality_orders import even_dataset, quality_alone

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def _lines(plan: Quality, width: int | None = 80, *, color: bool = False) -> list[str]:
    screen = Screen(width=width, color=color, pictures=True)
    return "".join(picture_lines(plan, screen, most=2)).splitlines()


def _dots(lines: list[str]) -> list[str]:
    dots = [line.partition("│")[2] for line in lines if "│" in line]
    return [line.ljust(max(map(len, dots))) for line in dots]


def test_storage_order_is_one_line_from_corner_to_corner() -> None:
    plan = quality_alone(even_dataset(60_000, 1), ReadSettings())
    dots = _dots(_lines(plan))
    assert len(dots) == 12
    columns = [[x for x, dot in enumerate(line) if dot != " "] for line in dots]
    assert columns[0][0] == 0
    assert columns[-1][-1] == 72
    for upper, lower in pairwise(columns):
        assert upper[-1] <= lower[0]  # further down lies what comes later, and nothing else
        assert lower[0] - upper[-1] <= 1


def test_a_buffer_of_everything_is_an_even_grey() -> None:
    settings = ReadSettings(buffer=60_000, buffer_seed=1)
    dots = _dots(_lines(quality_alone(even_dataset(60_000, 60), settings), 40))
    assert len(dots) == 6
    text = "".join(dots)
    assert text.count("░") > 0.95 * len(text)


def test_what_to_see_and_the_figures_are_said_in_words() -> None:
    plan = quality_alone(
        even_dataset(20_000, 40), ReadSettings(shuffle_seed=1, buffer=500, buffer_seed=2)
    )
    text = " ".join(_lines(plan))
    assert "A diagonal is the order of storage, an even shade a uniform permutation." in text
    values = [part.score.value for part in plan.by_position]
    assert f"{min(values):.4f} to {max(values):.4f}" in text
    assert plan.tail is not None
    end = f"{plan.tail.score.value:.4f} of the last {plan.tail.stop - plan.tail.start} examples"
    assert f"{end}; uniform {plan.by_position[0].score.expected:.4f}." in text
    assert "position 19,999" in text


def test_sparks_are_as_high_as_the_scores_of_the_parts() -> None:
    plan = quality_alone(even_dataset(20_000, 40), ReadSettings(buffer=5000, buffer_seed=2))
    order = next(line for line in _lines(plan) if line.startswith("this order"))
    blocks = order.split(" ")[2]
    assert len(blocks) == 5 * (len(plan.by_position) + 1)  # the end is a part too
    for number, part in enumerate(plan.by_position):
        eighth = min(7, int(part.score.value * 8))
        assert blocks[5 * number : 5 * number + 5] == chr(0x2581 + eighth) * 5


def test_colour_adds_nothing_but_colour() -> None:
    plan = quality_alone(even_dataset(1000, 4), ReadSettings())
    assert [_ESCAPES.sub("", line) for line in _lines(plan, color=True)] == _lines(plan)
    assert not any("\x1b" in line for line in _lines(plan))


def test_the_table_has_pictures_only_where_the_screen_shows_them() -> None:
    plan = quality_alone(even_dataset(1000, 4), ReadSettings())
    without = "".join(quality_table(plan, Screen(width=80)))
    drawn = "".join(quality_table(plan, Screen(width=80, pictures=True)))
    pictures = "\n".join(_lines(plan))
    assert "│" not in without
    assert [line for line in drawn.splitlines() if line not in without.splitlines()] == [
        line for line in pictures.splitlines() if line
    ]


def test_in_a_pipe_they_are_as_wide_as_a_page() -> None:
    plan = quality_alone(even_dataset(1000, 4), ReadSettings())
    assert [len(line) for line in _lines(plan, None)] == [len(line) for line in _lines(plan, 200)]


@few_or_many(25, 60)
def test_no_line_is_wider_than_the_screen_whatever_is_measured(num_cases: int) -> None:
    cases = st.tuples(
        st.sampled_from([2, 3, 7, 100, 999, 20_000]),
        st.integers(1, 40),
        st.sampled_from([{}, {"shuffle_seed": 1}, {"buffer": 50, "buffer_seed": 1}, {"batch": 64}]),
        st.sampled_from([None, Host(index=0, count=2)]),
        st.integers(40, 120),
    )

    def check(case: tuple[int, int, dict[str, int], Host | None, int]) -> None:
        n, shards, some, host, width = case
        if host is not None and n < 7:
            host = None
        plan = quality_alone(
            even_dataset(n, min(n, shards)),
            ReadSettings(**some, host=host),  # type: ignore[arg-type]
        )
        lines = _lines(plan, width)
        assert max(map(display_width, lines)) <= min(width, 80)
        assert lines == [line.rstrip() for line in lines]

    assert check_cases(cases, check, num_cases) >= in_this_run(num_cases)


def test_a_million_million_examples_are_drawn_from_stretches() -> None:
    dataset = even_dataset(10**12, 1000)
    settings = ReadSettings(buffer=1000, buffer_seed=1)
    plan = quality_alone(dataset, settings)
    dots = _dots(_lines(plan))
    # Every column has something, though stretches are far apart; all of it is near the diagonal.
    assert all(any(line[x] != " " for line in dots) for x in range(73))
    for x in range(73):
        for y, line in enumerate(dots):
            if line[x] != " ":
                assert abs((x + 0.5) / 73 - (y + 0.5) / 12) < 0.12


def test_what_looks_even_from_afar_and_is_not_is_said() -> None:
    # 100,000 files in a random order, 16 of them open: a dot stands for hundreds of files.
    dataset = even_dataset(10**11, 100_000)
    weak = quality_alone(dataset, ReadSettings(shuffle_seed=1, buffer=100_000, buffer_seed=1))
    assert weak.verdict == "weak"
    text = " ".join(_lines(weak))
    assert "It looks even from afar, but near by this order is weak" in text
    sorted_ = quality_alone(dataset, ReadSettings())
    assert "from afar" not in " ".join(_lines(sorted_))
    mixed = quality_alone(even_dataset(60_000, 60), ReadSettings(buffer=60_000, buffer_seed=1))
    assert "from afar" not in " ".join(_lines(mixed))
