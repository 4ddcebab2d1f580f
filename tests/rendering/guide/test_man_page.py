"""Man pages: the parts that man(1) and whatis(1) look for, and groff has nothing to say against."""

from __future__ import annotations

import pytest

from shardctl.guide.guides import Guide, guide_questions, read_guide
from shardctl.rendering.guide.man_page import CommandHelp, man_page
from tests.rendering.guide.groff import needs_groff, shown

COMMAND = CommandHelp(
    name="plan",
    usage="shardctl plan [OPTIONS] SPEC...",
    summary="Resolve subsplits.",
    paragraphs=("Hosts share.", "Example: shardctl plan 'train[4:]'"),
    options=(("Options", (("-d, --dataset REF", "Which dataset."),)),),
)
GUIDE = Guide(subject="keras", text="# Which order?\n\nThis one.\n\n## Limits\n\nNone.\n")


def sections(page: str) -> list[str]:
    return [line[4:].strip('"') for line in page.splitlines() if line.startswith(".SH ")]


def test_a_command_is_in_section_one() -> None:
    page = "".join(man_page(COMMAND, None))
    assert page.startswith('.TH "SHARDCTL-PLAN" 1 "" "shardctl ')
    assert ".SH NAME\nshardctl\\-plan \\- Resolve subsplits\n" in page
    assert ".SH SYNOPSIS\nshardctl plan [OPTIONS] SPEC...\n" in page
    assert ".TP\n\\fB\\-d, \\-\\-dataset REF\\fR\nWhich dataset.\n" in page
    assert sections(page) == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]


def test_a_guide_is_in_section_seven() -> None:
    page = "".join(man_page(None, GUIDE))
    assert page.startswith('.TH "SHARDCTL-KERAS" 7 "" "shardctl ')
    assert ".SH NAME\nshardctl\\-keras \\- Which order?\n" in page
    assert sections(page) == ["NAME", "DESCRIPTION", "LIMITS"]


def test_a_command_with_its_guide_has_both() -> None:
    page = "".join(man_page(COMMAND, GUIDE))
    assert sections(page) == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "GUIDE", "LIMITS"]


def test_the_page_of_shardctl_lists_the_guides() -> None:
    page = "".join(man_page(COMMAND, None, {"keras": "Which order?"}))
    assert ".SH GUIDES\n.TP\n\\fBshardctl help keras\\fR\nWhich order?\n" in page


@needs_groff
@pytest.mark.parametrize("subject", guide_questions())
def test_groff_shows_every_guide(subject: str) -> None:
    guide = read_guide(subject)
    page = shown("".join(man_page(None, guide)))
    sessions = guide.text.split("```console\n")[1:]
    for session in sessions:
        for line in session.partition("```")[0].splitlines():
            assert line.rstrip() in page
