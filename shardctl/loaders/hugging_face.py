"""The orders of Hugging Face Datasets: a `Dataset` read by index, or an `IterableDataset`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import option, refused
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders import hugging_face_eras, loader_sequence
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER, check_buffer

_BYTES = 85  # of memory an example, of an epoch that is streamed


def hugging_face_sequence(config: loader_sequence.LoaderConfig) -> loader_sequence.LoaderSequence:
    """Return what one process of Hugging Face Datasets yields.

    A `Dataset` is shuffled, then split by node, as training scripts do; the other way round is
    another order. Of an `IterableDataset` both ways are one order.

    Raises:
        UsageError: `datasets` refuses these settings, or its version does not have them.
        UnpredictableOrderError: a shuffle without a seed.
    """
    if config.seed is not None and config.seed < 0:
        raise refused("{}: NumPy seeds are 0 or more", option("shuffle_seed", config.seed))
    if config.streams:
        return _streamed(config)
    return _by_index(config)


def _by_index(config: loader_sequence.LoaderConfig) -> loader_sequence.LoaderSequence:
    """`Dataset.shuffle(seed)`, then `split_dataset_by_node`: one run of examples a host.

    A `Dataset` has no epochs: it is read in the same order each time.
    """
    if config.streaming is False and config.buffer is not None:
        raise refused(
            "{streaming=False} reads by index, and {} is of a stream; leave out one of them",
            option("buffer", config.buffer),
        )
    if config.host_by != "even":
        raise refused(
            "{}: split_dataset_by_node gives each host one run of a Dataset; "
            "{host_by=even}, or {streaming=True}",
            option("host_by", config.host_by),
        )
    if config.input_shards is not None:
        raise refused("{} needs {streaming=True}", option("input_shards", config.input_shards))
    n = config.num_examples
    share = loader_sequence.even_share(config.num_examples, config.host, config.num_hosts)
    if n and not share:
        raise refused(
            "{}: datasets raises IndexError for a host that gets none of {} examples",
            option("host", f"{config.host}/{config.num_hosts}"),
            n,
        )
    shuffles = config.seed is not None
    if shuffles:
        _check_size(n)

    def permutation(epoch: int) -> Int64s:
        # A new generator of the same seed: every epoch has the same order.
        return np.random.default_rng(config.seed).permutation(n)

    found = loader_sequence.Dealt(
        n,
        # One contiguous run of the permutation for each host.
        loader_sequence.Deal(first=share.start, size=config.whole_batches(len(share))),
        epochs=config.epochs,
        permutation=permutation if shuffles else None,
        batch=config.batch,
    )
    found.is_shuffled_once = shuffles
    return found


def _streamed(config: loader_sequence.LoaderConfig) -> loader_sequence.LoaderSequence:
    """`IterableDataset.shuffle(seed, buffer_size)`, split by node, read by a DataLoader's workers.

    Each worker makes batches of its own, which are yielded in turn.
    """
    era = hugging_face_eras.era_of(config.version)
    # What depends on the version first, then what depends on the format.
    _check_streaming(config, era)
    hugging_face_eras.check_tables(config)
    streaming = Streaming(config, era)
    block = config.batch or 1
    drops = config.drop_remainder
    epochs = range(config.first_epoch, config.first_epoch + config.epochs)
    # Epochs may differ in size: another shuffle of the shards gives other shards to this host or
    # worker.
    of_workers = [streaming.sizes(epoch) for epoch in epochs]
    _check_size(
        max(map(sum, of_workers), default=0) * (1 if streaming.shares_shards else config.num_hosts)
    )
    # With drop_last each worker drops its own last partial batch.
    kept = [[size // block * block if drops else size for size in sizes] for sizes in of_workers]
    totals = [sum(sizes) for sizes in kept]

    def epoch(number: int) -> Int64s:
        read = streaming.workers(epochs[number])
        # Workers without examples take no turn.
        streams = [stream[:size] for stream, size in zip(read, kept[number], strict=True) if size]
        if len(streams) < 2:
            return streams[0] if streams else np.empty(0, np.int64)
        return in_turn(streams, block)[0]

    batches: loader_sequence.Batches | None = None
    # Equal epochs and no workers: batches are in closed form.
    if config.batch is not None and not config.workers and len(set(totals)) == 1:
        batches = loader_sequence.EqualBatches(totals[0], block, epochs=len(totals))
    elif config.batch is not None:
        # Only lengths are needed, so arrays of one byte an example stand in.
        lengths = [in_turn([np.empty(size, np.int8) for size in sizes], block)[1] for sizes in kept]
        batches = loader_sequence.UnequalBatches(np.concatenate([np.empty(0, np.int64), *lengths]))
    shuffles = config.seed is not None
    # The buffer holds all: a uniform permutation.
    whole = shuffles and not config.workers and streaming.buffer >= config.num_examples
    found = loader_sequence.EpochByEpoch(
        totals, epoch, batches=batches, shuffles=shuffles, is_uniform=whole
    )
    found.num_in_turn = streaming.num_in_turn
    if config.num_hosts > 1 and streaming.shares_shards:
        found.among = streaming.indices_of_shards(epochs[0]) if epochs else None
    if config.num_hosts > 1 and not streaming.shares_shards:
        found.num_read = config.num_examples  # all of it, of which one in so many is kept
    found.assumptions = hugging_face_eras.assumed_of_streams(config)
    return found


def _check_size(num_examples: int) -> None:
    """Refuse an epoch that takes more memory than a program should take unasked."""
    if num_examples > MAX_BUFFER:
        raise UsageError(
            f"an epoch of {num_examples:,} examples takes about {num_examples * _BYTES // 10**9} "
            f"GB to shuffle or stream here, and more than {MAX_BUFFER:,} are refused; read fewer "
            "of them, some shards at a time"
        )


def _check_streaming(config: loader_sequence.LoaderConfig, era: hugging_face_eras.Era) -> None:
    cut = config.cut_shards
    if cut:
        raise refused(
            "Hugging Face streams whole shards, and the spec reads parts of {}; name whole "
            "shards, or read by index with {streaming=False} and no {buffer}",
            "a shard" if cut == 1 else f"{cut} shards",
        )
    if config.buffer is not None:
        if config.seed is None:
            raise UnpredictableOrderError(
                "IterableDataset.shuffle without a seed draws another order each time; "
                f"{option('buffer', config.buffer)} needs --shuffle-seed N"
            )
        if config.buffer < 1:
            raise refused(
                "{}: the shuffle buffer holds 1 example or more", option("buffer", config.buffer)
            )
        check_buffer(config.buffer)
    if config.input_shards is not None:
        given = option("input_shards", config.input_shards)
        if config.seed is None:
            raise refused("{} is read with {shuffle_seed=N} only", given)
        if era.interleave == "never":
            raise UsageError(
                f"{given}: datasets {config.version} reads one shard after the other; "
                "max_buffer_input_shards came with 5.0.0"
            )
    if config.shares and config.host_by != "even":
        if not era.has_strategy:
            raise refused(
                "{}: split_dataset_by_node of datasets {} has no strategy; it came with 5.1.0",
                option("host_by", config.host_by),
                config.version,
            )
        if config.host_by == "files" and len(config.lengths_of_shards) < config.num_hosts:
            raise refused(
                "{host_by=files}: datasets refuses strategy='shards' for {} shards on {} "
                "hosts; {host_by=even} shares the examples",
                len(config.lengths_of_shards),
                config.num_hosts,
            )


# The order in which `IterableDataset` streams the examples of shards.

_SEEDS = 1 << 63  # seeds are drawn below


@dataclass(frozen=True, kw_only=True, eq=False)
class Reader:
    """What one process, or one of its workers, reads of an epoch.

    groups: shards that are read one after the other; the groups are read in turn.
    generator: of the shuffle buffer, None where there is none.
    step, offset: of the examples that come out, each `step`-th is yielded, from `offset` on.
    """

    groups: list[Int64s]
    generator: np.random.Generator | None
    step: int = 1
    offset: int = 0

    def size(self, lengths: Int64s) -> int:
        """Return how many examples it yields."""
        read = sum(int(lengths[group].sum()) for group in self.groups)
        # Number of positions offset, offset + step, .. below what is read.
        return len(range(self.offset, read, self.step))


class Streaming:
    """`IterableDataset.shuffle(seed, buffer_size)`, split by node, read by workers, by the epoch.

    Hosts get shards where the number of shards is a multiple of theirs, else examples by stride;
    `split_dataset_by_node` before `shuffle` or after it comes to the same.
    """

    def __init__(self, config: loader_sequence.LoaderConfig, era: hugging_face_eras.Era) -> None:
        self._config, self._era = config, era
        self._lengths = config.lengths_of_shards
        # Index of the first example of each shard.
        self._starts = np.cumsum(self._lengths) - self._lengths
        self.buffer = hugging_face_eras.DEFAULT_BUFFER if config.buffer is None else config.buffer
        self._tables = hugging_face_eras.of_tables(config)
        self._inputs = config.input_shards or hugging_face_eras.DEFAULT_INPUT_SHARDS

    def sizes(self, epoch: int) -> list[int]:
        """Return how many examples each worker yields of an epoch."""
        return [reader.size(self._lengths) for reader in self._readers(epoch)]

    def workers(self, epoch: int) -> list[Int64s]:
        """Return the indices that each worker yields of an epoch, in order."""
        return [self._read(reader) for reader in self._readers(epoch)]

    def indices_of_shards(self, epoch: int) -> list[range]:
        """Return the indices in each shard that this process reads in an epoch, as they lie."""
        groups = [group for reader in self._readers(epoch) for group in reader.groups]
        shards = np.unique(np.concatenate([np.empty(0, np.int64), *groups]))
        starts, lengths = self._starts[shards].tolist(), self._lengths[shards].tolist()
        return [range(start, start + size) for start, size in zip(starts, lengths, strict=True)]

    @property
    def num_shards(self) -> int:
        """Number of shards, as `IterableDataset.num_shards` counts them after a shuffle."""
        return self._num_shards(self._groups_of_all(0))

    @property
    def shares_shards(self) -> bool:
        """Whether hosts get shards of their own, not all examples by stride."""
        return self._gets_shards(self.num_shards)

    @property
    def num_in_turn(self) -> int:
        """How many shards fill the buffer in turn, if there are so many."""
        return 1 if self._era.interleave == "never" else self._inputs

    @property
    def num_idle_workers(self) -> int:
        """Number of workers of this process that get no shard."""
        return sum(not reader.groups for reader in self._readers(0)) if self._config.workers else 0

    def _readers(self, epoch: int) -> list[Reader]:
        """Return what each worker reads, or the process itself where it has none."""
        config, era = self._config, self._era
        groups, generator = self._groups_of_all(epoch), self._generator(epoch)
        step, offset = (config.num_hosts, config.host) if config.shares else (1, 0)
        # Hosts get shards if they can be shared evenly; otherwise each takes every n-th example.
        if config.shares and self._gets_shards(self._num_shards(groups)):
            groups = [group[config.host :: config.num_hosts] for group in groups]
            step, offset = 1, 0
        # A worker gets no shard where it is one too many; of groups, none gets more than one.
        num_shards = self._num_shards(groups)
        # PyTorch's workers: worker w of k gets shards w, w + k, ..
        stride = min(config.workers, num_shards) if config.workers else 1
        in_parts = generator is not None and era.interleave == "apart" and self._inputs > 1
        readers = []
        for worker in range(config.workers or 1):
            is_idle = config.workers and worker >= num_shards
            own = [] if is_idle else [group[worker::stride] for group in groups]
            if in_parts:
                own = [part for group in own for part in _parts(group, self._inputs)]
            seeded = self._of_worker(generator, worker) if config.workers else generator
            readers.append(Reader(groups=own, generator=seeded, step=step, offset=offset))
        return readers

    def _groups_of_all(self, epoch: int) -> list[Int64s]:
        """Return all shards in the order of an epoch, in the groups that `shuffle` makes of them.

        There is one group unless `shuffle` itself has them read in turn.
        """
        era, shards = self._era, np.arange(len(self._lengths))
        groups = [shards]
        # In later eras the seed of the shuffle stays, and the epoch shuffles once more below.
        rng = self._generator(0 if era.epochs_add_up else epoch)
        if rng is not None:
            rng.shuffle(shards)
            if era.interleave == "together" and self._inputs > 1:
                groups = _parts(shards, self._inputs)
        if epoch and era.epochs_add_up:
            # Each group is shuffled by a new generator of the epoch, so all of them by the same
            # draws.
            groups = [np.random.default_rng(epoch).permutation(group) for group in groups]
        return groups

    def _generator(self, epoch: int) -> np.random.Generator | None:
        """Return the generator of the shuffle buffer in an epoch, before it draws anything."""
        if self._config.seed is None:
            return None
        generator = np.random.default_rng(self._config.seed)
        if not epoch:
            return generator
        # As `IterableDataset` does: a draw minus the epoch. Python's modulo keeps it in range.
        seed = int(generator.integers(0, _SEEDS)) - epoch
        return np.random.default_rng(seed % _SEEDS if not self._era.epochs_add_up else seed)

    def _of_worker(
        self, generator: np.random.Generator | None, worker: int
    ) -> np.random.Generator | None:
        """Return the generator of a worker's buffer."""
        if generator is None or self._era.worker_seeds == "same":
            return generator
        if self._era.worker_seeds == "state":
            state: int = generator.bit_generator.state["state"]["state"]
            return np.random.default_rng(state + worker)
        # `deepcopy`: the draw must not move the generator that the buffer uses.
        return np.random.default_rng(int(deepcopy(generator).integers(0, _SEEDS)) - worker)

    def _gets_shards(self, num_shards: int) -> bool:
        if self._config.host_by == "even":
            return num_shards % self._config.num_hosts == 0
        return self._config.host_by == "files"

    @staticmethod
    def _num_shards(groups: list[Int64s]) -> int:
        """Return `num_shards` as the library counts it: of several groups, that of the shortest."""
        return min((len(group) for group in groups), default=0)

    def _read(self, reader: Reader) -> Int64s:
        """Return the indices that one reader yields."""
        streams = [self._examples_of(group) for group in reader.groups]
        if reader.generator is None:
            # Without a shuffle: shard after shard, group after group.
            read = np.concatenate([*streams, np.empty(0, np.int64)])
        else:
            # How many rows the tables have that fill the buffer; 1 is as without tables.
            by_tables = self._tables and self._era.by_halves
            block = max(1, self.buffer // self._inputs) if by_tables else 1
            stream, blocks = in_turn(streams, block)
            # A generator is used once for each call; the copy starts at the same state.
            generator = deepcopy(reader.generator)
            if self._era.by_halves:
                # Blocks of one row are the same as no blocks.
                sizes = None if block == 1 else blocks
                read = by_halves(stream, sizes, self.buffer, generator)
            else:
                read = one_for_one(stream, self.buffer, generator)
        return read[reader.offset :: reader.step]

    def _examples_of(self, shards: Int64s) -> Int64s:
        """Return the indices of the examples of shards, one shard after the other."""
        lengths = self._lengths[shards]
        ends = np.cumsum(lengths)
        # index = start of the shard + offset in it, for all shards at once: repeat the difference,
        # then add a running number.
        found: Int64s = np.repeat(self._starts[shards] - (ends - lengths), lengths)
        return found + np.arange(len(found))


def _parts(shards: Int64s, most: int) -> list[Int64s]:
    """Return shards in up to `most` runs of nearly one length, the longer ones first."""
    if not len(shards):
        return []
    return np.array_split(shards, min(len(shards), most))


# The shuffle buffers of `IterableDataset`, and streams that are read in turn.

# Random numbers that the buffer draws at once: `_iter_random_indices(random_batch_size)`.
_DRAWN_AT_ONCE = 1000


def in_turn(streams: Sequence[Int64s], block: int) -> tuple[Int64s, Int64s]:
    """Return `block` of each stream in turn until all are read, and the lengths of those blocks.

    >>> in_turn([np.array([1, 2, 3]), np.array([7])], 2)
    (array([1, 2, 7, 3]), array([2, 1, 1]))
    """
    sizes, rounds = [], []
    for stream in streams:
        # Block lengths of a stream: `full` whole ones, then the rest.
        full, rest = divmod(len(stream), block)
        sizes.append(np.append(np.full(full, block, np.int64), [rest] if rest else []))
        rounds.append(np.arange(len(sizes[-1])))
    if not streams:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # Stable sort by round: block r of each stream, in the order of the streams.
    order = np.argsort(np.concatenate(rounds), kind="stable")
    lengths = np.concatenate(sizes).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    lengths, starts = lengths[order], starts[order]
    # Where each block begins in the result, so that its examples follow one another from there.
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    # Example i of the result is at i + shift in the concatenated streams.
    return np.concatenate(streams)[np.arange(len(shift)) + shift], lengths


def one_for_one(stream: Int64s, size: int, generator: np.random.Generator) -> Int64s:
    """Return a stream through a buffer that yields an example for each that comes.

    What a draw takes is what came when the place was drawn before, or what filled it at first, so
    no step waits for another.
    """
    # The buffer never fills: the library shuffles what it holds.
    if len(stream) <= size:
        left = stream.copy()
        generator.shuffle(left)
        return left
    steps = len(stream) - size
    # The library draws indices 1,000 at a time, so the generator must be moved as far.
    drawn = -(-steps // _DRAWN_AT_ONCE) * _DRAWN_AT_ONCE
    # places[s] is the buffer slot that step s yields and fills again with example size + s.
    places = generator.integers(0, size, size=drawn)[:steps]
    by_place = np.argsort(places, kind="stable")
    sorted_places = places[by_place]
    # Steps by slot, in order of time. A slot's earlier step put there what its next step takes.
    again = sorted_places[1:] == sorted_places[:-1]
    taken = np.empty(steps, np.int64)
    # At first a slot holds example number `slot`; later, what the step before put there: size +
    # that step.
    taken[by_place] = sorted_places
    taken[by_place[1:][again]] = by_place[:-1][again] + size
    left = np.arange(size)
    # The last step of each slot leaves its example in the buffer.
    last = np.append(~again, True)
    left[sorted_places[last]] = by_place[last] + size
    generator.shuffle(left)
    return np.concatenate([stream[taken], stream[left]])


def by_halves(
    stream: Int64s, blocks: Int64s | None, size: int, generator: np.random.Generator
) -> Int64s:
    """Return a stream through a buffer that, when it is full, yields all but half its size.

    It takes blocks whole, so it may hold more than `size` then; `blocks` are their lengths, None
    where examples come one by one.
    """
    if size == 1 and blocks is None:
        return stream.copy()  # each is yielded as it comes, and one alone draws nothing
    # What stays in the buffer after each output.
    keep = size // 2
    ends = None if blocks is None else np.cumsum(blocks)
    found = np.empty(len(stream), np.int64)
    held, read, done = stream[:0], 0, 0
    while True:
        # Read until the buffer is full.
        upto = read + size - len(held)
        if ends is not None and upto <= len(stream):
            # Whole blocks only: the first end at or beyond.
            upto = int(ends[np.searchsorted(ends, upto)])
        if upto > len(stream):
            break
        held = np.concatenate([held, stream[read:upto]])
        # All that is held is permuted, and all but `keep` are yielded.
        held = held[generator.permutation(len(held))]
        count = len(held) - keep
        found[done : done + count] = held[:count]
        held, read, done = held[count:], upto, done + count
    # At the end of the stream the rest is permuted once more.
    held = np.concatenate([held, stream[read:]])
    found[done:] = held[generator.permutation(len(held))] if len(held) else held
    return found
