"""What the decorator makes of a function: a rule with its code and check."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Rule, Violation, rule
from tests.planning.lint.rules.rule_cases import case


def made(*, for_data_source: bool = False) -> Rule:
    @rule("SC999", "biter", "notice", "what bites", for_data_source=for_data_source)
    def biter(context: LintContext) -> Iterator[Violation]:
        for read in context.reads:
            yield Violation(why=f"{read.spec} bites", fix="leave it", specs=(read.spec,))

    return biter


def test_a_rule_is_what_is_above_its_function() -> None:
    found = made()
    assert (found.code, found.name, found.severity, found.title) == (
        "SC999",
        "biter",
        "notice",
        "what bites",
    )


def test_a_rule_is_of_tf_data_unless_it_says_so() -> None:
    assert not made().for_data_source
    assert made(for_data_source=True).for_data_source


def test_a_check_finds_what_its_function_yields() -> None:
    context = case("train", "test").lint().context
    assert [found.why for found in made().check(context)] == ["train bites", "test bites"]


def test_the_repr_of_a_rule_leaves_its_story_out() -> None:
    assert repr(made()) == "<Rule SC999: biter>"
