"""What one process of a loader yields, in order, and in which batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.stages.part import Source
    from shardctl.stages.stages import ByData, Pipeline, Read

ENDLESS = 1 << 40  # positions of what has no end that can be asked for, as of any order
_NONE = np.empty(0, np.int64)
_PIECE = 1 << 20  # examples of an epoch that are looked through together
_KEPT = 2  # epochs


class Batches(ABC):
    """How the examples that a process yields are cut into batches, from the first to the last.

    Every example yielded is in a batch: those of a batch that is dropped are not yielded.
    """

    num_batches: int

    @abstractmethod
    def steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (batch, index of the example in it), int64[q] each."""

    @abstractmethod
    def bounds(self, step: int) -> tuple[int, int]:
        """Return the positions [start, stop) of a batch."""


class EqualBatches(Batches):
    """Batches of one size, the last of each epoch of what is left.

    >>> EqualBatches(5, 2, epochs=2).bounds(5)
    (9, 10)
    """

    def __init__(self, num_examples: int, size: int, *, epochs: int = 1) -> None:
        """`num_examples` are those of one epoch."""
        self._num_examples, self._size = num_examples, size
        # Each epoch ends with a batch of its own: ceil(n / size).
        self._an_epoch = -(-num_examples // size)
        self.num_batches = self._an_epoch * epochs

    def steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (batch, index of the example in it), int64[q] each."""
        # Batches do not run over the end of an epoch.
        epochs, within = np.divmod(positions, max(self._num_examples, 1))
        steps, offsets = np.divmod(within, self._size)
        return epochs * self._an_epoch + steps, offsets

    def bounds(self, step: int) -> tuple[int, int]:
        """Return the positions [start, stop) of a batch."""
        epoch, step = divmod(step, self._an_epoch)
        start, stop = step * self._size, min((step + 1) * self._size, self._num_examples)
        return epoch * self._num_examples + start, epoch * self._num_examples + stop


class UnequalBatches(Batches):
    """Batches of any sizes, int64[batches], each of 1 at least."""

    def __init__(self, sizes: Int64s) -> None:
        # starts[b] is the position at which batch b begins; one more entry is the end.
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.num_batches = len(sizes)

    def steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (batch, index of the example in it), int64[q] each."""
        # side="right" - 1: the last batch that begins at or before the position.
        steps = np.searchsorted(self._starts, positions, side="right") - 1
        return steps, positions - self._starts[steps]

    def bounds(self, step: int) -> tuple[int, int]:
        """Return the positions [start, stop) of a batch."""
        return int(self._starts[step]), int(self._starts[step + 1])


class LoaderSequence(ABC):
    """All epochs of one process, from position 0: which index is where, both ways.

    num_examples: yielded in all epochs. epoch_size: of the first of them.
    batches: None where examples come one by one.
    shuffles: whether anything mixes them. is_uniform: whether an epoch is a uniform permutation.
    num_read: taken from storage for the first epoch, None where these are what is yielded of it.
    among: the indices that the first epoch is of, in pieces of storage; None where they may be any.
    is_made_whole: whether an epoch is made as a whole before any place in it is known.
    is_shuffled_once: whether all epochs have the one order that a shuffle gave them.
    is_endless: whether `num_examples` is no more than a bound of what can be asked for.
    num_in_turn: how many files are read at once, None where examples are read by their index.
    assumptions: what the order depends on though no setting states it, a sentence each.
    """

    num_examples: int
    epoch_size: int
    num_read: int | None = None
    among: Sequence[range] | None = None
    batches: Batches | None = None
    shuffles: bool = False
    is_uniform: bool = False
    is_made_whole: bool = True
    is_shuffled_once: bool = False
    num_in_turn: int | None = None
    assumptions: tuple[str, ...] = ()

    is_endless: bool = False

    def num_again(self, all_hosts: Sequence[LoaderSequence]) -> int:
        """Return how many examples an epoch of all hosts has in place of others, this one first.

        Those that fill up a last round are not meant, which come besides all others.

        Raises:
            UsageError: they are too many to be counted.
        """
        return 0

    @abstractmethod
    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""

    @abstractmethod
    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is yielded."""

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return positions // max(self.epoch_size, 1)


class EpochByEpoch(LoaderSequence):
    """Epochs one after the other, each of them a row of indices that is built as a whole.

    `sizes` are the lengths of the epochs; `epoch(e)` returns the indices (int64[sizes[e]]) of the
    e-th of them, which are kept for the latest two.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        epoch: Callable[[int], Int64s],
        *,
        batches: Batches | None = None,
        shuffles: bool = False,
        is_uniform: bool = False,
    ) -> None:
        self._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._indices = lru_cache(_KEPT)(epoch)
        self.num_examples = int(self._starts[-1])
        self.epoch_size = int(sizes[0]) if len(sizes) else 0
        self.batches, self.shuffles, self.is_uniform = batches, shuffles, is_uniform

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        epochs = self.epochs_at(positions)
        found = np.empty(len(positions), np.int64)
        # One epoch at a time, since each is made as a whole.
        for epoch in np.unique(epochs).tolist():
            here = np.flatnonzero(epochs == epoch)
            found[here] = self._indices(epoch)[positions[here] - self._starts[epoch]]
        return found

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is yielded."""
        queries, positions = [_NONE], [_NONE]
        # An example is searched in every epoch, in pieces that bound the memory of the search.
        for epoch, start in enumerate(self._starts[:-1].tolist() if len(indices) else ()):
            there = self._indices(epoch)
            for first in range(0, len(there), _PIECE):
                query, place = matches(indices, there[first : first + _PIECE])
                queries.append(query)
                positions.append(place + (start + first))
        return np.concatenate(queries), np.concatenate(positions)

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        epochs: Int64s = np.searchsorted(self._starts, positions, side="right") - 1
        return epochs


_MOST_FOLLOWED = 1 << 25  # of some 80 bytes each


# What an iterator yields in a piece: indices of examples, int64[r]; the number of examples of each
# element, int64[e], which sum up to r; the epoch of each example, int64[r].
Piece = tuple[Int64s, Int64s, Int64s]
_TOGETHER = 1024  # elements of a piece


def pieces_of(epochs: Iterable[Iterator[list[int]]]) -> Iterator[Piece]:
    """Yield the elements of epochs, each a list of indices, many together."""
    for epoch, elements in enumerate(epochs):
        while some := list(islice(elements, _TOGETHER)):
            indices = np.array([*chain.from_iterable(some)], np.int64)
            yield indices, np.array(list(map(len, some)), np.int64), np.full(len(indices), epoch)


class Followed(LoaderSequence):
    """What an iterator yields, from the first example on, followed as far as it is asked about.

    pieces: what it yields (`pieces_of`). One that ends is followed to its end. epoch_size: examples
    of the first epoch, of one that has no end.
    batches: whether elements are batches.
    """

    def __init__(
        self,
        pieces: Iterator[Piece],
        *,
        epoch_size: int = ENDLESS,
        batches: bool = False,
        shuffles: bool = False,
        is_endless: bool = False,
    ) -> None:
        self._pieces, self._rows = pieces, [(_NONE, _NONE, _NONE)]
        self.is_endless, self.shuffles = is_endless, shuffles
        self.num_examples, self.epoch_size = ENDLESS, epoch_size
        if batches and is_endless:
            self.batches = _FollowedBatches(self)
        if not is_endless:
            _, sizes, epochs = self._follow(None)
            self.num_examples, self.epoch_size = len(epochs), int(np.count_nonzero(epochs == 0))
            self.batches = UnequalBatches(sizes) if batches else None

    def _follow(self, stop: int | None, elements: int = 0) -> Piece:
        """Follow the iterator to so many examples and elements, None to its end; return columns."""
        num_examples, num_elements = map(len, self._rows[0][:2])
        while stop is None or num_examples < stop or num_elements < elements:
            piece = next(self._pieces, None)
            if piece is None:
                if stop is not None:
                    raise UsageError(f"position {stop - 1}: only {num_examples} examples come")
                break
            self._rows.append(piece)
            num_examples, num_elements = num_examples + len(piece[0]), num_elements + len(piece[1])
            if num_examples > _MOST_FOLLOWED:
                raise UsageError(
                    f"this chain is followed one example after the other, and more than "
                    f"{_MOST_FOLLOWED:,} are refused; end it sooner, or ask for an earlier position"
                )
        if len(self._rows) > 1:
            indices, sizes, epochs = map(np.concatenate, zip(*self._rows, strict=True))
            self._rows = [(indices, sizes, epochs)]
        return self._rows[0]

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        return self._at(0, positions)

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return self._at(2, positions)

    def _at(self, column: int, positions: Int64s) -> Int64s:
        return self._follow(int(positions.max(initial=-1)) + 1)[column][positions]

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is yielded."""
        return matches(indices, self._follow(0)[0])


class _FollowedBatches(Batches):
    """The elements of what has no end, which are batches."""

    num_batches = ENDLESS

    def __init__(self, of: Followed) -> None:
        self._of = of

    def steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        # The batch of a place may go on behind it.
        widths = self._of._follow(int(positions.max(initial=-1)) + 1)[1]
        return UnequalBatches(widths).steps_of(positions)

    def bounds(self, step: int) -> tuple[int, int]:
        return UnequalBatches(self._of._follow(0, step + 1)[1]).bounds(step)


# Epochs that are dealt to processes: each takes its turn at a permutation that starts over.

Permutation = NDArray[np.signedinteger]
Permutations = Callable[[int], Permutation]


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Which places of an epoch one of `num_hosts` processes is dealt: `block` of them at a time.

    size: how many it is dealt, from place `first` on. Places count on where the epoch ends, which
        then starts over.

    >>> Deal(host=1, num_hosts=3, block=2, size=4).places(np.arange(4)).tolist()
    [2, 3, 8, 9]
    """

    host: int = 0
    num_hosts: int = 1
    block: int = 1
    size: int
    first: int = 0

    def places(self, positions: Int64s) -> Int64s:
        """Return the place of each position of the process."""
        if self.num_hosts == 1:
            return self.first + positions
        # A turn gives `block` places to each host; this host's are at host * block within it.
        turns, offsets = np.divmod(positions, self.block)
        return self.first + (turns * self.num_hosts + self.host) * self.block + offsets

    def positions(self, places: Int64s) -> tuple[NDArray[np.intp], Int64s]:
        """Return (which of the places, its position), of those that the process is dealt."""
        blocks, offsets = np.divmod(places - self.first, self.block)
        # The inverse: which block, then whose turn.
        turns, hosts = np.divmod(blocks, self.num_hosts)
        positions = turns * self.block + offsets
        mine = np.flatnonzero((hosts == self.host) & (positions >= 0) & (positions < self.size))
        return mine, positions[mine]


class Dealt(LoaderSequence):
    """All epochs of a process that is dealt its part of each, by the same deal.

    `permutation(e)` returns the order of the e-th epoch; None reads it as it is stored.
    """

    def __init__(
        self,
        num_elements: int,
        deal: Deal,
        *,
        epochs: int,
        permutation: Permutations | None,
        batch: int | None,
    ) -> None:
        self._num_elements, self._deal, self._epochs = num_elements, deal, epochs
        self._order = None if permutation is None else lru_cache(_KEPT)(permutation)
        self.epoch_size = deal.size
        self.num_examples = deal.size * epochs
        self.shuffles = self.is_uniform = permutation is not None
        self.batches: Batches | None = None
        if batch is not None:
            self.batches = EqualBatches(deal.size, batch, epochs=epochs)

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        epochs, within = np.divmod(positions, max(self.epoch_size, 1))
        # Places past the end of the epoch start over, hence the modulo.
        places = self._deal.places(within) % max(self._num_elements, 1)
        if self._order is None:
            return places
        for epoch in np.unique(epochs).tolist():
            here = np.flatnonzero(epochs == epoch)
            places[here] = self._order(epoch)[places[here]]
        return places

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is yielded."""
        queries, positions = [_NONE], [_NONE]
        # Places past the end are examples that come a second time in the epoch.
        again = self._places_again()
        for epoch in range(self._epochs if len(indices) else 0):
            places = self._places(epoch, indices)
            which, within = self._deal.positions(places)
            repeated, repetition = matches(places, again % max(self._num_elements, 1))
            queries += [which, repeated]
            found = self._deal.positions(again[repetition])[1]
            # First the ordinary positions, then those of examples that come again.
            positions += [within + epoch * self.epoch_size, found + epoch * self.epoch_size]
        return np.concatenate(queries), np.concatenate(positions)

    def _places_again(self) -> Int64s:
        """Return the places of the process at which the epoch has started over: its last ones."""
        # Only the last block can reach past the end.
        last = np.arange(max(self._deal.size - self._deal.block, 0), self._deal.size)
        places = self._deal.places(last)
        return places[places >= self._num_elements]

    def _places(self, epoch: int, indices: Int64s) -> Int64s:
        """Return where in an epoch the examples are."""
        if self._order is None:
            return indices
        order = self._order(epoch)
        inverse = np.empty_like(order)
        # inverse[order[i]] = i: where each example is.
        inverse[order] = np.arange(len(order), dtype=order.dtype)
        places: Int64s = inverse[indices].astype(np.int64)
        return places


# What both look up, and how batches follow from lengths.


def even_share(num_examples: int, host: int, num_hosts: int) -> range:
    """Return the piece of all examples that a host gets, of those that are of nearly one size.

    >>> [even_share(10, host, 3) for host in range(3)]
    [range(0, 4), range(4, 7), range(7, 10)]
    """
    each, rest = divmod(num_examples, num_hosts)
    # The first `rest` hosts get one more, as in NumPy's array_split.
    start = host * each + min(host, rest)
    return range(start, start + each + (host < rest))


def matches(wanted: Int64s, there: Int64s) -> tuple[Int64s, Int64s]:
    """Return (which of `wanted`, place in `there`), int64[r] each, of all pairs that are equal.

    >>> [found.tolist() for found in matches(np.array([7, 3, 7]), np.array([3, 7, 5]))]
    [[1, 0, 2], [0, 1, 1]]
    """
    # Queries ascending; equal ones stay in their order.
    order = np.argsort(wanted, kind="stable")
    ascending = wanted[order]
    # For each element of `there`: the run of equal queries is [first, first + count).
    first = np.searchsorted(ascending, there)
    count = np.searchsorted(ascending, there, side="right") - first
    found = np.flatnonzero(count)
    first, count = first[found], count[found]
    # The pairs of one place are a run of queries; `nth` counts within it.
    # Position within the run: a running number minus where the run begins.
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return order[np.repeat(first, count) + nth], np.repeat(found, count)


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


def dealt_by_workers(
    workers: Sequence[Int64s], batch: int, *, drops: bool = False
) -> tuple[Int64s, Int64s]:
    """Return what a DataLoader yields whose workers have these examples, and sizes of batches.

    Each worker makes batches of its own, which come in turn; one that is done takes no more turns.

    >>> dealt_by_workers([np.array([1, 2, 3]), np.array([7])], 2)
    (array([1, 2, 7, 3]), array([2, 1, 1]))
    """
    kept = [row[: len(row) // batch * batch] if drops else row for row in workers]
    return in_turn(kept, batch)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoaderSource:
    """What a reader in a chain reads: indices from `first` on, in shards of these lengths.

    lengths: int64[shards], how many examples of each shard are read, in their order; an example is
        named by its index in all of them, as `tfds.data_source` and `datasets.Dataset` count.
    shard_lengths: int64[files], how many examples the files have that are read, empty ones among
        them too; None where they are `lengths`, every shard read whole.
    file_format: of the record files, "" where the examples are not read from any.
    """

    first: int = 0
    lengths: Int64s
    shard_lengths: Int64s | None = None
    file_format: str = ""

    @property
    def num_examples(self) -> int:
        """Number of examples that are read."""
        return int(self.lengths.sum())

    @property
    def indices(self) -> range:
        """The indices of its examples, in the order of storage."""
        return range(self.first, self.first + self.num_examples)

    @property
    def lengths_of_shards(self) -> Int64s:
        """How many examples the files have that are read, int64[files]."""
        return self.lengths if self.shard_lengths is None else self.shard_lengths

    @property
    def starts_of_shards(self) -> Int64s:
        """The index of the first example of each file, int64[files]."""
        lengths = self.lengths_of_shards
        starts: Int64s = self.first + np.cumsum(lengths) - lengths
        return starts

    @property
    def shards(self) -> tuple[range, ...]:
        """The indices of each file, of those without examples too."""
        starts = self.starts_of_shards
        return tuple(map(range, starts.tolist(), (starts + self.lengths_of_shards).tolist()))


@dataclass(frozen=True, kw_only=True, eq=False)
class LoaderConfig(LoaderSource):
    """One process that reads examples 0 to `num_examples`, which all processes share.

    Its own shards are those that settings without a chain read.

    loader, version: of the library whose rule it is to be; several loaders may have one rule.
    host, num_hosts: this process among those that share the examples; 0 of 1 where `shares` is not.
    first_epoch, epochs: which epochs are read, one after the other; how the library counts them
        (`set_epoch`, the iteration of an object, repetitions) is the rule's affair.
    stages: the chain of calls that makes the loader, None where settings say it.
    sources: what each reader of the chain reads, their examples counted one reader after the other.
    kept: returns what the file of a stage (`ByData`) says of examples, by their indices.

    Settings that are not given are None or False.
    """

    loader: str = ""
    version: str
    shuffle: bool | None = None
    seed: int | None = None
    global_seed: int | None = None
    first_epoch: int = 0
    epochs: int = 1
    shares: bool = False
    host: int = 0
    num_hosts: int = 1
    host_by: str = "even"
    drop_shard_remainder: bool = False
    workers: int = 0
    persistent_workers: bool | None = None
    batch: int | None = None
    drop_remainder: bool = False
    buffer: int | None = None
    buffer_seed: int | None = None
    streaming: bool | None = None
    arrow: bool | None = None
    input_shards: int | None = None
    stages: Pipeline | None = None
    sources: Mapping[Read, LoaderSource] = field(default_factory=dict)
    kept: Callable[[ByData], Callable[[Int64s], Int64s]] | None = None

    @property
    def shuffles(self) -> bool:
        """Whether the examples are shuffled: as configured, else where a seed of the shuffle is."""
        return self.seed is not None if self.shuffle is None else self.shuffle

    def read_by(self, source: Source) -> LoaderSource:
        """Return what a reader of the chain reads, of settings all that there is."""
        return self.sources.get(source, self)  # type: ignore[call-overload, no-any-return]

    def whole_shards(self, read: Source) -> LoaderSource:
        """Return what a reader of the chain reads, of a loader that reads whole shards.

        Raises:
            UsageError: only a part of a shard is read.
        """
        source = self.read_by(read)
        if int(source.lengths_of_shards.sum()) != source.num_examples:
            raise UsageError(
                "this loader reads whole shards, and the spec cuts some; read whole ones"
            )
        return source

    def whole_batches(self, num_examples: int) -> int:
        """Return how many of an epoch's examples are left where a last batch is dropped."""
        if not self.drop_remainder or self.batch is None:
            return num_examples
        return num_examples // self.batch * self.batch

    @property
    def streams(self) -> bool:
        """Whether shards are streamed (`IterableDataset`): as configured, else with a buffer."""
        return self.buffer is not None if self.streaming is None else self.streaming
