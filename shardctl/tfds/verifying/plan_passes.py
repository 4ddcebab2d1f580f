"""What a plan hands out, beyond the epoch it begins in: its batches, and the epochs that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.progress import Progress
from shardctl.planning.resume.promises import BrokenPromise
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.verifying.reading import BATCH_SIZE, Pass, Reading


class BatchedPass(Pass):
    """A pass over batches of `batch` examples, `total` in all, that says which is of another size.

    The last batch holds what is left. `wrong` is the first batch of another size.
    """

    def __init__(
        self,
        reading: Reading,
        *,
        batch: int,
        total: int,
        stop: int,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(reading, size=1, stop=stop, progress=progress)
        self.wrong: BrokenPromise | None = None
        self._batch = batch
        self._total = total
        self._num_handed_out = 0

    def _batches(self) -> Iterator[Any]:
        several = self._reading.elements.ragged_batch(max(1, BATCH_SIZE // self._batch))
        ragged_tensor = tensorflow().RaggedTensor
        for batches in several:
            if isinstance(batches, ragged_tensor):
                self._check(batches.row_lengths().numpy())
                yield batches.flat_values.numpy()
            else:  # of one size that tf.data knows
                names = batches.numpy()
                self._check(np.full(len(names), names.shape[1]))
                yield names.ravel()

    def _check(self, sizes: Int64s) -> None:
        starts = self._num_handed_out + np.cumsum(sizes) - sizes
        expected = np.clip(self._total - starts, 0, self._batch)
        wrong = np.flatnonzero(sizes != expected)
        if wrong.size and self.wrong is None:
            at = int(wrong[0])
            self.wrong = BrokenPromise(
                name="after_read.batch",
                promised=f"{expected[at]:,} examples in batch {starts[at] // self._batch:,}",
                found=f"{sizes[at]:,}",
            )
        self._num_handed_out += int(sizes.sum())


class PassesInTurn(Pass):
    """Passes one after the other, until one gives up or hands out less than it should."""

    def __init__(self, passes: Sequence[Pass], sizes: Sequence[int]) -> None:
        self.unknown = passes[0].unknown
        self.reason: str | None = None
        self.num_done = 0
        self._passes = passes
        self._sizes = sizes

    def __iter__(self) -> Iterator[Int64s]:
        for one, size in zip(self._passes, self._sizes, strict=True):
            before = self.num_done
            for codes in one:
                self.num_done += len(codes)
                yield codes
            self.reason = one.reason
            if self.reason is not None or self.num_done - before < size:
                return
