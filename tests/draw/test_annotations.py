"""Annotations, as the runner of GitHub reads them back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.draw.tables import annotation
from tests.cases import check_cases
from tests.draw.github_runner import as_github_reads


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


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"title": "SC003"}, "::warning title=SC003::said\n"),
        ({"title": "t", "file": "a.yaml"}, "::warning file=a.yaml,title=t::said\n"),
        ({"title": "t", "file": "a", "line": 3}, "::warning file=a,line=3,title=t::said\n"),
        ({"title": "", "file": ""}, "::warning file=,title=::said\n"),
    ],
)
def test_what_is_not_known_is_left_out(arguments: dict[str, Any], line: str) -> None:
    assert annotation("warning", "said", **arguments) == line


def test_nothing_but_the_annotation_is_read_of_its_line() -> None:
    text = "a\x1b[31m\u202eb\n::stop-commands::x ##vso[task.complete]"
    line = annotation("error", text, title="##[group]t", file="\x9b.yaml")
    assert line.isascii()
    assert line[:-1].isprintable()
    assert not re.search(r"##(vso)?\[", line)
