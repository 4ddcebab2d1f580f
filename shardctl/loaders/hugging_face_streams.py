"""What an `IterableDataset` streams: a node for each iterable that the library makes of a chain.

Source: datasets/iterable_dataset.py, whose classes the nodes are called after. A node is never
changed: a shuffle, an epoch, a host or a worker makes another one of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, dataclass_transform

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.loaders.hugging_face_eras import Era
from shardctl.loaders.loader_sequence import even_share, in_turn
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER

Rng = np.random.Generator
NONE = np.empty(0, np.int64)
T = TypeVar("T")
_SEEDS = 1 << 63  # seeds are drawn below


def indices(row: Int64s | range) -> Int64s:
    """Return a row of indices as an array."""
    return np.arange(row.start, row.stop, row.step) if isinstance(row, range) else row


def _part_of(several: Sequence[T], index: int, count: int, *, contiguous: bool) -> tuple[T, ...]:
    share = even_share(len(several), index, count) if contiguous else slice(index, None, count)
    return tuple(several[share.start : share.stop : share.step])


def _permuted(several: Sequence[T], rng: Rng) -> tuple[T, ...]:
    return tuple(several[number] for number in deepcopy(rng).permutation(len(several)).tolist())


class Frozen(Exception):  # noqa: N818  # as the library's own, `DataSourcesShufflingDisallowed`
    """`skip` or `take` keep the order of the shards before them."""


class Elements:
    """The batches that `batch` makes: each is an element with a number from `first` on."""

    def __init__(self, first: int) -> None:
        self._first, self._batches = first, list[Int64s]()

    def cut(self, elements: Int64s, size: int, *, drops: bool) -> Int64s:
        """Return the elements that hold `size` of others each, the last one what is left."""
        stop = len(elements) // size * size if drops else len(elements)
        rows = [self.examples(elements[at : at + size])[0] for at in range(0, stop, size)]
        self._batches += rows
        last = self._first + len(self._batches)
        return np.arange(last - len(rows), last)

    def examples(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        """Return the examples of elements, and how many each has."""
        if not self.has_batches(elements):
            return elements, np.ones(len(elements), np.int64)
        rows = [self._batches[one - self._first] for one in elements.tolist()]
        return np.concatenate(rows), np.array([len(row) for row in rows])

    def has_batches(self, elements: Int64s) -> bool:
        """Whether elements are batches; all of them are alike."""
        return bool(len(elements) and elements[0] >= self._first)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """An iterable of the library; its methods are those of the library, by shorter names.

    era: of the version. inputs: what it reads.
    """

    era: Era
    inputs: tuple[Node, ...] = ()

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, eq=False)(cls)

    @property
    def num_shards(self) -> int:
        """`num_shards`: among how many hosts or workers it can be shared."""
        return self.inputs[0].num_shards

    @property
    def has_tables(self) -> bool:
        """Whether it can be read table by table, `iter_arrow`."""
        return all(one.has_tables for one in self.inputs)

    @property
    def within(self) -> Iterator[Node]:
        """It and all that it reads."""
        yield self
        for one in self.inputs:
            yield from one.within

    def each(self, change: Callable[[Node], Node], **more: Any) -> Self:
        """Return it with each of its inputs changed."""
        return replace(self, inputs=tuple(map(change, self.inputs)), **more)

    def shard(self, count: int, index: int, *, contiguous: bool) -> Node:
        """`shard_data_sources`: return one part of `count`."""
        return self.each(lambda one: one.shard(count, index, contiguous=contiguous))

    def parts(self, count: int) -> tuple[Node, ...]:
        """Return it in so many parts."""
        return tuple(self.shard(count, index, contiguous=True) for index in range(count))

    def shuffled(self, rng: Rng) -> Node:
        """`shuffle_data_sources`: return it with its shards shuffled by a copy of a generator."""
        return self.each(lambda one: one.shuffled(rng))

    def shifted(self, value: int) -> Node:
        """`shift_ex_examples_rngs`: return it with new seeds, for an epoch or a worker."""
        rng: Rng | None = getattr(self, "rng", None)
        drawn = {} if rng is None else {"rng": _shifted(rng, value, self.era)}
        return self.each(lambda one: one.shifted(value), **drawn)

    def count(self) -> int:
        """Return how many elements it yields."""
        return len(self.read())

    def read(self, most: int | None = None, *, tables: bool | None = None) -> Int64s:
        """Return its elements, the first `most` of them.

        tables: whether it is read table by table, None where what reads it takes these if it can.
        """
        return self._read(most, self.has_tables if tables is None else tables)[:most]

    def _read(self, most: int | None, tables: bool) -> Int64s:
        """Return elements, at least `most` where there are so many."""
        return self.inputs[0].read(most, tables=tables)


class Shards(Node):
    """`ExamplesIterable`, or `ArrowExamplesIterable` where it has tables: shard after shard."""

    rows: tuple[Int64s | range, ...]
    of_tables: bool = False
    num_shards = property(lambda self: len(self.rows))
    has_tables = property(lambda self: self.of_tables)

    def shard(self, count: int, index: int, *, contiguous: bool) -> Node:
        """Return one part of its shards."""
        n, rows = len(self.rows), _part_of(self.rows, index, count, contiguous=contiguous)
        if n and not rows:
            raise UsageError(
                f"datasets raises IndexError: no part {index} of {count} of {n} shards"
            )
        return replace(self, rows=rows)

    def shuffled(self, rng: Rng) -> Node:
        """Return it with its shards in another order."""
        return replace(self, rows=_permuted(self.rows, rng))

    def count(self) -> int:
        """Return the number of its examples."""
        return sum(map(len, self.rows))

    def _read(self, most: int | None, tables: bool) -> Int64s:
        return np.concatenate([NONE, *map(indices, self.rows)])


class Mapped(Node):
    """`MappedExamplesIterable`: rows, of tables too."""

    has_tables = property(lambda self: False)

    def count(self) -> int:
        """Return how many its input has."""
        return self.inputs[0].count()

    def _read(self, most: int | None, tables: bool) -> Int64s:
        return self.inputs[0].read(most)


class Batched(Mapped):
    """A map that makes an element of `size`."""

    elements: Elements
    size: int
    drops: bool
    count = Node.count

    def _read(self, most: int | None, tables: bool) -> Int64s:
        read = self.inputs[0].read(None if most is None else most * self.size)
        return self.elements.cut(read, self.size, drops=self.drops)


class Filtered(Mapped):
    """`FilteredExamplesIterable`, of what `passes` by a file."""

    elements: Elements
    passes: Callable[[Int64s], Int64s]
    count = Node.count

    def _read(self, most: int | None, tables: bool) -> Int64s:
        asked = most and most + 1
        while True:
            read = self.inputs[0].read(asked)
            if self.elements.has_batches(read):
                raise UsageError("filter: its file is of single examples; put it before batch")
            found: Int64s = read[self.passes(read) != 0]
            if asked is None or len(read) < asked or len(found) >= asked - 1:
                return found
            if (asked := 2 * asked) > MAX_BUFFER:
                raise UsageError(f"filter: too few of {asked:,} examples of what has no end pass")


class Strided(Node):
    """`StepExamplesIterable`: each `step`-th from `offset` on."""

    step: int
    offset: int

    def count(self) -> int:
        """Return how many of its input are left."""
        return len(range(self.offset, self.inputs[0].count(), self.step))

    def _read(self, most: int | None, tables: bool) -> Int64s:
        read = self.inputs[0].read(None if most is None else most * self.step, tables=tables)
        return read[self.offset :: self.step]


class Cut(Node):
    """`SkipExamplesIterable` or `TakeExamplesIterable`: without the first `n`, or only these.

    takes: whether it is `take`. splits: whether hosts and workers share the number `n`.
    """

    n: int
    takes: bool
    splits: bool

    def shard(self, count: int, index: int, *, contiguous: bool) -> Node:
        """Return one part, which skips or takes its part of the number."""
        n, is_new = self.n, self.era.interleave == "apart"
        if not (is_new or self.splits or self.takes):
            return self  # the library forgets to share it
        if self.splits:
            # Now only as many parts as there are shards get any.
            parts = min(count, self.num_shards) if is_new else count
            n = len(even_share(n, index, parts)) if index < parts else 0
        return self.each(lambda one: one.shard(count, index, contiguous=contiguous), n=n)

    def shuffled(self, rng: Rng) -> Node:
        """Return that it keeps the order of what is before it."""
        if self.era.interleave == "never":
            return self
        raise Frozen

    def _read(self, most: int | None, tables: bool) -> Int64s:
        more = 0 if self.takes else self.n
        asked = None if most is None else most + more
        if self.takes:
            asked = self.n if asked is None else min(asked, self.n)
        return self.inputs[0].read(asked, tables=tables)[more:]


class Repeated(Node):
    """`RepeatExamplesIterable`: `times` times, None without an end."""

    times: int | None

    def _read(self, most: int | None, tables: bool) -> Int64s:
        read = self.inputs[0].read(most, tables=tables)
        times = self.times
        if most is not None and len(read):
            turns = -(-most // len(read))
            times = turns if times is None else min(times, turns)
        return np.tile(read, times or 0)


class Concatenated(Node):
    """`VerticallyConcatenatedMultiSourcesExamplesIterable`: one after the other."""

    num_shards = property(lambda self: sum(one.num_shards for one in self.inputs))

    def shard(self, count: int, index: int, *, contiguous: bool) -> Node:
        """Return one part of the shards of all."""
        return replace(self, inputs=_part_of(self._in_shards, index, count, contiguous=contiguous))

    def shuffled(self, rng: Rng) -> Node:
        """Return the shards of all in another order."""
        return replace(self, inputs=_permuted(self._in_shards, rng))

    @property
    def _in_shards(self) -> list[Node]:
        return [part for one in self.inputs for part in one.parts(one.num_shards)]

    def _read(self, most: int | None, tables: bool) -> Int64s:
        found, left = [NONE], most
        for one in self.inputs:
            found.append(one.read(left, tables=tables) if left != 0 else NONE)
            left = None if left is None else left - len(found[-1])
        return np.concatenate(found)


class Cycled(Node):
    """`CyclingMultiSourcesExamplesIterable`, with a generator `RandomlyCycling..`.

    strategy: `stopping_strategy`.
    """

    strategy: str
    rng: Rng | None = None
    probabilities: tuple[float, ...] | None = None
    num_shards = property(lambda self: min((one.num_shards for one in self.inputs), default=0))

    def shard(self, count: int, index: int, *, contiguous: bool) -> Node:
        """Return one part of each input, no more parts than there are."""
        count = min(count, self.num_shards)
        if index >= count:
            return replace(self, inputs=())
        return super().shard(count, index, contiguous=contiguous)

    def shuffled(self, rng: Rng) -> Node:
        """Return it with all inputs shuffled; what draws does so from this generator, too."""
        return self.each(lambda one: one.shuffled(rng), rng=self.rng and rng)

    def _read(self, most: int | None, tables: bool) -> Int64s:
        streams = [one.read(most, tables=tables) for one in self.inputs]
        sizes, rng = [len(stream) for stream in streams], deepcopy(self.rng)
        sources, places = taken_in_turn(sizes, most, self.strategy, rng, self.probabilities)
        return np.concatenate([NONE, *streams])[np.cumsum([0, *sizes])[sources] + places]


def taken_in_turn(
    sizes: Sequence[int],
    most: int | None,
    strategy: str,
    rng: Rng | None = None,
    probabilities: Sequence[float] | None = None,
) -> tuple[Int64s, Int64s]:
    """Return (which of several sources, which of its elements) of all that are taken in turn.

    Sources of `most` elements have no end that matters. An input is at its end with its last
    element, an empty one when its turn comes.

    >>> [found.tolist() for found in taken_in_turn([3, 1], None, "all_exhausted")]
    [[0, 1, 0, 1, 0], [0, 0, 1, 0, 2]]
    """
    if not sizes:
        return NONE, NONE
    again, lengths = strategy == "all_exhausted", np.array(sizes)
    ends = np.where(lengths == (-1 if most is None else most), MAX_BUFFER, np.maximum(lengths, 1))
    ended, last = (np.any, min) if strategy == "first_exhausted" else (np.all, max)
    counts, blocks, num_taken = np.zeros(len(sizes), np.int64), [NONE], 0
    each = min(int(ends.max()), 1000 if most is None else most + 1)
    # As many turns as it takes until the inputs that have to end did so.
    while not ended(counts >= ends) and (most is None or num_taken < most):
        block = np.tile(np.arange(len(sizes)), each)
        if rng is not None:
            # More at once the more there were; the numbers do not depend on how many.
            at_once = max(_DRAWN_AT_ONCE, int(counts.sum()))
            block = rng.choice(len(sizes), size=at_once, p=probabilities)
        blocks.append(block)
        counts += np.bincount(block, minlength=len(sizes))
        num_taken = int((counts if again else np.minimum(counts, lengths))[lengths > 0].sum())
        if counts.sum() > MAX_BUFFER:
            raise UsageError(f"interleave_datasets: no end within {counts.sum():,} turns")
    sources = np.concatenate(blocks)
    places, stops = np.empty_like(sources), []
    for number, size in enumerate(sizes):
        turns = np.flatnonzero(sources == number)
        places[turns] = np.arange(len(turns)) % (size if again and size else len(turns) + 1)
        stops.append(turns[ends[number] - 1] if len(turns) >= ends[number] else len(sources))
    there = np.flatnonzero(places < lengths[sources])
    there = there[there <= last(stops)]
    return sources[there], places[there]


class Shuffled(Node):
    """`BufferShuffledExamplesIterable`, and `InterleavedShardsExamplesIterable` before it.

    in_turn: how many shards fill the buffer in turn, 1 where they are read one after the other.
    """

    size: int
    in_turn: int = 1
    rng: Rng

    @property
    def _filling(self) -> tuple[Node, ...]:
        """What fills the buffer in turn."""
        parts = min(self.num_shards, self.in_turn)
        return self.inputs[0].parts(parts) if parts > 1 else self.inputs

    def count(self) -> int:
        """Return how many come of all that fills the buffer."""
        return sum(one.count() for one in self._filling)

    def shuffled(self, rng: Rng) -> Node:
        """Return it with its shards shuffled; before 4.6.0 the buffer drew from this, too."""
        own = self.rng if self.era.epochs_add_up else rng
        return self.each(lambda one: one.shuffled(rng), rng=own)

    def _read(self, most: int | None, tables: bool) -> Int64s:
        block = table_rows(self.size, self.in_turn) if tables and self.era.by_halves else 1
        # What comes last is mixed by what is not read, so some more is.
        asked = None if most is None else most + 3 * (self.size + block)
        stream, blocks = in_turn([one.read(asked, tables=tables) for one in self._filling], block)
        rng = deepcopy(self.rng)
        if not self.era.by_halves:
            return one_for_one(stream, self.size, rng)
        # Blocks of one row are the same as no blocks.
        return by_halves(stream, None if block == 1 else blocks, self.size, rng)


def table_rows(buffer: int, in_turn: int) -> int:
    """Return how many rows the tables have that fill a buffer, from 5.1.0 on."""
    return max(1, buffer // in_turn)


def _shifted(rng: Rng, value: int, era: Era) -> Rng:
    """Return the generator of an epoch, or of a worker."""
    if era.worker_seeds == "same":
        return rng
    if era.worker_seeds == "state":
        state: int = rng.bit_generator.state["state"]["state"]
        return np.random.default_rng(state + value)
    # `deepcopy`: the draw must not move the generator that the buffer uses.
    return np.random.default_rng(int(deepcopy(rng).integers(0, _SEEDS)) - value)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """An `IterableDataset`; a `Dataset` too, which is one shard that is read by index.

    strategy, rank, world_size: of `split_dataset_by_node`, 0 without it. rng: of the last shuffle;
    before 4.6.0 an epoch shuffles by it. num_in_turn: shards that fill the last buffer in turn.
    buffer: the size of that, 0 without one.
    """

    node: Node
    by_index: bool = False
    strategy: str = "auto"
    rank: int = 0
    world_size: int = 0
    rng: Rng | None = None
    num_in_turn: int = 1
    buffer: int = 0

    @property
    def row(self) -> Int64s | range:
        """The indices of the rows of a Dataset."""
        return self.node.rows[0] if isinstance(self.node, Shards) else self.node.read()

    def shuffle(self, rng: Rng, buffer: int, in_turn: int) -> Stream:
        """Return it shuffled."""
        node, era = self.node, self.node.era
        if era.epochs_add_up:
            try:
                node = node.shuffled(rng)
            except Frozen:
                in_turn = 1
        if era.interleave == "together" and in_turn > 1:
            parts = node.parts(min(node.num_shards, in_turn))
            node = Cycled(era=era, inputs=parts, strategy="all_exhausted_without_replacement")
        apart = in_turn if era.interleave == "apart" else 1
        node = Shuffled(era=era, inputs=(node,), size=buffer, in_turn=apart, rng=rng)
        return replace(self, node=node, rng=rng, buffer=buffer, num_in_turn=in_turn)

    def workers(self, epoch: int, count: int) -> list[Node | None]:
        """Return what each worker of this process reads of an epoch, None one without shards.

        count: of workers, 0 where the process itself reads.
        """
        if self.by_index:
            return [self.node]
        node = self._of_node(epoch)
        shards = node.num_shards
        if not count:
            return [node]
        read = min(count, shards)
        parts = (node.shard(count, number, contiguous=False) for number in range(read))
        found = [part.shifted(number) for number, part in enumerate(parts)]
        return [*found, *[None] * (count - read)]

    def shares_shards(self, node: Node | None = None) -> bool:
        """Whether hosts get shards of their own, not all examples by stride."""
        shards, count = (node or self.node).num_shards, self.world_size or 1
        if self.strategy == "shards" and shards < count:
            raise UsageError(
                f"strategy='shards', --host-by files: datasets refuses it for {shards} shards on "
                f"{count} hosts; 'auto', --host-by even, shares the examples"
            )
        return self.strategy == "shards" or (self.strategy == "auto" and shards % count == 0)

    def _of_node(self, epoch: int) -> Node:
        node, era = self.node, self.node.era
        if era.epochs_add_up and epoch:
            if era.interleave != "apart" and any(isinstance(one, Cut) for one in node.within):
                raise UsageError(
                    "skip and take in later epochs of a stream: known from datasets 5.1.0 on; "
                    "before, seeds add up or it raises; shuffle(.., set_epoch=False)"
                )
            with suppress(Frozen):
                node = node.shuffled(np.random.default_rng(epoch))
            node = node.shifted(epoch)
        elif self.rng is not None and not era.epochs_add_up:
            rng = self.rng
            if epoch:
                # A draw minus the epoch; Python's modulo keeps it in range.
                drawn = int(deepcopy(rng).integers(0, _SEEDS)) - epoch
                rng = np.random.default_rng(drawn % _SEEDS)
            node = node.shuffled(rng)
        if not self.world_size:
            return node
        if self.shares_shards(node):
            return node.shard(self.world_size, self.rank, contiguous=False)
        return Strided(era=era, inputs=(node,), step=self.world_size, offset=self.rank)


# The shuffle buffers of `IterableDataset`, and streams that are read in turn.

# Random numbers that the buffer draws at once: `_iter_random_indices(random_batch_size)`.
_DRAWN_AT_ONCE = 1000


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
