"""SC076 and SC077: what each finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.verbs.lint.rules import stages
from tests.verbs.lint.rules.rule_cases import Case, Row, codes_of, staged

TWO = "train | shuffle(2000, seed=1), test | shuffle(400, seed=2)"
ENDLESS = "train | shuffle(2000, seed=1) | repeat, test | shuffle(400, seed=2) | repeat"
SAMPLE = "sample_from_datasets([{}], {}seed=3, stop_on_empty_dataset={})"
IN_TURN = "choose_from_datasets([{}], choices=range(2) | repeat)"
CASES: tuple[Row, ...] = (
    ("SC076", staged(SAMPLE.format(TWO, "", False)), staged(SAMPLE.format(ENDLESS, "", False))),
    ("SC076", staged(SAMPLE.format(TWO, "", False)), staged(SAMPLE.format(TWO, "", True))),
    # 6,400 and 400 examples: weights by the lengths keep to the end.
    (
        "SC076",
        staged(SAMPLE.format(TWO, "weights=[0.8, 0.2], ", False)),
        staged(SAMPLE.format(TWO, "weights=[0.94, 0.06], ", False)),
    ),
    (
        "SC076",
        staged(SAMPLE.format(TWO, "", False) + " | take(800)"),
        staged(SAMPLE.format(TWO, "", False) + " | take(700)"),
    ),
    (
        "SC076",
        staged(SAMPLE.format(TWO, "", False)),
        staged(SAMPLE.format(TWO, "weights=[1.0, 0.0], ", False)),
    ),
    (
        "SC077",
        staged(SAMPLE.format(TWO, "", True)),
        staged(SAMPLE.format(TWO, "weights=[0.94, 0.06], ", True)),
    ),
    ("SC077", staged(SAMPLE.format(TWO, "", True)), staged(SAMPLE.format(TWO, "", False))),
    ("SC077", staged(SAMPLE.format(TWO, "", True)), staged(SAMPLE.format(ENDLESS, "", True))),
    ("SC077", staged(IN_TURN.format(TWO)), staged(IN_TURN.format(ENDLESS))),
    (
        "SC077",
        staged(IN_TURN.format(TWO)),
        staged(
            IN_TURN.format("train | take(400) | shuffle(400, seed=1), test | shuffle(400, seed=2)")
        ),
    ),
)


def test_it_is_said_which_input_ends_and_when() -> None:
    (found,) = [
        one
        for one in staged(SAMPLE.format(TWO, "weights=[0.75, 0.25], ", False)).lint().findings
        if one.rule.code == "SC076"
    ]
    assert "input 1 runs dry after about 1,600 elements" in found.why  # 400 / 0.25


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    assert {code for code, _, _ in CASES} == codes_of(stages) & {"SC076", "SC077"}
