"""Several inputs that are read in turn, and what two of them share; `zip`, one element of each.

Counts are played many elements at a time, each input on its own. That is exact as long as no input
ends before it is known, and as long as no two inputs change one thing by turns: the seed generator
of a shuffle, or the memory of a cache, of a dataset object that is used twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from math import prod

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.iteration.cache import Cache
from shardctl.iteration.iteration import (
    EVERYTHING,
    INFINITE,
    UNKNOWN,
    Axis,
    Iteration,
    Lasting,
    Node,
    lasting_below,
)
from shardctl.iteration.repeat import Concatenate, Repeat, in_order
from shardctl.iteration.shuffle import Shuffle
from shardctl.iteration.strided import Strided


def certain_left(node: Node, iteration: Iteration) -> int:
    """Return how many elements an iteration has left for certain, without reading any.

    >>> from shardctl.iteration.iteration import Source
    >>> node = Source(range(5))
    >>> iteration = node.iterate()
    >>> iteration.pull(2), certain_left(node, iteration)
    (2, 3)
    """
    if iteration.ended:
        return 0
    if node.never_ends:
        return EVERYTHING
    known = getattr(iteration, "certain_left", None)  # of a mixture, which has no cardinality
    if known is not None:
        return int(known)
    return node.num_elements - iteration.pulled if node.is_counted else 0


class Sharing:
    """What several inputs share that reading them changes, by the order in which they are read.

    by_turns: two of them at least change such a thing while they are read, so that every single
        element has to be played in its turn.

    >>> from shardctl.iteration.iteration import Source
    >>> cache = Cache(Repeat(Source(range(3)), 2))
    >>> Sharing((cache, cache)).by_turns  # what it holds is the same, whoever fills it
    False
    """

    def __init__(self, inputs: Sequence[Node]) -> None:
        below = [{id(one): one for one in lasting_below(node)} for node in inputs]
        everything = {key: one for each in below for key, one in each.items()}
        self.by_turns = False
        self._uncertain: list[Lasting] = []
        for key, lasting in everything.items():
            if sum(key in each for each in below) < 2:
                continue
            ways = [_ways(node, lasting) for node in inputs]
            changing = [way for way in ways if way is not None]
            if len(changing) > 1:
                self.by_turns = True
                if "threads" in changing:
                    self._uncertain.append(lasting)

    def iterators_made(self) -> None:
        """Say that the iterators of all inputs are there: what threads change now is unknown."""
        for lasting in self._uncertain:
            lasting.make_uncertain()


def _ways(node: Node, lasting: Lasting, *, threads: bool = False, late: bool = False) -> str | None:
    """Return how reading a node changes what lasts: "turns", "threads", None where it does not.

    Not where it changes only as iterators are made: all of them are made at once, in their order.

    threads: a stage above reads ahead. late: one above makes iterators while it is read.
    """
    threads = threads or (isinstance(node, Strided) and node.reads_ahead != 0)
    found: set[str | None] = set()
    changes = late or isinstance(node, Cache) or _goes_on_taking(node)
    if changes and any(one is lasting for one in node.lasting):
        found.add("threads" if threads else "turns")
    for index, below in enumerate(node.inputs):
        is_late = isinstance(node, Repeat | Shuffle) or (
            isinstance(node, Concatenate) and index > 0
        )
        found.add(_ways(below, lasting, threads=threads, late=late or is_late))
    return "threads" if "threads" in found else "turns" if "turns" in found else None


def _goes_on_taking(node: Node) -> bool:
    """Whether an iterator takes seeds not only as it is made."""
    return node.count != 1 if isinstance(node, Shuffle) else node.is_infinite


class Zip(Node):
    """`tf.data.Dataset.zip(inputs)`, as long as the shortest.

    Its iterator makes those of all inputs at once. When one says the end it asks the others once
    more, so that caches of the same length fill (tensorflow/core/kernels/data/zip_dataset_op.cc).

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Zip((Source(range(5)), Source(range(10, 13)))).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([2, 0])).tolist()
    (3, [2, 12, 0, 10])
    """

    def __init__(self, inputs: Sequence[Node]) -> None:
        self.inputs = tuple(inputs)
        # The parts of a tuple stay together in what groups tuples, as if they were a batch.
        sizes = [prod(axis.size for axis in node.shape) for node in inputs]
        is_exact = all(axis.is_exact for node in inputs for axis in node.shape)
        self.shape = (Axis(sum(sizes), is_exact, is_batch=False),)
        self.sharing = Sharing(self.inputs)

    @property
    def is_infinite(self) -> bool:
        return all(node.is_infinite for node in self.inputs)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        if UNKNOWN in counts:
            return UNKNOWN
        return min((count for count in counts if count != INFINITE), default=INFINITE)

    def iterate(self) -> ZipIteration:
        return ZipIteration(self)


class ZipIteration(Iteration):
    """An iterator: one of each input, each read as far as TensorFlow has read it."""

    def __init__(self, node: Zip) -> None:
        super().__init__()
        self._node = node
        self.sources = [one.iterate() for one in node.inputs]
        node.sharing.iterators_made()

    def _advance(self, count: int) -> int:
        done, has_ended = 0, False
        while done < count and not has_ended:
            got, has_ended = self._read(count - done)
            done += got
        if has_ended:
            self.abandon()
        return done

    def _read(self, wanted: int) -> tuple[int, bool]:
        """Read tuples, many where only one input may end; return how many, and whether one did."""
        pairs = list(zip(self._node.inputs, self.sources, strict=True))
        left = [certain_left(node, source) for node, source in pairs]
        first, *others = np.argsort(left, kind="stable").tolist()
        many = min([left[number] for number in others], default=wanted)
        if self._node.sharing.by_turns or many < 2:
            got = [source.pull(1) for source in self.sources]
            return min(got), not all(got)
        many = min(many, wanted)
        done = self.sources[first].pull(many)
        for number in others:
            self.sources[number].pull(done)
            if done < many:
                self.sources[number].pull(1)
        return done, done < many

    @property
    def inputs(self) -> Sequence[Iteration]:
        return self.sources

    @property
    def width(self) -> int | None:
        widths = [source.width for source in self.sources]
        return None if None in widths else sum(width or 0 for width in widths)

    def widths(self, elements: Int64s) -> Int64s:
        return reduce(np.add, (source.widths(elements) for source in self.sources))

    def examples(self, elements: Int64s) -> Int64s:
        widths = [source.widths(elements) for source in self.sources]
        *starts, total = accumulate(widths, initial=np.zeros(len(elements), np.int64))
        firsts = np.cumsum(total) - total
        found = np.empty(int(total.sum()), np.int64)
        for source, width, start in zip(self.sources, widths, starts, strict=True):
            shifts = firsts + start - (np.cumsum(width) - width)
            found[np.repeat(shifts, width) + np.arange(width.sum())] = source.examples(elements)
        return found

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        queries, elements = zip(*(one.elements_of(codes) for one in self.sources), strict=True)
        query, element = np.concatenate(queries), np.concatenate(elements)
        kept = np.flatnonzero(element < self.pulled)
        return in_order(query[kept], element[kept])
