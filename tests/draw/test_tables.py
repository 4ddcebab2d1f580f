"""Tables: every character is there, on any screen, and none that a terminal would act on."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import strategies as st

from shardctl.base.columns import Cell as RowsCell
from shardctl.base.columns import OnDemand, Records
from shardctl.draw.tables import PLAIN, Cell, Column, Screen, annotation, paragraph, table
from tests.cases import check_cases, few_or_many
from tests.columns import some_cells
from tests.draw.github_runner import as_github_reads
from tests.golden import assert_evaluated

FILE_AND_TAKE = [Column(heading="file", align="left"), Column(heading="take")]


def columns_of(line: str) -> int:
    """Return the columns a line takes on a terminal."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in line
    )


def test_wide_characters_take_two_columns() -> None:
    assert table(FILE_AND_TAKE, [["名前", "1"], ["abcd", "2"], ["e\u0301tes", "3"]], PLAIN) == (
        "file  take\n名前     1\nabcd     2\ne\u0301tes     3\n"
    )


def test_the_left_column_folds_and_numbers_do_not() -> None:
    assert table(FILE_AND_TAKE, [["abcdefghijklmnopqrst", "1234"]], Screen(width=20)) == (
        "file            take\nabcdefghijklmn  1234\nopqrst\n"
    )


def test_a_screen_too_narrow_for_columns_gets_records() -> None:
    rows = [["imagenet2012-train", "12"], ["… 3 more", ""]]
    assert table(FILE_AND_TAKE, rows, Screen(width=14)) == (
        "file:\nimagenet2012-t\nrain\ntake: 12\n\nfile: … 3 more\n"
    )


@pytest.mark.parametrize(
    "cell", ["[v1]", "[red]x[/red]", ":smile:", "\\[x]", "{x}", "%s", "https://x.y", "'a' 1.5 True"]
)
def test_markup_is_text(cell: str) -> None:
    for screen in (PLAIN, Screen(width=80), Screen(width=80, color=True)):
        assert cell in table(FILE_AND_TAKE, [[cell, "1"]], screen)
        assert cell in paragraph(f"so {cell}", screen)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x9b2J", r"\x9b2J"),
        ("a\u202eb", r"a\u202eb"),
        ("\0", r"\x00"),
    ],
)
def test_no_escape_code_reaches_the_terminal(cell: str, shown: str) -> None:
    for screen in (PLAIN, Screen(width=80), Screen(width=80, color=True)):
        assert shown in table(FILE_AND_TAKE, [[cell, "1"]], screen)
        assert shown in paragraph(cell, screen)


def test_colour_is_bold_headings_and_nothing_where_there_is_none() -> None:
    coloured = table(FILE_AND_TAKE, [["a", "1"]], Screen(width=80, color=True))
    assert coloured == "\x1b[1mfile  take\x1b[0m\na        1\n"
    assert paragraph("x", Screen(color=True), style="bold") == "\x1b[1mx\x1b[0m\n"
    assert paragraph("x", PLAIN, style="bold") == "x\n"


# No blanks, no colons and no signs of the headings, so that every character can be counted.
character = st.characters(
    max_codepoint=0x24F, exclude_categories=["Zs"], exclude_characters=":¶¤"
) | st.sampled_from("ab[]名前\x1b\u0301\u202e")
word = st.text(character, max_size=40) | st.just("x" * 300)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[list[str]], int]:
    aligns = draw(st.lists(st.sampled_from(["left", "right"]), min_size=1, max_size=5))
    columns = [
        Column(heading=draw(st.sampled_from(["", "¶¶", "¤¤¤"])), align=align)  # type: ignore[arg-type]
        for align in aligns
    ]
    row = st.lists(word, min_size=len(columns), max_size=len(columns))
    return columns, draw(st.lists(row, max_size=4)), draw(st.integers(1, 120))


def shown(cell: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cell
    )


@few_or_many(80, 150)
def test_a_table_of_any_width_loses_no_character(num_cases: int) -> None:
    def check(case: tuple[list[Column], list[list[str]], int]) -> None:
        columns, rows, width = case
        text = table(columns, rows, Screen(width=width))
        written = [char for row in rows for cell in row for char in shown(cell)]
        assert sorted(char for char in text if char not in " \n:¶¤") == sorted(written)
        if ":" not in text and (written or not rows):  # columns, not records
            assert sorted(char for char in text if char in "¶¤") == sorted(
                char for column in columns for char in column.heading
            )
        for line in text.splitlines():
            assert line == line.rstrip()
            assert columns_of(line) <= max(width, 2)

    check_cases(tables(), check, num_cases)


def test_folded_lines_join_to_the_cells() -> None:
    def check(case: tuple[str, str, int]) -> None:
        name, number, width = case
        text = table(FILE_AND_TAKE, [[name, number]], Screen(width=width))
        lines = text.splitlines()
        if lines[0].startswith("file:"):
            joined = "".join(lines).replace(" ", "")
            assert joined == f"file:{name}take:{number}"
        else:
            first, *rest = lines[1:]
            assert first.removesuffix(number).rstrip() + "".join(rest) == name
            assert first.endswith(number)

    names = st.text("abcdefghij-.名", min_size=1, max_size=60)
    cases = st.tuples(names, st.integers(0, 10**12).map(str), st.integers(8, 60))
    check_cases(cases, check, 300)


@few_or_many(80, 150)
def test_a_paragraph_breaks_between_words_and_keeps_them_all(num_cases: int) -> None:
    def check(case: tuple[list[str], int]) -> None:
        words, width = case
        lines = paragraph(" ".join(words), Screen(width=width)).splitlines()
        assert "".join(lines).replace(" ", "") == "".join(shown(word) for word in words)
        for line in lines:
            assert line == line.rstrip()
            assert columns_of(line) <= max(width, 2)
        if all(columns_of(shown(word)) <= width for word in words):
            assert " ".join(lines).split() == [shown(word) for word in words if word]

    cases = st.tuples(st.lists(word, max_size=8), st.integers(1, 60))
    check_cases(cases, check, num_cases)


def test_rows_left_out_are_counted() -> None:
    def kept(count: int, keep: int | None) -> str:
        columns = [Column(heading="number", align="left")]
        rows = [[str(number)] for number in range(count)]
        found = {
            table(columns, given, Screen(width=80, abridged=True), keep=keep)
            for given in (rows, iter(rows), OnDemand(count, rows.__getitem__))
        }
        assert len(found) == 1
        return found.pop()

    assert_evaluated(globals(), "left_out", kept)


def test_in_records_the_line_that_counts_is_between_two() -> None:
    columns = [Column(heading="a" * 20), Column(heading="b" * 20)]
    screen = Screen(width=35, abridged=True)
    found = table(columns, [[str(number), "x"] for number in range(4)], screen, keep=2)
    assert found.split("\n\n") == [
        f"{'a' * 20}: 0\n{'b' * 20}: x",
        "… 2 more rows; --all shows them",
        f"{'a' * 20}: 3\n{'b' * 20}: x\n",
    ]


def test_a_cell_looks_like_what_it_means_where_colour_is_shown_and_its_padding_does_not() -> None:
    columns = [Column(heading="file", align="left"), Column(heading="holds")]
    rows = [[Cell("a", "error"), "3"], ["long-name", Cell("4", "warning")]]
    assert table(columns, rows, Screen(color=True)) == (
        "\x1b[1mfile       holds\x1b[0m\n"
        "\x1b[1;91ma\x1b[0m              3\n"
        "long-name      \x1b[1;95m4\x1b[0m\n"
    )
    assert table(columns, rows, PLAIN) == "file       holds\na              3\nlong-name      4\n"
    records = table(columns, [[Cell("a", "error"), "3"]], Screen(width=10, color=True))
    assert records == "\x1b[1;91mfile: a\x1b[0m\nholds: 3\n"


def test_text_in_a_pipe_is_whole_however_long_it_is() -> None:
    text = "x" * 250_000
    assert paragraph(text, PLAIN) == f"{text}\n"
    assert table(FILE_AND_TAKE, [[text, "1"]], PLAIN).count("x") == len(text)


def test_rows_made_of_columns_are_the_table_of_the_same_rows() -> None:
    def law(case: tuple[int, list[RowsCell]]) -> None:
        count, cells = case
        rows = Records(
            count,
            list(map(str, range(len(cells)))),
            lambda start, stop: [c[start:stop] if isinstance(c, list) else c for c in cells],
        )
        columns = [
            Column(heading="a%", align="right" if number % 2 else "left")
            for number in range(len(cells))
        ]
        for screen in (PLAIN, Screen(width=40)):
            one_by_one = [[str(cell) for cell in row] for row in rows.rows()]
            by_columns = table(columns, rows, screen)  # type: ignore[arg-type]
            assert by_columns == table(columns, one_by_one, screen)

    check_cases(st.booleans().flatmap(lambda plain: some_cells(plain=plain)), law, 100)


# Annotations, as the runner of GitHub reads them back.


def test_github_reads_back_any_text() -> None:
    def check(case: tuple[str, str, str, int]) -> None:
        text, title, file, line = case
        written = annotation("notice", text, title=title, file=file, line=line)
        assert written.count("\n") == 1
        level, properties, message = as_github_reads(written)
        assert (level, message) == ("notice", text)
        assert properties == {"file": file, "line": str(line), "title": title}

    # The runner undoes the escapes one after the other, so a text with one in it is not kept.
    texts = st.text(st.sampled_from("ab%:,=\n\r ;[]é"), max_size=12).filter(
        lambda text: not re.search("%(0|2|3)", text)
    )
    check_cases(st.tuples(texts, texts, texts, st.integers(1, 99)), check, 200)


def test_nothing_but_the_annotation_is_read_of_its_line() -> None:
    text = "a\x1b[31m\u202eb\n::stop-commands::x ##vso[task.complete]"
    line = annotation("error", text, title="##[group]t", file="\x9b.yaml")
    assert line.isascii()
    assert line[:-1].isprintable()
    assert not re.search(r"##(vso)?\[", line)
