"""How records are dealt to worker processes so that the batches they make are tf.data's.

Grain hands record i of a sampler to worker i % W, each worker makes batches of what it is handed,
and the loader takes a batch of each worker in turn (grain/_src/python/data_loader.py and
dataset/transformations/process_prefetch.py, 0.2.18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.errors import DatasetError


@dataclass(frozen=True, kw_only=True, slots=True)
class Deal:
    """Which position of an order record i of the sampler is, so that worker w makes batch w + kW.

    size: how many examples the order has.
    workers: worker processes; 0 and 1 take the records one after the other.
    batch: the size of the batches that workers make; 1 where they make none.

    >>> [Deal(size=8, workers=2, batch=2).position_of(i) for i in range(8)]
    [0, 2, 1, 3, 4, 6, 5, 7]
    """

    size: int
    workers: int
    batch: int

    @property
    def is_in_order(self) -> bool:
        """Whether records are handed out one after the other, so that nothing is to be undone."""
        return self.workers < 2 or self.batch == 1

    @property
    def is_even(self) -> bool:
        """Whether the workers have a whole number of batches each, none of which is smaller."""
        return self.is_in_order or self.size % (self.workers * self.batch) == 0

    @property
    def num_padded(self) -> int:
        """Number of records up to the end of the last round, `size` and what pads it.

        A position from `size` on is a record that is there to be dropped.

        >>> Deal(size=9, workers=2, batch=2).num_padded
        12
        """
        if self.is_in_order:
            return self.size
        of_round = self.workers * self.batch
        return -(-self.size // of_round) * of_round

    def position_of(self, index: int) -> int:
        """Return the position that record `index` of the sampler is."""
        if self.is_in_order:
            return index
        of_worker, worker = divmod(index, self.workers)
        return (of_worker // self.batch * self.workers + worker) * self.batch + (
            of_worker % self.batch
        )

    def consumed(self, records: Sequence[int]) -> int:
        """Return how many examples are handed out when each worker has read so many records.

        Raises:
            DatasetError: the workers have read what is no beginning of the order.

        >>> Deal(size=9, workers=2, batch=2).consumed([4, 2]), Deal(
        ...     size=9, workers=2, batch=2).consumed([5, 4])
        (6, 9)
        """
        count = max(self.workers, 1)
        if len(records) != count or min(records) < 0:
            raise DatasetError(f"{len(records)} workers' counts where {count} workers read")
        # What pads the end comes behind all that a worker reads besides.
        own = [min(number, self._of_worker(w, self.size)) for w, number in enumerate(records)]
        consumed = sum(own)
        is_whole = self.is_in_order or consumed == self.size or consumed % self.batch == 0
        if not is_whole or own != [self._of_worker(w, consumed) for w in range(count)]:
            raise DatasetError(
                f"the workers have read {', '.join(map(str, records))} records, which are no "
                f"batches of {self.batch} one after the other"
            )
        return consumed

    def _of_worker(self, worker: int, size: int) -> int:
        """Return how many of the first `size` positions are a worker's."""
        count = max(self.workers, 1)
        rounds, rest = divmod(size, count * self.batch)
        return rounds * self.batch + min(max(rest - worker * self.batch, 0), self.batch)
