"""The steps of hosts as rows: what each is made of, and which steps are shown."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.verbs.eval.answer import Evaluation, evaluate, host_groups
from shardctl.verbs.eval.picture import hosts_of, state_of, step_pieces, step_window
from tests.draw.pictured import dataset


def evaluation(*lengths: int, **options: Any) -> Evaluation:
    return evaluate(dataset(*lengths, name="test"), **{"batch": 4, **options})


def pieces(answer: Evaluation, most: int = 99) -> list[list[tuple[str, float, float]]]:
    return [
        [(piece.kind, piece.start, piece.stop) for piece in step_pieces(group, answer)]
        for group in host_groups(answer, most)
    ]


@pytest.mark.parametrize(
    ("remainder", "rows"),
    [
        # 14 = 7 + 7 examples: a batch of 4 and 3 of 4 places
        ("ragged", [("full", 0, 1), ("partial", 1, 1.75)]),
        ("pad", [("full", 0, 1), ("partial", 1, 1.75), ("padding", 1.75, 2)]),
        ("drop", [("full", 0, 1), ("lost", 1, 1.75)]),
    ],
)
def test_a_row_is_full_batches_then_what_becomes_of_the_rest(
    remainder: Any, rows: list[tuple[str, float, float]]
) -> None:
    assert pieces(evaluation(14, hosts=2, remainder=remainder)) == [rows, rows]


def test_a_host_with_nothing_to_read_pads_or_does_nothing() -> None:
    assert pieces(
        evaluation(4, 0, hosts=2, batch=2, remainder="pad", settings={"host_by": "files"})
    ) == [[("full", 0, 2)], [("padding", 0, 2)]]
    assert pieces(evaluation(4, 0, hosts=2, batch=2, settings={"host_by": "files"}))[1] == []


def test_hosts_that_are_not_alike_are_full_as_far_as_all_of_them_are() -> None:
    # 1 to 10 examples of hosts 0 to 9 in three groups: 1-4, 5-8 and 9-10 in 1, 2 and 3 batches
    answer = evaluation(*range(1, 11), hosts=10, settings={"host_by": "files"})
    assert pieces(answer, 3) == [
        [("partial", 0, 2)],
        [("full", 0, 1), ("partial", 1, 3)],
        [("full", 0, 2), ("partial", 2, 3)],
    ]


def test_steps_are_folded_up_to_where_the_first_host_ends() -> None:
    answer = evaluation(401, hosts=2, batch=1)  # 201 and 200 steps
    window = step_window(host_groups(answer, 9), answer, 20)
    assert (window.start, window.stop) == (183, 201)
    assert window.extent == 20
    answer = evaluation(400, 300, hosts=2, batch=1, settings={"host_by": "files"})
    window = step_window(host_groups(answer, 9), answer, 20)
    assert (window.start, window.stop) == (296, 400)
    few = evaluation(400, 30, hosts=2, batch=1, settings={"host_by": "files"})
    assert step_window(host_groups(few, 9), few, 20).start == 0
    assert step_window(host_groups(answer, 9), answer, 400).start == 0


def test_who_waits_and_who_is_done() -> None:
    answer = evaluation(9, hosts=2)
    groups = host_groups(answer, 9)
    assert [state_of(group, answer) for group in groups] == ["waits", "done"]
    assert [hosts_of(group) for group in groups] == ["0", "1"]
    padded = evaluation(9, hosts=2, remainder="pad")
    assert {state_of(group, padded) for group in host_groups(padded, 9)} == {""}
    scattered = evaluation(5, 9, 5, hosts=3, batch=10, settings={"host_by": "files"})
    assert [hosts_of(group) for group in host_groups(scattered, 2)] == ["2 hosts", "1"]
