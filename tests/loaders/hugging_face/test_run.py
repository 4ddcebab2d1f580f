"""One run of examples, epoch after epoch."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.loaders.loader_sequence import Deal, Dealt
from tests.loaders.agreement import check_agreement


def run_of(start: int, size: int, epochs: int, batch: int | None) -> Dealt:
    deal = Deal(first=start, size=size)
    return Dealt(12, deal, epochs=epochs, permutation=None, batch=batch)


@pytest.mark.parametrize(("start", "size", "epochs", "batch"), [(3, 5, 2, 2), (0, 4, 1, None)])
def test_a_run_is_its_indices_in_each_epoch(
    start: int, size: int, epochs: int, batch: int | None
) -> None:
    step = batch or size
    expected = [
        list(range(at, min(at + step, start + size)))
        for _ in range(epochs)
        for at in range(start, start + size, step)
    ]
    run = run_of(start, size, epochs, batch)
    check_agreement(run, expected, 12, batched=batch is not None)
    assert (
        run.epochs_at(np.arange(size * epochs)).tolist() == np.repeat(range(epochs), size).tolist()
    )


def test_a_run_of_nothing_hands_out_nothing() -> None:
    check_agreement(run_of(0, 0, 2, None), [], 0, batched=False)
