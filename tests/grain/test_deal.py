"""Records dealt to workers: the formula beside workers that are dealt to, one by one."""

from __future__ import annotations

import itertools

import pytest

from shardctl.errors import DatasetError
from shardctl.grain.states import Deal


def batches_of_workers(deal: Deal) -> list[list[int]]:
    """Deal records as Grain does: stride by workers, batches inside them, taken in turn."""
    own = [
        [
            p
            for i in range(w, deal.num_padded, deal.workers)
            if (p := deal.position_of(i)) < deal.size
        ]
        for w in range(deal.workers)
    ]
    made = [[mine[k : k + deal.batch] for k in range(0, len(mine), deal.batch)] for mine in own]
    return [b for turn in itertools.zip_longest(*made) for b in turn if b is not None]


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("batch", [2, 3, 8])
def test_batches_of_workers_are_those_of_one(workers: int, batch: int) -> None:
    for size in range(60):
        deal = Deal(size=size, workers=workers, batch=batch)
        expected = [list(range(k, min(k + batch, size))) for k in range(0, size, batch)]
        assert batches_of_workers(deal) == expected
        assert deal.is_even == (size % (workers * batch) == 0)


@pytest.mark.parametrize(("workers", "batch"), [(0, 4), (1, 4), (3, 1)])
def test_without_batches_of_several_workers_nothing_is_dealt(workers: int, batch: int) -> None:
    deal = Deal(size=11, workers=workers, batch=batch)
    assert [deal.position_of(i) for i in range(11)] == list(range(11))
    assert deal.num_padded == 11
    assert deal.is_even


@pytest.mark.parametrize(("workers", "batch"), [(0, 1), (1, 1), (2, 1), (2, 4), (3, 4), (3, 7)])
def test_what_workers_have_read_says_what_was_handed_out(workers: int, batch: int) -> None:
    for size in range(30):
        deal = Deal(size=size, workers=workers, batch=batch)
        read = [0] * max(workers, 1)
        assert deal.consumed(read) == 0
        for step, start in enumerate(range(0, size, batch)):
            rows = min(batch, size - start)
            worker = step % len(read)
            read[worker] += rows
            assert deal.consumed(read) == start + rows
            if rows < batch:  # and what is dropped behind it
                read[worker] += batch - rows
                assert deal.consumed(read) == size


@pytest.mark.parametrize("records", [[4, 4], [2, 4, 0], [8, 0, 0], [3, 0, 0], [4, -4, 0]])
def test_other_counts_are_refused(records: list[int]) -> None:
    with pytest.raises(DatasetError):
        Deal(size=30, workers=3, batch=4).consumed(records)
