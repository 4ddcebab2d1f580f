"""An evaluation as tables, advice, documents, rows and steps: whole texts; what a check finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.draw.tables import Screen, display_width
from shardctl.files.documents import to_csv, to_json
from shardctl.verbs.eval.answer import Evaluation, evaluate
from shardctl.verbs.eval.view import advice, eval_document, eval_rows, eval_table
from tests.golden import assert_evaluated, assert_golden, values
from tests.verbs.eval.test_answer import toy

GOLDEN = Path(__file__).parent / "golden"
FILES: dict[str, Any] = {"settings": {"host_by": "files"}}
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any], Screen]] = values(
    Path(__file__).with_name("cases.txt"), globals()
)


def found(name: str) -> tuple[Evaluation, Screen]:
    lengths, how, screen = CASES[name]
    return evaluate(toy(*lengths), "test", **how), screen


@pytest.mark.parametrize("name", CASES)
def test_tables_and_steps_are_these(name: str) -> None:
    evaluation, screen = found(name)
    table = "".join(eval_table(evaluation, screen))
    pictured = Screen(width=screen.width, color=screen.color, pictures=True, abridged=True)
    warnings = "".join(f"warning: {warning}\n" for warning in evaluation.warnings)
    text = f"{warnings}{table}\n{''.join(eval_table(evaluation, pictured))}"
    assert_golden(GOLDEN / f"{name}.txt", text)
    if screen.width and screen.width >= 60:
        assert max(map(display_width, table.splitlines())) <= screen.width


@pytest.mark.parametrize("name", ["hangs", "dropped", "padded", "three-sizes", "nothing"])
def test_documents_and_rows_are_these(name: str) -> None:
    evaluation, _ = found(name)
    text = "".join([*to_json(eval_document(evaluation)), *to_csv(eval_rows(evaluation))])
    assert_golden(GOLDEN / f"{name}.json.txt", text)


def test_an_evaluation_is_equal_to_one_of_the_same_figures() -> None:
    one, same, other = (evaluate("mnist", batch=512, hosts=hosts) for hosts in (6, 6, 7))
    assert one == same
    assert one != other
    assert repr(evaluate("mnist", "test[:10]", batch=2, hosts=4)) == (
        "<Evaluation mnist:3.0.1 test[:10]: 4 hosts, batches of 1 x 2, 0 of 10 examples lost, "
        "hangs at step 1>"
    )


def test_advice_is_a_sentence_on_each_thing_that_goes_wrong() -> None:
    assert_evaluated(globals(), "advice", advice)
