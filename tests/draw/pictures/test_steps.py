"""The steps of an evaluation in a terminal."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardctl.draw.tables import PLAIN, Screen, display_width
from shardctl.verbs.eval.answer import Evaluation, evaluate
from shardctl.verbs.eval.view import eval_table
from tests.cases import check_cases, few_or_many
from tests.draw.pictured import dataset, evaluations
from tests.draw.pictures.drawn import drawn


def odd(**options: Any) -> Evaluation:
    """Return the evaluation on Flax's page that hangs, or a variant of it."""
    return evaluate(
        dataset(4097, name="test"), **{"batch": 64, "hosts": 3, "devices": 8, **options}
    )


def lines(evaluation: Evaluation, width: int = 80, *, color: bool = False) -> list[str]:
    return drawn(evaluation, width, color=color)


def test_the_host_that_waits_has_a_longer_row_and_the_step_a_mark() -> None:
    assert lines(odd(hosts=8)) == [
        "To see: the steps of each host: all rows must end together.",
        "█ full batch, ▒ not full",
        "   0  ████ ▒▒▒▒   2 waits",
        *[f"   {host}  ████        1 done" for host in range(1, 8)],
        "step  0         2",
        "           ^ hangs at step 1",
    ]


def test_without_a_hang_there_is_no_mark() -> None:
    # 1366 = 2 * 512 + 342, two hosts of three
    assert lines(odd())[2:] == [
        *[f"   {host}  ████ ████ ▒▒▒▒   3" for host in range(3)],
        "step  0              3",
    ]


def test_padding_and_what_is_lost_have_marks_of_their_own() -> None:
    padded = lines(odd(hosts=8, remainder="pad"))
    assert padded[1] == "█ full batch, ▒ not full, ░ padding"
    assert padded[2:4] == ["   0  ████ ▒▒▒▒   2", "   1  ████ ░░░░   2"]
    dropped = lines(odd(hosts=8, remainder="drop"))
    assert dropped[2:4] == ["   0  ████ x      1", "   1  ████        1"]


def test_the_first_of_many_steps_are_folded_and_the_last_are_told_apart() -> None:
    found = lines(evaluate(dataset(1_000_001, name="test"), batch=1, hosts=2))
    first, second = found[2], found[3]
    assert first.count("█") == second.count("█") + 1
    assert "…" in first
    assert first.endswith("500,001 waits")
    assert found[-1].strip() == "hangs at step 500,000 ^"


def test_many_hosts_are_two_rows() -> None:
    found = lines(evaluate(dataset(10_001, name="test"), batch=1, hosts=100_000), 40)
    assert [line.split() for line in found[3:6]] == [
        ["0–10,000", "████", "1", "waits"],
        ["10,001–99,999", "0", "done"],
        ["step", "0", "1"],
    ]


def test_colour_says_nothing_that_words_do_not() -> None:
    plain, colored = lines(odd(hosts=8)), lines(odd(hosts=8), color=True)
    assert plain != colored
    assert [_without_codes(line) for line in colored] == plain


def _without_codes(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", line)


def test_the_table_has_them_where_the_screen_shows_pictures() -> None:
    evaluation = odd(hosts=8)
    with_them = "".join(eval_table(evaluation, Screen(width=80, pictures=True)))
    assert "\n".join(lines(evaluation)) in with_them
    assert "█" not in "".join(eval_table(evaluation, PLAIN))


def test_where_there_is_little_room_words_are_shorter() -> None:
    lengths = (*range(1, 12), 100_000, 1_000_000, 1_000_001, 1_000_002)
    answer = evaluate(
        dataset(*lengths, name="test"), None, {"host_by": "files"}, batch=1, hosts=100_000
    )
    found = lines(answer, 40)
    # Hosts that are together do not all make the steps that the most of them makes.
    assert found[2:4] == ["█ full batch, ▒ not full, or of some of", "them"]
    assert all(len(line) <= 40 for line in found)
    assert [line.split()[-1] for line in found[4:-2]][-2:] == ["waits", "done"]
    assert any(line.endswith(" 100,000–1,000,000 waits") for line in lines(answer, 80))


@pytest.mark.parametrize("hosts", [1, 4])
def test_where_nothing_is_evaluated_there_is_nothing_to_see(hosts: int) -> None:
    evaluation = evaluate(dataset(0, name="test"), batch=8, hosts=hosts)
    assert lines(evaluation) == ["To see: nothing, for there are no examples."]


@few_or_many(10, 30)
def test_no_line_is_wider_than_the_screen_and_rows_are_as_long_as_their_steps(
    num_cases: int,
) -> None:
    def check(evaluation: Evaluation) -> None:
        hang = evaluation.hang(evaluation.remainder)
        for width in (40, 57, 120):
            found = lines(evaluation, width)
            assert all(display_width(line) <= width for line in found)
            assert any("hangs at step" in line for line in found) == (hang is not None)
            if hang is None:
                continue
            rows = [line for line in found if line.endswith((" waits", " done"))]
            ends = {
                word: [max(map(row.rfind, "█▒…"), default=-1) for row in rows if row.endswith(word)]
                for word in ("waits", "done")
            }
            assert min(ends["waits"]) >= max(ends["done"])

    check_cases(evaluations(), check, num_cases)
