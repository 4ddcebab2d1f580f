"""How the worker processes of Grain share what a process reads, and cut it into batches."""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.grain.stream import Stream
from shardctl.core.loaders.handed_out import Batches, HandedOut


class WorkerBatches(Batches):
    """Batches made by worker processes, of which worker w reads places w, w + workers, ...

    The batches of the workers come in turn. All of them have full batches for `rounds` turns; then
    each has at most one more, and who has none comes last.

    Source: `multiprocess_prefetch` in grain/_src/python/dataset/transformations/process_prefetch.py
    and the iterator of interleave.py beside it.
    """

    def __init__(self, num_places: int, size: int, workers: int, *, drop_remainder: bool) -> None:
        self.size, self.workers = size, max(workers, 1)
        self.rounds = num_places // self.workers // size
        rest = (num_places + self.workers - 1 - np.arange(self.workers)) // self.workers
        rest -= self.rounds * size
        self.last_sizes: Int64s = np.where(rest == size, size, 0) if drop_remainder else rest
        self.last_starts = self.num_full + np.concatenate([[0], np.cumsum(self.last_sizes)])
        self.num_batches = self.rounds * self.workers + int(np.count_nonzero(self.last_sizes))

    @property
    def num_full(self) -> int:
        """Number of examples in the turns in which every worker has a full batch."""
        return self.rounds * self.workers * self.size

    @property
    def num_examples(self) -> int:
        """Number of examples in all batches."""
        return int(self.last_starts[-1])

    def steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (batch, index of the example in it), int64[q] each."""
        steps, within = np.divmod(positions, self.size)
        late = np.flatnonzero(positions >= self.num_full)
        workers = np.searchsorted(self.last_starts, positions[late], side="right") - 1
        steps[late] = self.rounds * self.workers + workers
        within[late] = positions[late] - self.last_starts[workers]
        return steps, within

    def bounds(self, step: int) -> tuple[int, int]:
        """Return the positions [start, stop) of a batch."""
        worker = step - self.rounds * self.workers
        if worker < 0:
            return step * self.size, (step + 1) * self.size
        return int(self.last_starts[worker]), int(self.last_starts[worker + 1])

    def places_at(self, positions: Int64s) -> Int64s:
        """Return the place of the process at each position, int64[q]."""
        steps, within = self.steps_of(positions)
        turns, workers = np.divmod(steps, self.workers)
        return workers + self.workers * (turns * self.size + within)

    def positions_of(self, places: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `places`, position), int64[r] each, of those in a batch."""
        reads, workers = np.divmod(places, self.workers)
        turns, within = np.divmod(reads, self.size)
        positions = (turns * self.workers + workers) * self.size + within
        late = turns == self.rounds
        positions[late] = self.last_starts[workers[late]] + within[late]
        kept = np.flatnonzero(~late | (within < self.last_sizes[workers]))
        return kept, positions[kept]


class GrainHandedOut(HandedOut):
    """What one process of Grain hands out, cut into batches by its workers."""

    def __init__(self, stream: Stream, batches: WorkerBatches | None) -> None:
        self.stream, self.batches = stream, batches
        self.num_examples = stream.size if batches is None else batches.num_examples
        self.epoch_size = min(stream.size_of_first_epoch, self.num_examples)
        self.shuffles, self.is_uniform = stream.shuffles, stream.is_uniform
        self.among = (range(stream.first, stream.first + stream.share),)
        self._batches = batches

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        return self.stream.indices_at(self._places_at(positions))

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is handed out."""
        queries, places = self.stream.places_of(indices)
        if self._batches is None:
            return queries, places
        kept, positions = self._batches.positions_of(places)
        return queries[kept], positions

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return self.stream.epochs_at(self._places_at(positions))

    def _places_at(self, positions: Int64s) -> Int64s:
        return positions if self._batches is None else self._batches.places_at(positions)
