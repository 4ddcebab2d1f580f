"""A help page fits its paper at any width, loses no word, and its columns line up."""

from __future__ import annotations

import random
import re
import subprocess

import pytest
from hypothesis import strategies as st

from shardctl.rendering.help_page import Entry, HelpPage, Panel, Paper, help_text
from tests.cases import check_cases, few_or_many, in_this_run

_ANSI = re.compile("\x1b\\[[0-9;]*m")


def page() -> HelpPage:
    cycle = Entry(
        names=("--cycle N|auto",),
        meaning="Files read in turn. (ReadConfig.interleave_cycle_length) [default: 16, or 1]",
    )
    reverse = Entry(names=("--reverse", "--no-reverse"), meaning="Files back to front")
    drop = Entry(names=("--drop-remainder", "--no-drop-remainder"), meaning="Drop the last batch.")
    long = Entry(names=("--host-by even|files|examples",), meaning="How hosts share")
    return HelpPage(
        usage="shardctl simulate [OPTIONS] [SPEC]",
        paragraphs=("Print the order in which examples are read.", "Exactly."),
        panels=(
            Panel(title="Order", entries=(cycle, reverse, drop)),
            Panel(title="Hosts", entries=(long,)),
        ),
        examples=("# The first ids", "shardctl simulate 'train[: 5]' --take 3 -d mnist"),
        closing=("Names in parentheses.",),
    )


def test_a_pipe_gets_plain_text_with_columns() -> None:
    assert help_text(page(), Paper(width=72)) == (
        """Usage: shardctl simulate [OPTIONS] [SPEC]

  Print the order in which examples are read.

  Exactly.

Order:
  --cycle N|auto           Files read in turn
                           (ReadConfig.interleave_cycle_length)
                           [default: 16, or 1]
  --reverse, --no-reverse  Files back to front
  --drop-remainder,        Drop the last batch
  --no-drop-remainder

Hosts:
  --host-by even|files|examples
                           How hosts share

Examples:
  # The first ids
  shardctl simulate 'train[: 5]' --take 3 -d mnist

  Names in parentheses.
"""
    )


def test_a_terminal_gets_boxes() -> None:
    lines = help_text(page(), Paper(width=72, boxes=True)).splitlines()
    top = lines.index("╭─ Order " + "─" * 62 + "╮")
    assert lines[top + 1] == "│ --cycle N|auto           Files read in turn" + " " * 26 + "│"
    assert lines[top + 7] == "╰" + "─" * 70 + "╯"
    boxed = [line for line in lines if line[0:1] in ("╭", "│", "╰")]
    assert {len(line) for line in boxed} == {72}


def test_a_narrow_page_has_meanings_below_names_and_no_boxes() -> None:
    text = help_text(page(), Paper(width=40, boxes=True))
    assert "─" not in text
    assert (
        """
Order:
  --cycle N|auto
      Files read in turn (ReadConfig.
      interleave_cycle_length) [default:
      16, or 1]
  --reverse, --no-reverse
      Files back to front
"""
        in text
    )


def test_what_is_quiet_is_the_name_in_the_library_and_the_default() -> None:
    text = help_text(page(), Paper(width=120, color=True))
    assert (
        "Files read in turn "
        "\x1b[2m(ReadConfig.interleave_cycle_length) [default: 16, or 1]\x1b[0m\n" in text
    )
    assert "\x1b[1m--cycle N|auto\x1b[0m" in text
    assert _ANSI.sub("", text) == help_text(page(), Paper(width=120))


def test_a_wide_page_stays_readable() -> None:
    assert help_text(page(), Paper(width=400)) == help_text(page(), Paper(width=120))


_WORDS = ("read", "a", "(ds.shuffle(seed))", "[default: 3]", "interleave_cycle_length/of|a.kind")


def random_page(rng: random.Random) -> HelpPage:
    def text() -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, 20)))

    def entry() -> Entry:
        names = ("--a", "--no-drop-remainder", "--host-by even|files|examples|more|and|more-words")
        return Entry(names=tuple(rng.sample(names, rng.randint(1, 3))), meaning=text())

    return HelpPage(
        usage=text(),
        paragraphs=tuple(text() for _ in range(rng.randint(0, 2))),
        panels=tuple(
            Panel(title="Order", entries=tuple(entry() for _ in range(rng.randint(1, 4))))
            for _ in range(rng.randint(0, 3))
        ),
        examples=("# " + text(), "shardctl plan train -d mnist --take 3 " * rng.randint(1, 4)),
        closing=(text(),),
    )


def one_page(rng: random.Random) -> None:
    """Compare the letters of a page with those of its parts, and its lines with the paper."""
    made = random_page(rng)
    paper = Paper(width=rng.randint(24, 140), color=rng.random() < 0.5, boxes=rng.random() < 0.5)
    text = _ANSI.sub("", help_text(made, paper))
    assert max(map(len, text.splitlines())) <= min(paper.width, 120)
    assert not any(line != line.rstrip() for line in text.splitlines())
    letters = re.sub(r"[\s│╭╮╰╯─\\#,.:]", "", text)
    for entry in (entry for panel in made.panels for entry in panel.entries):
        if paper.width < 60:  # beside each other, lines of names and of meanings alternate
            joined = "".join(entry.names) + entry.meaning
            assert re.sub(r"[\s,.:]", "", joined) in letters
        for name in entry.names:
            assert re.sub(r"[\s,.:]", "", name) in letters
    for whole in (*made.paragraphs, *made.closing, *made.examples):
        assert re.sub(r"[\s,.:#\\]", "", whole) in letters


@few_or_many(60, 150)
def test_random_pages(num_cases: int) -> None:
    cases = st.randoms(use_true_random=False)
    assert check_cases(cases, one_page, num_cases) >= in_this_run(num_cases)


@pytest.mark.parametrize("width", range(24, 100, 4))
def test_an_example_that_is_cut_into_lines_is_one_command_to_a_shell(width: int) -> None:
    command = (
        "printf '<%s>' 'train[: 5]' --take 3 -d mnist --shuffle-seed 12 \"a b\" --reverse -o x"
    )
    made = HelpPage(usage="", paragraphs=(), panels=(), examples=(command,))
    cut = help_text(made, Paper(width=width)).partition("Examples:\n")[2]
    ran = [
        subprocess.run(["bash", "-c", text], capture_output=True, check=True).stdout
        for text in (command, cut)
    ]
    assert ran[0] == ran[1]
    assert ran[0].startswith(b"<train[: 5]><--take><3>")
