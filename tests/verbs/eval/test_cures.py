"""Cures: the nearest change that hosts played in lockstep survive, and its cost."""

from __future__ import annotations

from itertools import product

import pytest

from shardctl.verbs.eval.answer import REMAINDERS, Remainder, evaluate
from shardctl.verbs.eval.view import cures, problems
from tests.cases import add_cases, check_cases
from tests.verbs.eval.eval_cases import EvalCase, batches_by_hand, eval_cases, hang_by_hand, toy


def is_cured(case: EvalCase, num_hosts: int, batch: int) -> bool:
    shares = case.shares(num_hosts)
    size = case.num_devices * batch
    batches = [batches_by_hand(share, size) for share in shares]
    if case.remainder == "ragged":
        return hang_by_hand(list(map(len, batches))) is None
    full = [[n for n in sizes if n == size] for sizes in batches]
    now = [batches_by_hand(share, case.num_devices * case.batch) for share in case.shares()]
    whole = [sum(n == case.num_devices * case.batch for n in sizes) for sizes in now]
    keeps_step = hang_by_hand(list(map(len, full))) is None and all(full)
    if hang_by_hand(whole) is not None:
        return keeps_step
    return keeps_step and batches == full


def is_readable(case: EvalCase, num_hosts: int) -> bool:
    num_files = sum(length > 0 for length in case.lengths)
    if case.host_by == "files":
        return num_hosts == 1 or num_hosts <= num_files
    return case.host_by == "examples" or num_hosts <= sum(case.lengths)


@pytest.mark.parametrize("loader", ["grain", "torch", "hf"])
def test_other_loaders_have_no_cures_as_what_they_do_is_not_tried(loader: str) -> None:
    found = evaluate(toy(13, 4), "test", {"loader": loader}, batch=4, hosts=3, remainder="drop")
    assert found.num_lost
    assert cures(found) == ()


def check_cures(case: EvalCase) -> None:
    evaluation = case.evaluation()
    found = {cure.change: cure for cure in cures(evaluation)}
    assert bool(found) == any(problems(evaluation))
    if not found:
        return
    padding = found["padding"]
    assert padding.num_slots - padding.padding == sum(case.lengths)
    for cure in found.values():
        assert cure.num_slots - cure.padding == sum(case.lengths) - cure.dropped
        if cure.change != "padding":
            name = "batch" if cure.change == "batch" else "num_hosts"
            cured = case.evaluation(**{name: cure.value})
            assert cured.hang(case.remainder) is None
            assert cured.num_lost == cure.dropped
            steps = [cure.num_steps] * cured.num_hosts
            assert cured.num_steps(case.remainder).tolist() == steps
            assert cure.num_slots == sum(steps) * cured.host_batch
    sizes = [
        size
        for size in range(1, sum(case.lengths) + 2)
        if size != case.batch and is_cured(case, case.num_hosts, size)
    ]
    limit = -(-max(map(len, case.shares())) // case.num_devices)
    sizes = [size for size in sizes if size <= limit]
    assert ("batch" in found) == bool(sizes)
    if sizes:
        nearest = min(abs(size - case.batch) for size in sizes)
        assert abs(found["batch"].value - case.batch) == nearest
        assert found["batch"].value in sizes
    counts = [
        count
        for count in range(1, 2 * case.num_hosts + 1)
        if count != case.num_hosts
        and is_readable(case, count)
        and is_cured(case, count, case.batch)
    ]
    if case.host_by != "files":
        assert ("hosts" in found) == bool(counts)
    if counts:
        nearest = min(abs(count - case.num_hosts) for count in counts)
        assert abs(found["hosts"].value - case.num_hosts) == nearest
        assert found["hosts"].value in counts


@pytest.mark.long
def test_cures_of_all_small_evaluations_are_the_nearest() -> None:
    """Even shares: of which a host may get nothing, as many as another, or one more."""
    for total, num_hosts, num_devices, batch in product(
        range(1, 10), range(1, 5), range(1, 3), range(1, 4)
    ):
        for remainder in REMAINDERS:
            if num_hosts <= total:
                check_cures(
                    EvalCase(
                        lengths=(total,),
                        num_hosts=num_hosts,
                        num_devices=num_devices,
                        batch=batch,
                        host_by="even",
                        remainder=remainder,
                    )
                )
                add_cases()


def test_cures_are_the_nearest_that_hosts_in_lockstep_survive() -> None:
    check_cases(eval_cases, check_cures, 130)


@pytest.mark.parametrize(
    ("remainder", "expected"),
    [
        ("ragged", [("batch", 65, 1, 63), ("hosts", 9, 1, 511), ("padding", 7, 2, 4095)]),
        # One example is lost; no batch divides both 513 and 512, no number of hosts to 16 4,097.
        ("drop", [("padding", 7, 2, 4095)]),
        ("pad", []),
    ],
)
def test_cures_of_4097_examples_and_their_cost(
    remainder: Remainder, expected: list[tuple[str, int, int, int]]
) -> None:
    evaluation = evaluate(toy(4097), batch=64, devices=8, hosts=8, remainder=remainder)
    found = [(c.change, c.value, c.num_steps, c.padding) for c in cures(evaluation)]
    assert found == expected
