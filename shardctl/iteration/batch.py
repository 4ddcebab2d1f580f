"""`batch` and `unbatch`: examples put together into elements, and taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from shardctl.base.arrays import Int64s, ranges
from shardctl.errors import UsageError
from shardctl.iteration.iteration import UNKNOWN, Axis, ByPlace, Derived, InPlace, Iteration, Node
from shardctl.iteration.repeat import in_order
from shardctl.stages.stages import Window


class Batch(Node):
    """`ds.batch(size, drop_remainder)`.

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Batch(Source(range(5)), 2).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([2, 0])).tolist()
    (3, [4, 0, 1])
    """

    def __init__(self, child: Node, size: int, *, drop_remainder: bool = False) -> None:
        self.inputs = (child,)
        self.size, self.drop_remainder = size, drop_remainder
        self.shape = (Axis(size, drop_remainder), *child.shape)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        (count,) = counts
        if count < 0:
            return count
        # Negative counts are tf.data's INFINITE (-1) and UNKNOWN (-2), which a batch passes on.
        return count // self.size if self.drop_remainder else -(-count // self.size)

    def iterate(self) -> BatchIteration:
        return BatchIteration(self)


class BatchIteration(InPlace):
    """An iterator over batches; the examples are those of its input, in their places."""

    def __init__(self, node: Batch) -> None:
        super().__init__(node.child.iterate())
        self._node = node

    def _advance(self, count: int) -> int:
        size = self._node.size
        # Also with drop_remainder the rest is read before it is dropped, as tf.data does.
        self._child.pull(count * size)
        total = self._child.pulled // size
        if self._child.pulled % size and not self._node.drop_remainder:
            total += 1
        return total - self.pulled

    def _rows(self, elements: Int64s) -> Int64s:
        """Return the number of elements of the input in each batch."""
        return np.minimum(self._child.pulled - elements * self._node.size, self._node.size)

    @property
    def width(self) -> int | None:
        width = self._child.width
        # Elements have one width only if the last batch is full, or is the only one.
        has_partial = self.pulled * self._node.size > self._child.pulled
        if has_partial and self.pulled > 1:
            return None
        rows = self._child.pulled if has_partial else self._node.size
        return None if width is None else width * rows

    def widths(self, elements: Int64s) -> Int64s:
        width = self._child.width
        if width is not None:
            return self._rows(elements) * width
        return self.before(elements + 1) - self.before(elements)

    def before(self, elements: Int64s) -> Int64s:
        return self._child.before(np.minimum(elements * self._node.size, self._child.pulled))

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        # A batch holds its examples in their order, so positions are those of the input.
        inputs, _ = self._child.at(places)
        elements = inputs // self._node.size
        return elements, places - self.before(elements)

    def examples(self, elements: Int64s) -> Int64s:
        return self._child.examples(ranges(elements * self._node.size, self._rows(elements)))

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        return inputs // self._node.size

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        size = self._node.size
        yield from self._child.chunks(start * size, min(stop * size, self._child.pulled))


class Windows(Node):
    """`ds.window(..).flat_map(lambda w: w.batch(size))`: batches of neighbours, which may overlap.

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Windows(Source(range(7)), Window(size=2, shift=3, stride=2)).iterate()
    >>> iteration.pull(9), iteration.examples(np.arange(3)).tolist()
    (3, [0, 2, 3, 5, 6])
    """

    def __init__(self, child: Node, window: Window) -> None:
        self.inputs, self.window = (child,), window
        self.shape = (Axis(window.size, window.drop_remainder), *child.shape)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        (count,) = counts
        return count if count < 0 else self.window.whole_length(count)

    @property
    def cardinality(self) -> int:
        return UNKNOWN  # as of any flat_map

    def iterate(self) -> WindowIteration:
        return WindowIteration(self.child.iterate(), self.window)


class WindowIteration(Derived):
    """An iterator over windows: every so-manyth element of the input begins one."""

    def __init__(self, child: Iteration, window: Window) -> None:
        super().__init__(child)
        self._window = window
        self._shift = window.shift or window.size

    def _advance(self, count: int) -> int:
        wanted = self.pulled + count
        # A window is yielded when its last element is read; what follows is not asked for yet.
        self._child.pull((wanted - 1) * self._shift + self._window.span - self._child.pulled)
        return min(wanted, self._window.whole_length(self._child.pulled)) - self.pulled

    def _rows(self, elements: Int64s) -> Int64s:
        """Return the number of elements of the input in each window."""
        left = self._child.pulled - elements * self._shift
        return np.minimum(-(-left // self._window.stride), self._window.size)

    def _inputs_of(self, elements: Int64s) -> Int64s:
        return ranges(elements * self._shift, self._rows(elements), self._window.stride)

    @property
    def width(self) -> int | None:
        width, last = self._child.width, np.array([max(self.pulled - 1, 0)])
        # Only windows at the end have fewer elements.
        is_full = not self.pulled or self._rows(last)[0] == self._window.size
        return None if width is None or not is_full else width * self._window.size

    def widths(self, elements: Int64s) -> Int64s:
        rows, width = self._rows(elements), self._child.width
        if width is not None:
            return rows * width
        starts = np.cumsum(rows) - rows
        return np.add.reduceat(self._child.widths(self._inputs_of(elements)), starts)

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        query, inputs = self._child.elements_of(codes)
        places = np.arange(self._window.size) * self._window.stride
        # int64[r, size]: the window in which each element would be at each place, if there is one.
        windows, rest = np.divmod(inputs[:, None] - places, self._shift)
        found, _ = np.nonzero((rest == 0) & (windows >= 0) & (windows < self.pulled))
        kept = windows[(rest == 0) & (windows >= 0) & (windows < self.pulled)]
        return in_order(query[found], kept)


class Unbatch(Node):
    """`ds.unbatch()`: the rows of each batch, one after the other.

    Raises:
        UsageError: the elements are no batches, or batches of batches that may differ in size.
    """

    def __init__(self, child: Node) -> None:
        self.inputs = (child,)
        if not child.shape or not child.shape[0].is_batch:
            raise UsageError("unbatch of elements that are no batches: put it behind a batch")
        self.rows, self.shape = child.shape[0], child.shape[1:]
        if not all(axis.is_exact for axis in self.shape):
            raise UsageError(
                "unbatch of batches of batches that may differ in size: give the inner batch "
                "drop_remainder=True"
            )
        # Examples in a row: all axes inside the batch are exact, so the product is.
        self.width = prod(axis.size for axis in self.shape)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        (count,) = counts
        if count < 0:
            return count
        return count * self.rows.size if self.rows.is_exact else UNKNOWN

    def iterate(self) -> UnbatchIteration:
        return UnbatchIteration(self)


class UnbatchIteration(ByPlace, InPlace):
    """An iterator over rows: so many examples each, in the places that they have in the batches."""

    def __init__(self, node: Unbatch) -> None:
        super().__init__(node.child.iterate())
        self._node = node

    def _advance(self, count: int) -> int:
        wanted = self.pulled + count
        while (missing := wanted - self._available) > 0:
            # No batch has more rows than `rows.size`, so that none is read too early.
            needed = -(-missing // self._node.rows.size)
            # The input has ended.
            if self._child.pull(needed) < needed:
                break
        return min(wanted, self._available) - self.pulled

    @property
    def _available(self) -> int:
        # Rows that the batches read so far hold.
        return self._child.num_examples // self._node.width

    @property
    def width(self) -> int:
        return self._node.width

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        yield from self._child.codes_between(start * self.width, stop * self.width)
