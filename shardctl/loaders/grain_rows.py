"""The elements of Grain's datasets in closed form: which examples each holds, and where one is.

A `MapDataset` has elements beyond its length: they are those of its next epochs, which shuffles mix
with other seeds. What is never asked for is never made, so a row of any length costs the same.

Sources: grain/_src/python/dataset/dataset.py and the modules of dataset/transformations/.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.loaders.grain_shuffle import is_permutation, shuffled, unshuffled
from shardctl.loaders.loader_sequence import ENDLESS

ALL = (1 << 63) - 1  # the length of what has no end: sys.maxsize, as in Grain
NUM_SEEDS = 1 << 32
_PIECE = 1 << 16  # elements that are looked through together
_MOST_IN_VAIN = 1 << 22  # examples of which none passes a filter
_NO_OVERFLOW = 1 << 62


class Examples(NamedTuple):
    """What elements hold: the examples one after the other, and the number of each element's.

    indices, epochs: int64[r]. widths: int64[q], whose sum is r.
    """

    indices: Int64s
    epochs: Int64s
    widths: Int64s


# Of examples: which of those that were asked for, its element, and its place within that.
Found = tuple[Int64s, Int64s, Int64s]
# Of places in windows, their seeds and size: which of them, and where each is moved.
Move = Callable[[Int64s, Int64s, int], tuple[Int64s, Int64s]]


class Rows(ABC):
    """A dataset as its elements from 0 on.

    length: `len(ds)`, or how many elements its iterator yields; `ALL` without end.
    width, regular: the first `regular` elements hold `width` examples each; `ALL` where all do. A
        width of 1 is also that of elements which hold one or, behind a filter, none.
    epoch: examples of the first epoch, where `repeats` says that there are several.
    shuffles, is_uniform, among: as in `LoaderSequence`.
    """

    length: int
    width: int = 1
    regular: int = ALL
    epoch: int = 0
    repeats: bool = False
    shuffles: bool = False
    is_uniform: bool = False
    among: tuple[range, ...] = ()

    @abstractmethod
    def examples(self, numbers: Int64s) -> Examples:
        """Return the examples of elements, int64[q]."""

    @abstractmethod
    def find(self, indices: Int64s, stop: int) -> Found:
        """Return where examples are in the elements before `stop`, each time that they are."""

    def widths(self, numbers: Int64s) -> Int64s:
        """Return how many examples elements hold, int64[q]."""
        if self.regular == ALL:
            return np.full(len(numbers), self.width)
        return self.examples(numbers).widths

    @property
    def total(self) -> int:
        """The number of examples of all its elements."""
        if self.length >= ALL:
            return ALL
        regular = min(self.regular, self.length)
        rest = sum(
            int(self.widths(np.arange(at, min(at + _PIECE, self.length))).sum())
            for at in range(regular, self.length, _PIECE)
        )
        return regular * self.width + rest


class SourceRows(Rows):
    """The examples [first, first + length), as they are stored."""

    def __init__(self, stored: range) -> None:
        self.first, self.length = stored.start, len(stored)
        self.epoch, self.among = self.length, (stored,)

    def examples(self, numbers: Int64s) -> Examples:
        indices = self.first + numbers % max(self.length, 1)
        return Examples(indices, np.zeros_like(numbers), np.ones_like(numbers))

    def find(self, indices: Int64s, stop: int) -> Found:
        here = np.flatnonzero((indices >= self.first) & (indices < self.first + self.length))
        if not len(here):  # nothing to look for in epochs without end
            return here, here, here
        which, numbers = _tiled(here, indices[here] - self.first, self.length, stop)
        return which, numbers, np.zeros_like(numbers)


class Moved(Rows):
    """The elements of another row, whole, at other places."""

    def __init__(self, of: Rows, length: int | None = None) -> None:
        self.of, self.length = of, of.length if length is None else length
        self.width, self.repeats = of.width, of.repeats
        # Where elements stay in their order the regular ones remain the first.
        self.regular = ALL if of.regular == ALL else 0
        self.shuffles, self.is_uniform, self.among = of.shuffles, of.is_uniform, of.among
        self.epoch = of.epoch

    # Where a class does not say otherwise elements keep their numbers.

    def there(self, numbers: Int64s) -> Int64s:
        """Return which element of the other row each is."""
        return numbers

    def back(self, numbers: Int64s, stop: int) -> tuple[Int64s, Int64s]:
        """Return (which of the other row's elements, its number here), each time it is here."""
        return np.arange(len(numbers)), numbers

    def reach(self, stop: int) -> int:
        """Return before which element of the other row the first `stop` of these are."""
        return stop

    def examples(self, numbers: Int64s) -> Examples:
        return self.of.examples(self.there(numbers))

    def widths(self, numbers: Int64s) -> Int64s:
        return self.of.widths(self.there(numbers))

    def find(self, indices: Int64s, stop: int) -> Found:
        which, numbers, within = self.of.find(indices, self.reach(stop))
        again, numbers = self.back(numbers, stop)
        # Elements that are not in this row have numbers outside of it.
        kept = np.flatnonzero((numbers >= 0) & (numbers < stop))
        again = again[kept]
        return which[again], numbers[kept], within[again]


class ShuffledRows(Moved):
    """Windows of a row, each shuffled by `seed` + its number: of its whole length by `shuffle`."""

    def __init__(self, of: Rows, size: int, seed: int, *, wraps: bool) -> None:
        super().__init__(of)
        if size >= NUM_SEEDS:
            raise UsageError(
                f"shuffle: the order of more than {NUM_SEEDS - 1} elements, and of what has no "
                "end, is not known here; shuffle before repeat"
            )
        self.size, self.seed, self.wraps = size, seed, wraps
        self.shuffles = True
        self.is_uniform = wraps and is_permutation(size) if wraps else of.is_uniform
        if wraps:  # a shuffle of all mixes the epochs before it
            self.repeats = False
        elif 0 < self.length < ALL:
            self._check((self.length - 1) // size)

    def _check(self, window: int) -> None:
        if not self.wraps and self.seed + window >= NUM_SEEDS:
            raise UsageError(
                f"window shuffle: seed={self.seed}: Grain adds the number of the window, up to "
                f"{window}, and refuses seeds beyond {NUM_SEEDS - 1}"
            )

    def _seeds(self, windows: Int64s) -> Int64s:
        self._check(int(windows.max(initial=0)))
        # One seed for all queries is much faster: the keys are made once.
        if len(windows) and (windows == windows[0]).all():
            windows = windows[:1]
        return (self.seed + windows) % NUM_SEEDS

    def _sizes(self, windows: Int64s) -> Int64s:
        """Return how many elements windows hold: one number that all have, or int64[q]."""
        return np.array([self.size])

    def _turned(self, within: Int64s, size: int) -> Int64s:
        """Return which of a shuffled window is yielded at each place, and the other way round."""
        return within

    def _each(self, numbers: Int64s, move: Move) -> tuple[Int64s, Int64s]:
        windows, within = np.divmod(numbers, max(self.size, 1))
        sizes, found = self._sizes(windows), []
        for size in np.unique(sizes).tolist():  # two at most
            here = np.flatnonzero(np.broadcast_to(sizes == size, numbers.shape))
            again, moved = move(within[here], self._seeds(windows[here]), size)
            found.append((here[again], moved + windows[here[again]] * self.size))
        which, places = zip(*found, strict=True)
        return np.concatenate(which), np.concatenate(places)

    def there(self, numbers: Int64s) -> Int64s:
        def move(within: Int64s, seeds: Int64s, size: int) -> tuple[Int64s, Int64s]:
            return np.arange(len(within)), shuffled(self._turned(within, size), seeds, size)

        which, moved = self._each(numbers, move)
        found = np.empty_like(numbers)
        found[which] = moved
        return found

    def back(self, numbers: Int64s, stop: int) -> tuple[Int64s, Int64s]:
        def move(within: Int64s, seeds: Int64s, size: int) -> tuple[Int64s, Int64s]:
            again, moved = unshuffled(within, seeds, size)
            return again, self._turned(moved, size)

        return self._each(numbers, move)

    def reach(self, stop: int) -> int:
        return -(-stop // max(self.size, 1)) * self.size

    def examples(self, numbers: Int64s) -> Examples:
        found = super().examples(numbers)
        if self.wraps:
            epochs = np.repeat(numbers // max(self.length, 1), found.widths)
        elif self.repeats and self.regular == ALL:
            # An example belongs to the epoch of its place: a window may lie in two of them.
            epochs = self.of.examples(numbers).epochs
        else:
            return found
        return found._replace(epochs=epochs)


class IteratedWindows(ShuffledRows):
    """`WindowShuffleIterDataset`: windows that are read, shuffled, and yielded last to first."""

    def _sizes(self, windows: Int64s) -> Int64s:
        # The last window holds what is left; of none at all the size does not matter.
        left = self.of.length - windows * self.size
        return np.minimum(self.size, left) if len(windows) else super()._sizes(windows)

    def _turned(self, within: Int64s, size: int) -> Int64s:
        return size - 1 - within

    def reach(self, stop: int) -> int:
        return min(super().reach(stop), self.of.length)


class SlicedRows(Moved):
    """`ds[start:stop:step]` of each epoch."""

    def __init__(self, of: Rows, cut: slice) -> None:
        self.kept = range(*cut.indices(of.length))
        super().__init__(of, len(self.kept))
        if isinstance(of, SourceRows) and self.kept.step == 1:
            self.among = (range(of.first + self.kept.start, of.first + self.kept.stop),)
        is_first = self.kept.start == 0 and self.kept.step == 1
        if is_first:  # elements stay in their order
            self.regular = of.regular
        if of.repeats and not is_first:  # as many of the first epoch as are kept
            elements = of.epoch // max(of.width, 1)
            self.epoch = of.width * len(range(*cut.indices(min(elements, of.length))))
        else:
            self.epoch = min(self.total, of.epoch) if of.repeats else self.total

    def there(self, numbers: Int64s) -> Int64s:
        epochs, within = np.divmod(numbers, max(self.length, 1))
        found: Int64s = self.kept.start + within * self.kept.step + epochs * self._behind
        return found

    def back(self, numbers: Int64s, stop: int) -> tuple[Int64s, Int64s]:
        epochs, within = np.divmod(numbers, max(self.of.length, 1))
        places, beside = np.divmod(within - self.kept.start, self.kept.step)
        here = np.flatnonzero((beside == 0) & (places >= 0) & (places < self.length))
        return here, places[here] + epochs[here] * self.length

    def reach(self, stop: int) -> int:
        if stop <= self.length:
            first = self.kept[:stop]
            return max(first[0], first[-1]) + 1 if first else 0
        return -(-stop // max(self.length, 1)) * self.of.length

    @property
    def _behind(self) -> int:
        return self.of.length if self.of.length < ALL else 0  # what has no end has one epoch


class RepeatedRows(Moved):
    """`repeat(count)`: another length; `alike` where every epoch is the first one again."""

    def __init__(self, of: Rows, count: int | None, *, alike: bool) -> None:
        if of.length >= ALL:
            raise UsageError("repeat: Grain refuses to repeat what has no end")
        often = count if count is not None else ALL if of.length else 0
        super().__init__(of, min(of.length * often, ALL))
        self.alike, self.repeats, self.epoch = alike, True, of.total
        if of.regular != ALL:
            self.regular = min(of.regular, of.length)

    def there(self, numbers: Int64s) -> Int64s:
        return numbers % max(self.of.length, 1) if self.alike else numbers

    def back(self, numbers: Int64s, stop: int) -> tuple[Int64s, Int64s]:
        here = np.arange(len(numbers))
        return _tiled(here, numbers, self.of.length, stop) if self.alike else (here, numbers)

    def reach(self, stop: int) -> int:
        return min(stop, self.of.length) if self.alike else stop

    def examples(self, numbers: Int64s) -> Examples:
        found = super().examples(numbers)
        epochs = np.repeat(numbers // max(self.of.length, 1), found.widths)
        return found._replace(epochs=epochs)


class FilteredRows(Moved):
    """`MapDataset.filter`: what does not pass is None, an element that holds no example."""

    def __init__(self, of: Rows, passes: Callable[[Int64s], Int64s]) -> None:
        super().__init__(of)
        self._passes, self.regular, self.is_uniform = passes, 0, False

    def examples(self, numbers: Int64s) -> Examples:
        found = self.of.examples(numbers)
        # It is of single examples, so that there is none already or one.
        passes = self._passes(found.indices) != 0
        widths = found.widths.copy()
        widths[widths > 0] = passes
        return Examples(found.indices[passes], found.epochs[passes], widths)

    widths = Rows.widths

    def find(self, indices: Int64s, stop: int) -> Found:
        passing = np.flatnonzero(self._passes(indices) != 0)
        which, numbers, within = self.of.find(indices[passing], stop)
        return passing[which], numbers, within


class PassedRows(Moved):
    """The elements that hold an example, counted as far as they are asked about."""

    def __init__(self, of: Rows) -> None:
        super().__init__(of, ALL)
        self._kept, self._looked = np.empty(0, np.int64), 0
        self.regular = ALL if of.width == 1 else 0
        if of.length < ENDLESS:
            self._look(ALL)
            self.length = len(self._kept)
        self.epoch = int(np.searchsorted(self._kept, of.epoch)) if of.repeats else self.length

    def _look(self, count: int) -> None:
        pieces, found, vain = [self._kept], len(self._kept), 0
        while found < count and self._looked < self.of.length:
            numbers = np.arange(self._looked, min(self._looked + _PIECE, self.of.length))
            kept = numbers[self.of.widths(numbers) > 0]
            pieces.append(kept)
            found, self._looked = found + len(kept), self._looked + len(numbers)
            vain = 0 if len(kept) else vain + len(numbers)
            if vain > _MOST_IN_VAIN and self.of.length >= ENDLESS:
                raise UsageError(f"filter: of {vain:,} examples none passes, and there is no end")
        self._kept = np.concatenate(pieces)

    def before(self, number: int) -> int:
        """Return how many of the first `number` elements of the other row pass."""
        while self._looked < min(number, self.of.length):
            self._look(len(self._kept) + 1)
        return int(np.searchsorted(self._kept, number))

    def there(self, numbers: Int64s) -> Int64s:
        self._look(int(numbers.max(initial=-1)) + 1)
        return self._kept[numbers]

    def back(self, numbers: Int64s, stop: int) -> tuple[Int64s, Int64s]:
        return np.arange(len(numbers)), np.searchsorted(self._kept, numbers)

    def reach(self, stop: int) -> int:
        return int(self._kept[stop - 1]) + 1 if stop else 0


class BatchedRows(Rows):
    """`batch(size)`: no batch of a `MapDataset` holds examples of two of its epochs."""

    def __init__(self, of: Rows, size: int, *, drop_remainder: bool) -> None:
        self.of, self.size = of, size
        rest = 0 if of.length >= ALL else of.length % size
        self.length = ALL if of.length >= ALL else of.length // size
        self.width, self.regular = of.width * size, of.regular // size
        if of.regular == ALL:
            self.regular = ALL if drop_remainder or not rest else self.length
        if rest and not drop_remainder:
            self.length += 1
        self.repeats, self.shuffles, self.among = of.repeats, of.shuffles, of.among
        self.is_uniform = of.is_uniform
        self.epoch = of.epoch if of.repeats else self.total

    def _bounds(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return where the members of batches begin, and how many there are."""
        epochs, within = np.divmod(numbers, max(self.length, 1))
        starts = within * self.size
        sizes = np.minimum(self.size, self.of.length - starts)
        return starts + epochs * (self.of.length if self.of.length < ALL else 0), sizes

    def examples(self, numbers: Int64s) -> Examples:
        starts, sizes = self._bounds(numbers)
        found = self.of.examples(_spans(starts, sizes))
        return found._replace(widths=_sums(found.widths, sizes))

    def widths(self, numbers: Int64s) -> Int64s:
        starts, sizes = self._bounds(numbers)
        if self.of.regular == ALL:
            return sizes * self.of.width
        return _sums(self.of.widths(_spans(starts, sizes)), sizes)

    def find(self, indices: Int64s, stop: int) -> Found:
        epochs, rest = divmod(stop, max(self.length, 1))
        last = min(rest * self.size, self.of.length)
        members = epochs * self.of.length + last if self.of.length < ALL else stop * self.size
        which, numbers, within = self.of.find(indices, members)
        epoch, at = np.divmod(numbers, max(self.of.length, 1))
        batches, places = np.divmod(at, self.size)
        kept = np.flatnonzero(batches < self.length)  # the rest is dropped
        which, within, places, numbers = (one[kept] for one in (which, within, places, numbers))
        if self.of.regular == ALL:
            before = places * self.of.width
        else:
            before = _sums(self.of.widths(_spans(numbers - places, places)), places)
        return which, batches[kept] + epoch[kept] * self.length, within + before


class ZippedRows(Rows):
    """An element of each row in one."""

    def __init__(self, rows: Sequence[Rows]) -> None:
        self.rows, self.length = rows, min(row.length for row in rows)
        self.width, self.regular = sum(row.width for row in rows), min(row.regular for row in rows)
        self.shuffles = any(row.shuffles for row in rows)
        self.among = tuple(piece for row in rows for piece in row.among)
        self.repeats = rows[0].repeats
        self.epoch = sum(row.epoch for row in rows) if self.repeats else self.total

    def examples(self, numbers: Int64s) -> Examples:
        parts = [row.examples(numbers) for row in self.rows]
        # A stable sort by element: within one, the examples of the first row come first.
        elements = [np.repeat(np.arange(len(numbers)), part.widths) for part in parts]
        order = np.argsort(np.concatenate(elements), kind="stable")
        return Examples(
            np.concatenate([part.indices for part in parts])[order],
            np.concatenate([part.epochs for part in parts])[order],
            np.sum([part.widths for part in parts], axis=0),
        )

    def widths(self, numbers: Int64s) -> Int64s:
        found: Int64s = np.sum([row.widths(numbers) for row in self.rows], axis=0)
        return found

    def find(self, indices: Int64s, stop: int) -> Found:
        found = []
        for place, row in enumerate(self.rows):
            which, numbers, within = row.find(indices, stop)
            before = sum(one.widths(numbers) for one in self.rows[:place])
            found.append((which, numbers, within + before))
        return joined(found)


class MergedRows(Rows):
    """Elements of several rows in turn; `is_deal` where workers were dealt one row.

    Epochs within a row are none of the whole.
    """

    def __init__(self, rows: Sequence[Rows], length: int, *, is_deal: bool = False) -> None:
        self.rows, self.length, self.is_deal = rows, length, is_deal
        self.shuffles = any(row.shuffles for row in rows)
        self.is_uniform = is_deal and all(row.is_uniform for row in rows)
        self.repeats = is_deal and rows[0].repeats
        self.among = tuple(dict.fromkeys(piece for row in rows for piece in row.among))
        self.width, self.regular = rows[0].width, 0
        if any(row.width != self.width for row in rows):
            self.width = 0
        else:
            ends = [
                int(self.number_of(place, np.array([row.regular]))[0])
                for place, row in enumerate(rows)
                if row.regular < row.length
            ]
            self.regular = min([ALL, *ends])
        self.epoch = sum(row.epoch for row in rows) if self.repeats else self.total

    @abstractmethod
    def route(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which row, number of its element) of each element."""

    @abstractmethod
    def number_of(self, row: int, numbers: Int64s) -> Int64s:
        """Return the number of each element of a row among all."""

    def share(self, row: int, stop: int) -> int:
        """Return how many elements of a row, at most, are among the first `stop`."""
        return min(stop, self.rows[row].length)

    def examples(self, numbers: Int64s) -> Examples:
        parts = [(here, row.examples(keys)) for row, here, keys in self._routed(numbers)]
        widths = np.empty_like(numbers)
        for here, found in parts:
            widths[here] = found.widths
        starts = np.cumsum(widths) - widths
        indices = np.empty(int(widths.sum()), np.int64)
        epochs = np.zeros_like(indices)
        for here, found in parts:
            places = _spans(starts[here], found.widths)
            indices[places] = found.indices
            if self.is_deal:
                epochs[places] = found.epochs
        return Examples(indices, epochs, widths)

    def widths(self, numbers: Int64s) -> Int64s:
        if self.regular == ALL:
            return np.full(len(numbers), self.width)
        widths = np.empty_like(numbers)
        for row, here, keys in self._routed(numbers):
            widths[here] = row.widths(keys)
        return widths

    def _routed(self, numbers: Int64s) -> Iterator[tuple[Rows, Int64s, Int64s]]:
        """Yield each row, which of the elements are of it, and their numbers in it."""
        rows, keys = self.route(numbers)
        for place, row in enumerate(self.rows):
            here = np.flatnonzero(rows == place)
            yield row, here, keys[here]

    def find(self, indices: Int64s, stop: int) -> Found:
        found = []
        for place, row in enumerate(self.rows):
            which, keys, within = row.find(indices, self.share(place, stop))
            numbers = self.number_of(place, keys)
            kept = np.flatnonzero(numbers < stop)
            found.append((which[kept], numbers[kept], within[kept]))
        return joined(found)


class MixedRows(MergedRows):
    """`mix`: of the first k elements each row has its share, rounded row by row.

    Source: `_dataset_and_key_of_next_element` in mix.py.
    """

    def __init__(
        self, rows: Sequence[Rows], weights: Sequence[float] | None, *, is_map: bool
    ) -> None:
        parts = [1] * len(rows)
        if weights is not None:
            scale = 100 / min(weights)
            parts = [int(weight * scale) for weight in weights]
        left = [sum(parts[place:]) for place in range(len(parts) + 1)]
        # Of what is left to the rows from `place` on, that one takes `parts` of `left`.
        self._parts, self._left = parts, left
        self.rows = rows
        if is_map:
            # Floats, as Grain computes.
            lengths = [row.length / (part / left[0]) for row, part in zip(rows, parts, strict=True)]
            length = min(ALL, int(min(lengths)))
        else:  # it ends where a row is asked for what it has not
            ends = [
                int(self.number_of(place, np.array([row.length], object))[0])
                for place, row in enumerate(rows)
                if row.length < ALL
            ]
            length = min([ALL, *ends])
        super().__init__(rows, length)

    def _exact(self, numbers: Int64s) -> Any:
        is_large = len(numbers) and int(numbers.max()) >= _NO_OVERFLOW // self._left[0]
        return numbers.astype(object) if is_large else numbers

    def route(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        rows, keys = np.full(len(numbers), -1), np.zeros(len(numbers), np.int64)
        before, after = self._exact(numbers), self._exact(numbers) + 1
        for place, (left, rest) in enumerate(pairwise(self._left)):
            next_before, next_after = before * rest // left, after * rest // left
            count = after - next_after
            here = np.flatnonzero((before - next_before != count) & (rows < 0))
            rows[here], keys[here] = place, (count[here] - 1).astype(np.int64)
            before, after = next_before, next_after
        return rows, keys

    def number_of(self, row: int, numbers: Int64s) -> Int64s:
        found = self._exact(numbers) * self._left[row] // self._parts[row]
        for place in range(row - 1, -1, -1):
            left, rest = self._left[place], self._left[place + 1]
            found = self._exact(found)
            found = -(-(found + 1) * left // rest) - 1
        return np.asarray(found) if numbers.dtype == object else found.astype(np.int64)

    def share(self, row: int, stop: int) -> int:
        for place in range(row):
            stop = stop * self._left[place + 1] // self._left[place]
        return stop - stop * self._left[row + 1] // self._left[row]


class JoinedRows(MergedRows):
    """`concatenate`: one row behind the other, in every epoch."""

    def __init__(self, rows: Sequence[Rows]) -> None:
        if any(row.length >= ALL for row in rows):
            raise UsageError("concatenate: Grain refuses what has no end")
        self._starts = np.cumsum([0, *(row.length for row in rows)])
        super().__init__(rows, int(self._starts[-1]))

    def route(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        epochs, within = np.divmod(numbers, max(self.length, 1))
        rows = np.searchsorted(self._starts, within, side="right") - 1
        sizes = np.diff(self._starts)
        return rows, within - self._starts[rows] + epochs * sizes[rows]

    def number_of(self, row: int, numbers: Int64s) -> Int64s:
        epochs, within = np.divmod(numbers, max(self._starts[row + 1] - self._starts[row], 1))
        found: Int64s = self._starts[row] + within + epochs * self._starts[-1]
        return found

    def share(self, row: int, stop: int) -> int:
        return -(-stop // max(self.length, 1)) * self.rows[row].length


class TakingTurns(MergedRows):
    """Iterators that are asked in turn, `cycle` at a time: `InterleaveIterDataset`, and workers.

    One that ends leaves its place to the next, which begins when the turn comes to it again.
    Between two such events all turns are alike, and make one stretch.
    """

    def __init__(self, rows: Sequence[Rows], cycle: int, *, is_deal: bool = False) -> None:
        # Of a stretch: where it begins, how many are in a turn, and where these are in `_entries`.
        self._stretches: list[tuple[int, int, int]] = []
        self._entries: list[tuple[int, int]] = []  # row, number of its element
        length = self._follow([row.length for row in rows], min(cycle, len(rows)))
        self._starts, self._in_turn, self._first = np.array(
            self._stretches or [(0, 1, 0)], np.int64
        ).T
        self._who, self._keys = np.array(self._entries or [(0, 0)], np.int64).T
        self._stretch_of = np.searchsorted(self._first, np.arange(len(self._who)), "right") - 1
        super().__init__(rows, length, is_deal=is_deal)

    def _follow(self, lengths: Sequence[int], cycle: int) -> int:
        slots: list[tuple[int, int] | None] = [None] * cycle
        opened = slot = position = idle = 0
        is_turn = False  # whether the last stretch is a turn that is still being collected
        while idle < cycle:
            held = slots[slot]
            is_full = opened == len(lengths) or None not in slots
            active = [one for at in range(cycle) if (one := slots[(slot + at) % cycle])]
            often = min((lengths[row] - key for row, key in active), default=0)
            if is_full and often > 0:
                # All turns until one of them ends.
                self._stretches.append((position, len(active), len(self._entries)))
                self._entries += active
                if often >= ALL - max(key for _, key in active):
                    return ALL
                position += often * len(active)
                slots = [one and (one[0], one[1] + often) for one in slots]
                is_turn = False
                idle = 0
                continue
            if held is None and opened < len(lengths):
                slots[slot] = (opened, 0)
                opened += 1
                continue
            if held is None:
                idle += 1
            elif held[1] < lengths[held[0]]:
                start, in_turn, first = position, 0, len(self._entries)
                if is_turn:
                    start, in_turn, first = self._stretches.pop()
                self._stretches.append((start, in_turn + 1, first))
                is_turn = True
                self._entries.append(held)
                slots[slot] = held[0], held[1] + 1
                position, idle = position + 1, 0
            else:
                # Where it ended is a place that the next one may take, a turn later.
                slots[slot], idle = None, 0
            slot = (slot + 1) % cycle
        return position

    def route(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        stretch = np.searchsorted(self._starts, numbers, side="right") - 1
        turns, places = np.divmod(numbers - self._starts[stretch], self._in_turn[stretch])
        entries = self._first[stretch] + places
        return self._who[entries], self._keys[entries] + turns

    def number_of(self, row: int, numbers: Int64s) -> Int64s:
        own = np.flatnonzero(self._who == row)
        if not len(own):
            return np.full(len(numbers), ALL)
        entries = own[np.searchsorted(self._keys[own], numbers, side="right") - 1]
        stretch = self._stretch_of[entries]
        turns = numbers - self._keys[entries]
        within = entries - self._first[stretch]
        found: Int64s = self._starts[stretch] + turns * self._in_turn[stretch] + within
        return found


# Numbers that several rows need.


def joined(found: Sequence[Found]) -> Found:
    """Return what was found piece by piece."""
    which, numbers, within = (np.concatenate(one) for one in zip(*found, strict=True))
    return which, numbers, within


def _tiled(which: Int64s, numbers: Int64s, length: int, stop: int) -> tuple[Int64s, Int64s]:
    """Return (which, number) of each number in every epoch of `length`, of those before `stop`."""
    epochs = -(-stop // max(length, 1))
    found = np.tile(numbers, epochs) + np.repeat(np.arange(epochs) * length, len(numbers))
    kept = np.flatnonzero(found < stop)
    return np.tile(which, epochs)[kept], found[kept]


def _spans(starts: Int64s, sizes: Int64s) -> Int64s:
    """Return the numbers from each start on, as many as its size, one after the other.

    >>> _spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def _sums(values: Int64s, sizes: Int64s) -> Int64s:
    """Return the sums of rows of values that have these sizes, 0 of an empty one."""
    whole = np.concatenate([[0], np.cumsum(values)])
    ends = np.cumsum(sizes)
    found: Int64s = whole[ends] - whole[ends - sizes]
    return found
