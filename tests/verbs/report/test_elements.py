"""Text of others is never markup; tables scroll in boxes that have names."""

from __future__ import annotations

import pytest

from shardctl.base.phrase import phrase
from shardctl.draw.picture import Picture, words
from shardctl.draw.tables import Column
from shardctl.verbs.report import elements as html
from shardctl.verbs.report.answer import NotShown
from tests.verbs.report.reports import text_of

_BAD = "<script>\"'&amp;\u202e\x02\x03\x1b"
_SHOWN = r"""<script>"'&amp;\u202e\x02\x03\x1b"""
COLUMNS = [Column(heading=_BAD, align="left"), Column(heading="n")]
PICTURE = Picture(title=_BAD, caption=_BAD, said=_BAD, marks=(words(_BAD),), warnings=(_BAD,))


@pytest.mark.parametrize(
    "piece",
    [
        *(html.plain(_BAD), html.name(_BAD), html.code(_BAD), html.sentence(_BAD)),
        *(html.sentence(phrase("{}", _BAD)), html.sentence(phrase("{name!}", name=_BAD))),
        *(html.wrapping(_BAD), html.not_shown(NotShown(reason=_BAD))),
        *(html.table(_BAD, COLUMNS, [[_BAD, "1"]]), html.facts([(_BAD, "")])),
        html.figures([PICTURE]),
    ],
    ids=range(11),
)
def test_text_of_others_is_text_everywhere(piece: str) -> None:
    assert "<script" not in piece
    assert not any(sign in piece for sign in "\u202e\x02\x03\x1b")
    assert _SHOWN in text_of(piece)


@pytest.mark.parametrize("text", ["##[error]x", "a ##vso[task]", "::error file=a::b", "a\n::x"])
def test_no_text_is_a_command_of_a_runner_of_ci(text: str) -> None:
    for element in (html.plain, html.name, html.code, html.wrapping):
        piece = element(text)
        assert "##" not in piece
        assert "::" not in piece
        assert text_of(piece).count(":") == text.count(":")
        assert text_of(piece).count("#") == text.count("#")


def test_arguments_of_a_sentence_are_code_as_options() -> None:
    assert html.sentence(phrase("{cycle=auto} needs {cpus=N}, or {reverse=True}")) == (
        '<code class="short">--cycle auto</code> needs <code class="short">--cpus N</code>, or '
        '<code class="short">--reverse</code>'
    )


def test_words_break_where_they_may_and_say_the_same() -> None:
    assert html.wrapping("read.shuffle_seed of a/b, 0.5 and 1_000").count("<wbr>") == 3
    assert html.wrapping("סט") == "<bdi>סט</bdi>"
    assert html.wrapping("w" * 28) == "w" * 28
    assert html.wrapping("w" * 29) == f"<bdi>{'w' * 29}</bdi>"
