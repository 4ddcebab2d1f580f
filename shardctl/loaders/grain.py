"""Grain's own orders: DataLoader over an IndexSampler, and MapDataset, in closed form.

Sources: grain/_src/python/samplers.py, data_loader.py and dataset/transformations/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import option, refused
from shardctl.errors import UsageError
from shardctl.loaders.grain_shuffle import is_permutation, shuffled, unshuffled
from shardctl.loaders.loader_sequence import Batches, LoaderConfig, LoaderSequence, even_share

# Numbers of records beyond this are none that anybody has.
_MOST = 1 << 61
_MOST_COUNTED = 1 << 24  # places of which it is counted which examples come twice


def grain_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process of Grain yields.

    Hosts that share by "examples", and a shuffle of windows, are those of a MapDataset
    (`source.shuffle(seed).repeat(epochs)[host::hosts].to_iter_dataset().batch(..).mp_prefetch(..)`);
    everything else is a DataLoader over an IndexSampler.

    Raises:
        UsageError: Grain refuses these settings, or they are settings of two of its ways.
    """
    _check_seed("shuffle_seed", config.seed)
    # Positions are int64, with room for sums.
    if config.num_examples * config.epochs >= _MOST:
        raise UsageError(f"Grain cannot count {config.num_examples} examples")
    # Two ways of Grain with different orders; `buffer` or "examples" tell which is meant.
    stream = (_of_map_dataset if reads_map_dataset(config) else _of_sampler)(config)
    if config.batch is None:
        return GrainSequence(stream, None)
    drops = config.drop_remainder
    return GrainSequence(
        stream, WorkerBatches(stream.size, config.batch, config.workers, drop_remainder=drops)
    )


def reads_map_dataset(config: LoaderConfig) -> bool:
    """Return whether settings are those of a MapDataset, not of a DataLoader."""
    return config.host_by == "examples" or config.buffer is not None


def _of_sampler(config: LoaderConfig) -> Stream:
    if config.host_by != "even":
        raise refused(
            "Grain has no {}: its hosts share by {host_by=even} (ShardOptions) or "
            "{host_by=examples} (a slice of a MapDataset)",
            option("host_by", config.host_by),
        )
    if not config.num_examples:
        raise UsageError("Grain's IndexSampler refuses to read no examples; read at least one")
    host, num_hosts, drop = config.host, config.num_hosts, config.drop_shard_remainder
    # Source: `even_split` in grain/_src/core/sharding.py.
    # What is shared: all examples, or a multiple of the hosts.
    num_shared = config.num_examples - (config.num_examples % num_hosts if drop else 0)
    share = even_share(num_shared, host, num_hosts)
    in_sampler = config.epochs * (len(share) * num_hosts if drop else config.num_examples)
    # As many on every host: `_SamplerMapDataset` rounds down, from 0.2.13 on.
    # Hosts with fewer examples of their own start over, so that all yield the same number.
    size = in_sampler // num_hosts
    if size and not share:
        raise refused(
            "host {} of {} has no example of its own, yet Grain asks its sampler for {}, and "
            "stops with a division by zero; share {} examples among fewer hosts, or leave the "
            "rest out with {drop_shard_remainder=True}",
            host,
            num_hosts,
            size,
            config.num_examples,
        )
    return Stream(size=size, share=len(share), first=share.start, seed=config.seed)


def _of_map_dataset(config: LoaderConfig) -> Stream:
    if config.shares and config.host_by != "examples":
        raise refused(
            "{buffer} is the shuffle of windows of Grain's MapDataset, whose hosts share by "
            "{host_by=examples}"
        )
    if config.drop_shard_remainder:
        raise refused(
            "{drop_shard_remainder} is of Grain's IndexSampler; a slice of a MapDataset "
            "({host_by=examples}) drops nothing"
        )
    start, stride = config.host, config.num_hosts
    # Length of the slice [host::hosts] over all epochs.
    size = len(range(start, config.num_examples * config.epochs, stride))
    if config.buffer is not None:
        # Number of the last window, whose seed must still be valid.
        _check_windows(
            config, (start + (size - 1) * stride) // max(config.buffer, 1) if size else 0
        )
    return Stream(
        size=size,
        share=config.num_examples,
        seed=config.seed,
        window=config.buffer,
        window_seed=config.buffer_seed or 0,
        start=start,
        stride=stride,
    )


def _check_windows(config: LoaderConfig, last_window: int) -> None:
    assert config.buffer is not None
    if config.buffer < 1:
        raise refused(
            "{}: Grain shuffles windows of 1 example at least; {shuffle_seed=N} shuffles all",
            option("buffer", config.buffer),
        )
    if config.buffer_seed is None:
        raise refused(
            "{buffer} is WindowShuffleMapDataset, which needs a seed; give {buffer_seed=N}"
        )
    _check_seed("buffer_seed", config.buffer_seed)
    if config.buffer_seed + last_window >= NUM_SEEDS:
        raise refused(
            "{}: Grain adds the number of the window, up to {}, and refuses seeds beyond {}",
            option("buffer_seed", config.buffer_seed),
            last_window,
            NUM_SEEDS - 1,
        )


def _check_seed(name: str, seed: int | None) -> None:
    if seed is not None and not 0 <= seed < NUM_SEEDS:
        raise UsageError(f"{option(name, seed)}: Grain takes seeds from 0 to {NUM_SEEDS - 1}")


# The examples that one process of Grain reads, before worker processes share them.

NUM_SEEDS = 1 << 32
# Pairs of an example and an epoch that are looked up at once.
_PAIRS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Places 0 to `size` of one process, whose k-th is number `start + k * stride` of a sequence.

    The sequence is epochs of `share` examples, from example `first` on, one after the other and
    without end; each is shuffled by `seed` + epoch where there is a seed. Windows of the sequence
    are shuffled by `window_seed` + window; the last of them may reach beyond the last epoch.
    """

    size: int
    share: int
    first: int = 0
    seed: int | None = None
    window: int | None = None
    window_seed: int = 0
    start: int = 0
    stride: int = 1

    @property
    def shuffles(self) -> bool:
        """Whether anything is mixed."""
        return self.seed is not None or self.window is not None

    @property
    def is_uniform(self) -> bool:
        """Whether each epoch is a permutation without rule of all that is read in it."""
        return self.seed is not None and is_permutation(self.share)

    @property
    def size_of_first_epoch(self) -> int:
        """Number of places in the first epoch."""
        return min(self.size, len(range(self.start, self.share, self.stride)))

    def indices_at(self, places: Int64s) -> Int64s:
        """Return the index of the example at each place, int64[q]."""
        # Place -> number in the sequence -> number within its window, unshuffled -> epoch and index
        # in it.
        numbers = self.start + places * self.stride
        if self.window is not None:
            windows, within = np.divmod(numbers, self.window)
            within = shuffled(within, self._window_seeds(windows), self.window)
            # Windows cut the sequence of all epochs, so one may hold the end of an epoch and the
            # start of the next.
            numbers = windows * self.window + within
        epochs, within = np.divmod(numbers, max(self.share, 1))
        if self.seed is not None:
            within = shuffled(within, self._seeds(epochs), self.share)
        return self.first + within

    def places_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, place), int64[r] each, for each time one is read."""
        # The inverse of `indices_at`, step by step, for every epoch: an example is read in each.
        wanted = np.flatnonzero((indices >= self.first) & (indices < self.first + self.share))
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        if len(wanted) and self.size:
            # At most _PAIRS pairs of (example, epoch) at once, to bound the memory.
            epochs_at_once = max(_PAIRS // len(wanted), 1)
            for begin in range(0, self._num_epochs, epochs_at_once):
                epochs = range(begin, min(begin + epochs_at_once, self._num_epochs))
                found.append(self._places_in(indices, wanted, epochs))
        queries, places = zip(*found, strict=True)
        return np.concatenate(queries), np.concatenate(places)

    def epochs_at(self, places: Int64s) -> Int64s:
        """Return the epoch of each place, int64[q]; a window belongs to the epoch of its places."""
        return (self.start + places * self.stride) // max(self.share, 1)

    @property
    def _num_epochs(self) -> int:
        """How many epochs examples are read from."""
        last = self.start + (self.size - 1) * self.stride
        if self.window is not None:
            # The last window is read up to its end, as it may take examples from beyond the last
            # place.
            last += self.window - 1 - last % self.window
        return last // self.share + 1

    def _places_in(self, indices: Int64s, wanted: Int64s, epochs: range) -> tuple[Int64s, Int64s]:
        # All pairs of wanted example and epoch: arrays of len(wanted) * len(epochs).
        which, epoch = np.tile(wanted, len(epochs)), np.repeat(epochs, len(wanted))
        numbers = indices[which] - self.first
        if self.seed is not None:
            # `unshuffled` may drop a query or return two indices for it; `again` says which pair
            # each is.
            again, numbers = unshuffled(numbers, self._seeds(epoch), self.share)
            which, epoch = which[again], epoch[again]
        numbers = numbers + epoch * self.share
        if self.window is not None:
            windows, within = np.divmod(numbers, self.window)
            again, within = unshuffled(within, self._window_seeds(windows), self.window)
            which, numbers = which[again], windows[again] * self.window + within
        places, beside = np.divmod(numbers - self.start, self.stride)
        # Numbers of another host leave a remainder; places outside of the pass do not count.
        here = (beside == 0) & (places >= 0) & (places < self.size)
        return which[here], places[here]

    def _seeds(self, epochs: Int64s) -> Int64s:
        """Return the seeds of epochs, one for all of them where they are one epoch."""
        assert self.seed is not None
        # Grain's seeds are uint32 and wrap around.
        return (self.seed + _one_for_all(epochs)) % NUM_SEEDS

    def _window_seeds(self, windows: Int64s) -> Int64s:
        return self.window_seed + _one_for_all(windows)


def _one_for_all(numbers: Int64s) -> Int64s:
    # One seed for all queries is much faster: the keys are made once.
    return numbers[:1] if len(numbers) and (numbers == numbers[0]).all() else numbers


# How the worker processes of Grain share what a process reads, and cut it into batches.


class WorkerBatches(Batches):
    """Batches made by worker processes, of which worker w reads places w, w + workers, ...

    The batches of the workers come in turn. All of them have full batches for `rounds` turns; then
    each has at most one more, and who has none comes last.

    Source: `multiprocess_prefetch` in grain/_src/python/dataset/transformations/process_prefetch.py
    and the iterator of interleave.py beside it.
    """

    def __init__(self, num_places: int, size: int, workers: int, *, drop_remainder: bool) -> None:
        self.size, self.workers = size, max(workers, 1)
        # Turns in which every worker has a full batch.
        self.rounds = num_places // self.workers // size
        # Records of each worker (int64[workers]): worker w reads w, w + workers, ..
        rest = (num_places + self.workers - 1 - np.arange(self.workers)) // self.workers
        # What each has left after those turns; at most one batch.
        rest -= self.rounds * size
        # A worker's last batch may be full, too, which `drop_remainder` keeps.
        self.last_sizes: Int64s = np.where(rest == size, size, 0) if drop_remainder else rest
        # Where each worker's last batch begins among the positions, int64[workers + 1].
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
        # Positions in the last turn have batches of several sizes.
        late = np.flatnonzero(positions >= self.num_full)
        # side="right" skips workers that have no batch left.
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
        # Worker `workers` has read turns * size records before this batch.
        return workers + self.workers * (turns * self.size + within)

    def positions_of(self, places: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `places`, position), int64[r] each, of those in a batch."""
        reads, workers = np.divmod(places, self.workers)
        turns, within = np.divmod(reads, self.size)
        positions = (turns * self.workers + workers) * self.size + within
        late = turns == self.rounds
        positions[late] = self.last_starts[workers[late]] + within[late]
        # Of the last turn, only what is in a batch that is kept.
        kept = np.flatnonzero(~late | (within < self.last_sizes[workers]))
        return kept, positions[kept]


class GrainSequence(LoaderSequence):
    """What one process of Grain yields, cut into batches by its workers."""

    is_made_whole = False

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
        """Return (which of `indices`, position), int64[r] each, for each time one is yielded."""
        queries, places = self.stream.places_of(indices)
        if self._batches is None:
            return queries, places
        kept, positions = self._batches.positions_of(places)
        return queries[kept], positions

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return self.stream.epochs_at(self._places_at(positions))

    def num_again(self, all_hosts: Sequence[LoaderSequence]) -> int:
        """Return how many examples Grain's shuffles yield in place of others.

        A window that reaches beyond the epoch takes examples of the next one, and of a few sizes
        the shuffle is no permutation.
        """
        streams = [one.stream for one in all_hosts if isinstance(one, GrainSequence)]
        window, share = self.stream.window, self.stream.share
        if window is None:
            # Without windows: the number of examples minus that of different ones, host by host.
            shuffled = [s for s in streams if s.seed is not None and not is_permutation(s.share)]
            return sum(s.size - len(np.unique(s.indices_at(np.arange(s.size)))) for s in shuffled)
        # Windows before the last are whole: each yields its own part of storage.
        whole = share // window * window if is_permutation(window) else 0
        # The first place of each host that is not in such a window.
        first = [max(0, -(-(whole - stream.start) // stream.stride)) for stream in streams]
        places = [np.arange(at, stream.size) for at, stream in zip(first, streams, strict=True)]
        if sum(map(len, places)) > _MOST_COUNTED:
            raise refused(
                "{}: what Grain yields twice is counted of {:,} examples at most; give "
                "another {buffer}",
                option("buffer", window),
                _MOST_COUNTED,
            )
        found = np.concatenate(
            [stream.indices_at(at) for at, stream in zip(places, streams, strict=True)]
        )
        return len(found) - len(np.unique(found[found >= whole]))

    def _places_at(self, positions: Int64s) -> Int64s:
        return positions if self._batches is None else self._batches.places_at(positions)
