"""Text of others is never markup; tables scroll in boxes that have names; figures have room."""

from __future__ import annotations

import pytest

from shardctl.base.phrase import phrase
from shardctl.draw.picture import Picture, words
from shardctl.draw.tables import Column
from shardctl.verbs.report.elements import (
    code,
    command,
    facts,
    figures,
    items,
    link,
    name,
    not_shown,
    paragraph,
    plain,
    sentence,
    table,
    wrapping,
)
from shardctl.verbs.report.shown import NotShown
from tests.verbs.report.reports import text_of

_BAD = "<script>\"'&amp;\u202e\x02\x03\x1b"
_SHOWN = r"""<script>"'&amp;\u202e\x02\x03\x1b"""


def test_text_of_others_is_text_everywhere() -> None:
    columns = [Column(heading=_BAD, align="left"), Column(heading="n")]
    picture = Picture(
        name="p", title=_BAD, caption=_BAD, marks=(words(_BAD),), warnings=(_BAD,), note=_BAD
    )
    html = (
        *(plain(_BAD), name(_BAD), code(_BAD), sentence(_BAD), sentence(phrase("{}", _BAD))),
        *(wrapping(_BAD), command(_BAD), not_shown(NotShown(reason=_BAD))),
        *(table(_BAD, columns, [[_BAD, "1"]]), facts([(_BAD, "")]), figures([picture])),
        sentence(phrase("{name!}", name=_BAD)),
    )
    for piece in html:
        assert "<script" not in piece
        assert not any(sign in piece for sign in "\u202e\x02\x03\x1b")
        assert _SHOWN in text_of(piece)


@pytest.mark.parametrize("text", ["##[error]x", "a ##vso[task]", "::error file=a::b", "a\n::x"])
def test_no_text_is_a_command_of_a_runner_of_ci(text: str) -> None:
    for piece in (plain(text), name(text), code(text), wrapping(text), command(text)):
        assert "##" not in piece
        assert "::" not in piece
        assert text_of(piece).count(":") == text.count(":")
        assert text_of(piece).count("#") == text.count("#")


def test_arguments_of_a_sentence_are_code_as_options() -> None:
    html = sentence(phrase("{cycle=auto} needs {cpus=N}, or {reverse=True}"))
    assert html == (
        '<code class="short">--cycle auto</code> needs <code class="short">--cpus N</code>, or '
        '<code class="short">--reverse</code>'
    )


def test_a_table_has_headings_in_both_directions_and_a_box_with_its_name() -> None:
    columns = [Column(heading="host", align="left"), Column(heading="examples")]
    html = table("What hosts read", columns, [["a", "1"], ["b", "2"]])
    assert 'role="group" tabindex="0" aria-label="What hosts read"' in html
    assert html.count('<th scope="col"') == html.count('<th scope="row"') == 2
    assert '<td class="number">1</td>' in html
    assert text_of(html) == "What hosts read host examples a 1 b 2"


def test_nothing_is_nothing() -> None:
    assert paragraph("") == items([]) == figures([]) == ""
    assert paragraph("a", "quiet") == '<p class="quiet">a</p>\n'
    assert items(["a"]) == "<ul>\n<li>a</li>\n</ul>\n"
    assert link("hosts", "b") == '<a href="#hosts">b</a>'


def test_words_break_where_they_may_and_say_the_same() -> None:
    assert wrapping("read.shuffle_seed of a/b, 0.5 and 1_000").count("<wbr>") == 3
    assert wrapping("סט") == "<bdi>סט</bdi>"
    assert wrapping("w" * 60).startswith("<bdi>")
    line = "shardctl report --host-by files -d 'a  b'"
    assert command(line).count("nowrap") == 0
    assert "".join(command(line).split('<span class="short">')).replace("</span>", "") == (
        "<pre><code>shardctl report --host-by files -d &#x27;a  b&#x27;</code></pre>\n"
    )
