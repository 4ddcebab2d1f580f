"""Man pages: the parts that man(1) and whatis(1) look for, and groff has nothing to say against."""

from __future__ import annotations

import pytest

from shardctl.guide.guides import Guide, guide_questions, read_guide
from shardctl.rendering.guide.roff import man_page
from shardctl.rendering.help_page import Entry, HelpPage, Panel
from tests.rendering.guide.groff import needs_groff, shown

PAGE = HelpPage(
    usage="shardctl plan [OPTIONS] SPEC...",
    paragraphs=("Resolve subsplits.", "Hosts share."),
    panels=(
        Panel(
            title="Dataset",
            entries=(
                Entry(names=("-d, --dataset REF",), meaning="Which dataset"),
                Entry(names=("--all", "--no-all"), meaning="Every row"),
            ),
        ),
    ),
    examples=("# A slice", "shardctl plan 'train[4:]'"),
    closing=("Guide: shardctl help subsplits",),
)
GUIDE = Guide(subject="keras", text="# Which order?\n\nThis one.\n\n## Limits\n\nNone.\n")


def sections(page: str) -> list[str]:
    return [line[4:].strip('"') for line in page.splitlines() if line.startswith(".SH ")]


def test_a_command_is_in_section_one() -> None:
    page = "".join(man_page("shardctl-plan", PAGE, None))
    assert page.startswith('.TH "SHARDCTL-PLAN" 1 "" "shardctl ')
    assert ".SH NAME\nshardctl\\-plan \\- Resolve subsplits\n" in page
    assert ".SH SYNOPSIS\nshardctl plan [OPTIONS] SPEC...\n" in page
    assert ".PP\nHosts share.\n.PP\nGuide: shardctl help subsplits\n" in page
    assert ".TP\n\\fB\\-d, \\-\\-dataset REF\\fR\nWhich dataset\n" in page
    assert ".TP\n\\fB\\-\\-all, \\-\\-no\\-all\\fR\nEvery row\n" in page
    assert ".nf\n# A slice\nshardctl plan \\(aqtrain[4:]\\(aq\n.fi\n" in page
    assert sections(page) == ["NAME", "SYNOPSIS", "DESCRIPTION", "DATASET", "EXAMPLES"]


def test_a_guide_is_in_section_seven() -> None:
    page = "".join(man_page("shardctl-keras", None, GUIDE))
    assert page.startswith('.TH "SHARDCTL-KERAS" 7 "" "shardctl ')
    assert ".SH NAME\nshardctl\\-keras \\- Which order?\n" in page
    assert sections(page) == ["NAME", "DESCRIPTION", "LIMITS"]


def test_a_command_with_its_guide_has_both() -> None:
    page = "".join(man_page("shardctl-keras", PAGE, GUIDE))
    expected = ["NAME", "SYNOPSIS", "DESCRIPTION", "DATASET", "EXAMPLES", "GUIDE", "LIMITS"]
    assert sections(page) == expected


@needs_groff
@pytest.mark.parametrize("subject", guide_questions())
def test_groff_shows_every_guide(subject: str) -> None:
    guide = read_guide(subject)
    page = shown("".join(man_page("shardctl-x", None, guide)))
    sessions = guide.text.split("```console\n")[1:]
    for session in sessions:
        for line in session.partition("```")[0].splitlines():
            assert line.rstrip() in page
