"""Text from outside, fit for a screen: without secrets, control characters, commands of a CI."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardctl
from shardctl.base.phrase import option, phrase
from shardctl.base.text import (
    choices,
    full_url,
    inert,
    near_or_all,
    nearest,
    nearest_first,
    printable,
    public_url,
    quoted,
    without_secrets,
)
from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.errors import UsageError
from shardctl.spec.host import Host
from tests.cases import check_cases
from tests.golden import assert_answers


def test_texts_are_fit_for_a_screen_and_options_as_they_are_typed() -> None:
    functions = (printable, inert, quoted, choices, nearest, nearest_first, near_or_all)
    names = {one.__name__: one for one in (*functions, phrase, option, Host, UsageError)}
    path = Path(__file__).parent / "golden" / "texts.txt"
    assert_answers(path, lambda question: repr(eval(question, names)))


def test_shown_text_is_one_printable_line_within_its_limit() -> None:
    def check(case: tuple[str, int]) -> None:
        text, limit = case
        shown = printable(text, limit)
        assert shown.isprintable()
        assert len(shown) <= limit
        if text.isprintable() and len(text) <= limit:
            assert shown == text

    character = st.characters() | st.sampled_from(["\x1b", "\0", "\u202e", "\udc80", "a"])
    check_cases(st.tuples(st.text(character, max_size=80), st.integers(1, 60)), check, 500)


def test_long_names_are_compared_in_a_moment() -> None:
    start = time.perf_counter()
    nearest("ab" * 500_000, ["ba" * 500_000, "train"] * 20)
    assert time.perf_counter() - start < 5


# Passwords and signatures are no part of a path, and are there when its place is asked.


def test_what_is_secret_is_taken_out_and_put_back() -> None:
    def answer(given: str) -> str:
        public = public_url(given)
        assert (full_url(public), public_url(public)) == (given, public)
        return public

    assert_answers(Path(__file__).parent / "golden" / "secrets.txt", answer)


def test_what_secrets_open() -> None:
    def answer(urls: str) -> str:
        *given, asked = (f"https://{url}" for url in urls.split())
        for url in given:
            public_url(url)
        return full_url(asked)

    assert_answers(Path(__file__).parent / "golden" / "secrets_open.txt", answer)


def test_a_line_shows_what_is_public_of_the_urls_in_it() -> None:
    line = "error: 'https://me:pw@host/a?sig=1' and s3://KEY:SEC/RET@b/x, not gs://b/a@b"
    assert without_secrets(line) == "error: 'https://host/a' and s3://b/x, not gs://b/a@b"


def test_files_that_differ_in_their_query_alone_are_not_taken_for_one() -> None:
    for _ in range(2):
        assert public_url("https://drive/get?file=1") == "https://drive/get"
    with pytest.raises(UsageError, match="'https://drive/get' was given with two queries"):
        public_url("https://drive/get?file=2")
    assert full_url("https://drive/get") == "https://drive/get?file=1"


# Messages name options as a command takes them, and what is filled in is left as it is.


@given(st.text(), st.text(alphabet="{}cyle=!: "))
def test_what_is_filled_in_is_never_a_marker(one: str, other: str) -> None:
    assert phrase("{} and {cycle}, {}", one, other) == f"{one} and --cycle, {other}"


@pytest.mark.long
def test_every_option_that_a_text_of_ours_names_is_one() -> None:
    parameters = [each for one in application(*COMMANDS).commands.values() for each in one.params]
    there = {name for each in parameters for name in (*each.opts, *each.secondary_opts)}
    named = {
        found
        for room in ("base", "dataset", "loaders", "order", "settings", "spec", "stages", "verbs")
        for path in (Path(shardctl.__file__).parent / room).rglob("*.py")
        for found in re.findall(r"(?<=[\s\"`])--[a-z][a-z-]+\b", path.read_text("utf-8"))
    }
    others = {"--python", "--help", "--no", "--drop", "--pass-th", "--no-clobber"}  # one is of wget
    assert named - there <= others
