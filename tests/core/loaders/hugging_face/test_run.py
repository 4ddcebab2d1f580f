"""One run of examples, epoch after epoch."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.loaders.handed_out import batches_of_epochs
from shardctl.core.loaders.hugging_face.orders import Run
from tests.core.loaders.agreement import check_agreement


@pytest.mark.parametrize(("start", "size", "epochs", "batch"), [(3, 5, 2, 2), (0, 4, 1, None)])
def test_a_run_is_its_indices_in_each_epoch(
    start: int, size: int, epochs: int, batch: int | None
) -> None:
    _, batches = batches_of_epochs([size] * epochs, batch, drop_remainder=False)
    step = batch or size
    expected = [
        list(range(at, min(at + step, start + size)))
        for _ in range(epochs)
        for at in range(start, start + size, step)
    ]
    run = Run(start, size, epochs, batches)
    check_agreement(run, expected, 12, batched=batch is not None)
    assert (
        run.epochs_at(np.arange(size * epochs)).tolist() == np.repeat(range(epochs), size).tolist()
    )


def test_a_run_of_nothing_hands_out_nothing() -> None:
    check_agreement(Run(0, 0, 2, None), [], 0, batched=False)
