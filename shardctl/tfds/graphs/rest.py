"""What a dataset object hands out from some element on, made by its own maps and batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.tfds.graphs.at_exit import end_iterators_at_exit
from shardctl.tfds.graphs.edited import EditedGraph
from shardctl.tfds.graphs.gather import PIECE_SIZE, Source
from shardctl.tfds.graphs.predicted import Elements
from shardctl.tfds.imports import tensorflow, without_autograph

# Examples whose order is looked up, and which are read, at a time.
WINDOW_SIZE = 1 << 13


@dataclass(kw_only=True, eq=False)
class Rest:
    """The elements of a pass from `start` on, each made of the predicted examples.

    window: examples at a time; a shuffle scatters examples over its buffer, so a window of that
        size reads each file about once.
    """

    edited: EditedGraph
    sources: Sequence[Source]
    elements: Elements
    start: int = 0
    window: int = WINDOW_SIZE
    _lock: Any = field(init=False, default_factory=threading.RLock)
    _latest: tuple[tuple[int, int], tuple[Int64s, Int64s]] | None = field(init=False, default=None)

    def dataset(self) -> Any:
        """Return the `tf.data.Dataset`; it may be iterated again, from `start`."""
        end_iterators_at_exit()
        tf = tensorflow()
        bounds = tf.TensorSpec([2], tf.int64)
        windows = tf.data.Dataset.from_generator(self.windows, output_signature=bounds)
        return windows.flat_map(without_autograph(self._made))

    def windows(self) -> Iterator[Int64s]:
        """Yield [start, stop) of elements that are formed in one go.

        A batch that is not full ends its window, since batches are formed anew in each.
        """
        full = self.edited.full_widths
        size = max(1, self.window // int(full.max(initial=1)))
        at = self.start
        while True:
            with self._lock:
                stop = self.elements.up_to(at + size)
                if stop <= at:
                    return
                leaves, _, widths = self.elements.examples(at, stop)
            firsts = np.cumsum(widths) - widths
            here = full[leaves[firsts]] if len(leaves) else widths
            cuts = np.flatnonzero(widths != here) + 1
            for begin, end in zip((0, *cuts.tolist()), (*cuts.tolist(), stop - at), strict=True):
                if begin < end:
                    yield np.array([at + begin, at + end], np.int64)
            at = stop

    def _made(self, bounds: Any) -> Any:
        tf = tensorflow()
        leaves = [self._leaf(number, bounds) for number in range(len(self.sources))]
        choices = [
            tf.data.Dataset.from_generator(
                lambda start, stop, merged=merged: self._choices(merged, int(start), int(stop)),
                output_signature=tf.TensorSpec([], tf.int64),
                args=(bounds[0], bounds[1]),
            )
            for merged in self.edited.merges
        ]
        made = self.edited.applied(leaves, choices)
        return made.apply(tf.data.experimental.assert_cardinality(bounds[1] - bounds[0]))

    def _leaf(self, number: int, bounds: Any) -> Any:
        tf = tensorflow()
        source = self.sources[number]
        of_source = self.edited.graph.root.leaves[number].source
        in_pieces = all(t.dtype == tf.string and t.shape.rank == 0 for t in source.types)

        def elements(start: Any, stop: Any) -> Iterator[Any]:
            with self._lock:  # never while something is yielded: another thread asks for the next
                leaves, codes = self._examples(int(start), int(stop))
                found = source.elements(codes[leaves == of_source])
            if not in_pieces:
                yield from found
                return
            for first in range(0, len(found), PIECE_SIZE):
                yield _columns(found[first : first + PIECE_SIZE])

        types = source.types
        if in_pieces:
            types = tuple(tf.TensorSpec([None], t.dtype) for t in types)
        found = tf.data.Dataset.from_generator(
            elements, output_signature=types, args=(bounds[0], bounds[1])
        )
        return found.unbatch() if in_pieces else found

    def _choices(self, merged: Any, start: int, stop: int) -> Iterator[int]:
        with self._lock:
            leaves, _ = self._examples(start, stop)
        yield from self.edited.choices(merged, leaves).tolist()

    def _examples(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        with self._lock:
            if self._latest is None or self._latest[0] != (start, stop):
                leaves, codes, _ = self.elements.examples(start, stop)
                self._latest = (start, stop), (leaves, codes)
            return self._latest[1]


def _columns(rows: list[Any]) -> tuple[Any, ...]:
    return tuple(np.array(column, object) for column in zip(*rows, strict=True))
