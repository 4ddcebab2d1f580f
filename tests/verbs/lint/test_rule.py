"""What the decorator makes of a function: a rule with its code and check."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.verbs.lint.answer import findings_of
from shardctl.verbs.lint.context import LintContext
from shardctl.verbs.lint.rule import Rule, Violation
from tests.verbs.lint.rules.rule_cases import case


def made(*, for_data_source: bool = False) -> Rule:
    def biter(context: LintContext) -> Iterator[Violation]:
        for read in context.reads:
            yield Violation("it bites", "leave it", read)

    return Rule(code="SC001", check=biter, for_data_source=for_data_source)


def test_a_rule_is_called_as_its_story_is() -> None:
    found = made()
    assert (found.name, found.severity) == ("one-order", "warning")
    assert found.title == "several epochs in one order"
    assert repr(found) == "<Rule SC001: one-order>"


def test_a_rule_is_of_tf_data_unless_it_says_so() -> None:
    assert not made().for_data_source
    assert made(for_data_source=True).for_data_source


def test_a_finding_begins_with_the_spec_that_it_is_about() -> None:
    context = case("train", "test").lint().context
    found = [(finding.why, finding.specs) for finding in findings_of([made()], context)]
    assert found == [("train: it bites", ("train",)), ("test: it bites", ("test",))]
