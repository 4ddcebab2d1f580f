"""Stages whose elements the data decides, where a file has kept what they do to each example.

`filter`, `take_while`, `flat_map` (and `unbatch` of what no batch made), `group_by_window`, and
packing: all of them make elements of the examples in the order in which these come, by a number an
example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from shardctl.base.arrays import Int64s, ranges
from shardctl.errors import UsageError
from shardctl.iteration import iteration as readings
from shardctl.iteration.iteration import (
    PIECE,
    UNKNOWN,
    Axis,
    ByPlace,
    Ending,
    Node,
    SourceIteration,
)

By = Literal["passes", "until", "count", "key", "lengths"]
_MOST_IN_VAIN = 1 << 20  # examples of an endless input of which nothing comes


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a stage does to each example.

    by: what the values are: whether it passes, or the end comes before it; the number of elements
        that it makes; the key of its group; the tokens of each of its features (a row an example).
    values: those of examples by their codes; a scan refuses examples that it has not seen.
    most: the largest number of elements that an example makes.
    windows: of a key how many examples are a group, and of how many of them its batches are; these
        are negative where a remainder is dropped.
    sizes: the tokens that a packed row holds, of each feature.
    """

    by: By = "passes"
    values: Callable[[Int64s], Int64s]
    most: int = 1
    windows: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()


class Regrouped(Node):
    """The elements that a stage makes of examples by what is kept of them.

    >>> from shardctl.iteration.iteration import Source
    >>> odd = Kept(by="key", values=lambda codes: codes % 2, windows={0: (2, 2), 1: (3, 3)})
    >>> iteration = Regrouped(Source(range(7)), odd).iterate()
    >>> iteration.pull(9), iteration.examples(np.arange(3)).tolist()
    (3, [0, 2, 1, 3, 5, 4, 6])

    Raises:
        UsageError: elements hold several examples, where they are not packed.
    """

    def __init__(self, child: Node, kept: Kept, name: str = "") -> None:
        self.inputs, self.kept, self.name = (child,), kept, name
        packs = kept.by == "lengths"
        if packs is not bool(child.shape) or len(child.shape) > 1:
            raise UsageError(
                f"{name}: its scan is of a window of examples, which a batch before it makes"
                if packs
                else f"{name}: its file is of single examples, and here an element holds several "
                "(a batch, a tuple of zip): put the stage before them"
            )
        most = max((abs(size) for _, size in kept.windows.values()), default=1)
        self.shape = {
            "key": (Axis(most, False),),
            "lengths": (Axis(packs and child.shape[0].size, False, False),),
        }.get(kept.by, ())

    @property
    def is_infinite(self) -> bool:
        # Where an example fails, what repeats without end comes to it.
        return self.child.is_infinite and not (self.kept.by == "until" and not self.kept.most)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        # The kernels of these stages define no cardinality.
        return UNKNOWN

    def iterate(self) -> RegroupedIteration:
        return RegroupedIteration(self)


class RegroupedIteration(ByPlace, Ending):
    """An iterator; `_flat` are the places of examples in its input, one element after the other."""

    def __init__(self, node: Regrouped) -> None:
        super().__init__(node.child.iterate())
        self._node = node
        self._flat, self._starts = _Growing(), _Growing(0)
        self._pending = np.empty((0, 2), np.int64)  # place and key of what waits for its group
        self._is_done = False
        self._read = 0  # examples of the input

    def _advance(self, count: int) -> int:
        node, kept, wanted = self._node, self._node.kept, self.pulled + count
        in_vain = 0
        while not self._is_done and (missing := wanted - self._made) > 0:
            # No more than so many are asked for, so that none is read too early: where all
            # iterators are alike it makes no difference.
            asked = 1 if kept.by == "until" else -(-missing // self._most)
            if node.is_fixed:
                asked = max(asked, PIECE)
            if node.child.is_infinite or kept.by == "until":
                asked = min(asked, PIECE)
            before = self._made
            got = self._child.pull(asked)
            self._is_done = got < asked
            self._take(got)
            in_vain = in_vain + got if before == self._made else 0
            if node.is_infinite and in_vain > _MOST_IN_VAIN:
                raise UsageError(
                    f"{node.name}: {in_vain:,} examples make no element, and TensorFlow would read "
                    "on indefinitely"
                )
        return min(wanted, self._made) - self.pulled

    @property
    def _most(self) -> int:
        """The largest number of elements that come with one of the input."""
        kept = self._node.kept
        if kept.by == "lengths":
            return self._node.child.shape[0].size
        most = [-(-size // abs(batch)) for size, batch in kept.windows.values()]
        return max([kept.most, 1, *most])

    @property
    def _made(self) -> int:
        return self._starts.size - 1 if self._node.shape else self._flat.size

    def _take(self, got: int) -> None:
        """Make elements of what the input has yielded."""
        kept, child, first = self._node.kept, self._child, self._read
        stop = child.num_examples if self._node.child.shape else child.pulled
        self._read = stop
        places = np.arange(first, stop)
        # The rule needs codes, also where the answer is to be numbers of readings.
        with readings.counted(on=False):
            values = kept.values(child.codes_at(places)) if len(places) else places
        if kept.by == "passes":
            self._add(places[values != 0])
        elif kept.by == "count":
            self._add(np.repeat(places, values))
        elif kept.by == "until":
            fails = np.flatnonzero(values == 0)
            self._add(places[: fails[0]] if len(fails) else places)
            if len(fails):
                self._is_done = True
                self._end()
                self._child.abandon()
        elif kept.by == "key":
            self._group(places, values)
        else:
            for window in np.split(np.arange(stop - first), self._windows(got)):
                if len(window):
                    self._add(places[window], packed(values[window], kept.sizes))

    def _windows(self, got: int) -> Int64s:
        """Return where the latest windows of the input end, but the last, among their examples."""
        ends: Int64s = np.cumsum(
            self._child.widths(np.arange(self._child.pulled - got, self._child.pulled))
        )
        return ends[:-1]

    def _group(self, places: Int64s, keys: Int64s) -> None:
        """Yield the groups that are full, and at the end the others.

        A group is yielded with the element that fills it, the rest in the order of their keys
        (tensorflow/core/kernels/data/experimental/group_by_window_dataset_op.cc: `groups_` is a
        map).
        """
        windows = self._node.kept.windows
        held = np.concatenate([self._pending, np.stack([places, keys], axis=1)])
        distinct, which = np.unique(held[:, 1], return_inverse=True)
        order = np.argsort(which, kind="stable")  # by key, and in the order in which they came
        counts = np.bincount(which, minlength=len(distinct))
        sizes = np.array([windows[key][0] for key in distinct.tolist()], np.int64)[which[order]]
        numbers = ranges(np.zeros_like(counts), counts) // np.maximum(sizes, 1)
        is_full = (numbers + 1) * sizes <= counts[which[order]]
        full = order[is_full]
        # Groups are runs of `full`; each comes with its last element.
        group = np.stack([which[full], numbers[is_full]])
        starts = np.flatnonzero(np.any(np.diff(group, prepend=-1) != 0, axis=0))
        found = np.split(full, starts[1:]) if len(full) else []
        found.sort(key=lambda one: int(one[-1]))
        rest = order[~is_full]
        if self._is_done:
            found += np.split(rest, np.flatnonzero(np.diff(which[rest])) + 1)
            rest = rest[:0]
        self._pending = held[np.sort(rest)]
        for one in found:
            if len(one):
                size = windows[int(held[one[0], 1])][1]
                # Of a negative size the remainder is dropped.
                stop = len(one) // -size * -size if size < 0 else len(one)
                ends = [*range(abs(size), stop, abs(size)), stop] if stop else []
                self._add(held[one[:stop], 0], np.diff([0, *ends]))

    def _add(self, places: Int64s, widths: Int64s | None = None) -> None:
        """Note elements: so many of these places each, or one."""
        if widths is not None:
            self._starts.add(self._flat.size + np.cumsum(widths))
        self._flat.add(places)

    @property
    def width(self) -> int | None:
        return None if self._node.shape else 1

    def before(self, elements: Int64s) -> Int64s:
        # Where each element is an example, nothing more than `_flat` is kept.
        return self._starts.values[elements] if self._node.shape else elements

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        if not self._node.shape:
            return super().at(places)
        elements = np.searchsorted(self._starts.values, places, "right") - 1
        return elements, places - self._starts.values[elements]

    def codes_at(self, places: Int64s) -> Int64s:
        return self._child.codes_at(self._flat.values[places])

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        query, inputs = self._child.places_of(codes)
        flat = SourceIteration(self._flat.values)
        flat.pull(self.num_examples)
        which, places = flat.elements_of(inputs)
        return query[which], places


def packed(lengths: Int64s, sizes: Sequence[int]) -> Int64s:
    """Return how many examples of a window each packed row holds.

    A row takes examples in their order as long as each feature of the next one fits, and no row
    has examples of two windows: the packer of Tensor2Tensor, which seqio, T5, Flax and MaxText use.

    >>> packed(np.array([[3], [4], [2], [9]]), [9]).tolist()
    [3, 1]
    """
    sums = np.concatenate([np.zeros((1, len(sizes)), np.int64), np.cumsum(lengths, axis=0)])
    ends = [0]
    while ends[-1] < len(lengths):
        at = ends[-1]
        fit = (
            int(np.searchsorted(column, column[at] + size, "right")) - 1
            for column, size in zip(sums.T, sizes, strict=True)
        )
        # An example alone in its row may be longer than that.
        ends.append(max(at + 1, min(fit)))
    return np.diff(ends)


class _Growing:
    """A list of numbers as an array that grows."""

    def __init__(self, *first: int) -> None:
        self._kept = np.array(first, np.int64)
        self.size = len(first)

    @property
    def values(self) -> Int64s:
        return self._kept[: self.size]

    def add(self, more: Any) -> None:
        stop = self.size + len(more)
        if stop > len(self._kept):
            self._kept = np.concatenate([self.values, np.empty(max(stop, 1024), np.int64)])
        self._kept[self.size : stop] = more
        self.size = stop
