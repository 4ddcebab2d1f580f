"""`shuffle`, and `shuffle.repeat` where TensorFlow fuses the two into one op."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.iteration import EVERYTHING, Derived, Iteration, Node, Repeating
from shardctl.iteration.repeat import Joined
from shardctl.tfdata.shuffle_buffer import ShuffleReplay, shuffled_codes
from shardctl.tfdata.shuffle_seeds import KernelSeeds, SeedGenerator, TakenSeeds

# An element stays longer than k buffers in a buffer with probability exp(-k).
_FEW, _MANY = 4, 16
_MAX_KEPT = 1 << 24  # codes of elements that were read of late
_CHUNK = 1 << 20  # codes of longer elements that are looked up at once
_WIDTH = 64  # examples of an element, where that differs

_ANY = KernelSeeds(seed=0, seed2=0)

_MAX_EPOCHS = 3  # kMaxEpochsInBuffer; with more than so many in the buffer none is read further


class Shuffle(Repeating):
    """`ds.shuffle(buffer)`, and `ds.shuffle(buffer).repeat(count)` in one op.

    count: the epochs, 1 of a plain shuffle, None without end. An epoch is yielded whole before
        the next begins, but is read as soon as the buffer has room.

    >>> from shardctl.iteration.iteration import Source
    >>> from shardctl.tfdata.shuffle_seeds import KernelSeeds
    >>> kernel = KernelSeeds(seed=87654321, seed2=7)
    >>> generator = SeedGenerator(kernel, False, stage="shuffle(3)")
    >>> iteration = Shuffle(Source(range(8)), 3, generator).iterate()
    >>> iteration.pull(9), iteration.examples(np.arange(8)).tolist()
    (8, [0, 2, 3, 4, 5, 7, 6, 1])
    """

    def __init__(
        self, child: Node, buffer: int, generator: SeedGenerator, count: int | None = 1
    ) -> None:
        super().__init__(child, count)
        self.buffer, self.generator = buffer, generator
        self.lasting = () if generator.is_fixed else (generator,)
        if buffer == WHOLE_DATASET and child.is_infinite:
            raise UsageError(f"{generator.stage} of a dataset without end never fills its buffer")
        if buffer == WHOLE_DATASET and count != 1 and child.num_elements < 0:
            # As behind choose_from_datasets. With epochs of 8, 9 and 9 elements TensorFlow 2.21
            # yielded another order than a buffer as large as the first epoch does.
            raise UnpredictableOrderError(
                f"{generator.stage} with the repeat behind it, of a dataset whose passes may "
                "differ in length: what its buffer holds then is not known; "
                "give shuffle a number"
            )

    def iterate(self) -> ShuffleIteration:
        return ShuffleIteration(self)


class ShuffleIteration(Joined):
    """An iterator: the epochs that are yielded, and those that are in the buffer already.

    It follows tensorflow/core/kernels/data/shuffle_dataset_op.cc, whose slices are epochs here.
    """

    def __init__(self, node: Shuffle) -> None:
        super().__init__()
        self._node = node
        # When the iterator is made, even if it is never read.
        self._seeds: TakenSeeds | None = node.generator.take()
        self._slices: list[ShuffledEpoch] = []
        self._num_opened = 0
        self._input: Iteration | None = None  # of the last slice, until it has ended
        self._buffered = 0
        # A buffer for the whole dataset is as large as the first epoch from its end on.
        self._capacity = None if node.buffer == WHOLE_DATASET else node.buffer

    def _advance(self, count: int) -> int:
        done = 0
        # As GetNext does it: fill the buffer, go on to the first slice with something in it, yield.
        while done < count:
            self._fill()
            if not self._buffered:
                break
            self._clear()
            done += self._hand_out(count - done)
        return done

    def _fill(self) -> None:
        """Read until the buffer is full."""
        while self._may_read() and (room := self._room()) > 0:
            if self._input is None:
                self._open()
                room = self._room()
            # Right behind a slice too many one element is read before the buffer is looked at.
            if len(self._slices) > _MAX_EPOCHS:
                room = 1
            assert self._input is not None
            got = self._input.pull(room)
            self._buffered += got
            if got < room:
                self._input = None
                # UNKNOWN_CARDINALITY as size: known once the first epoch has ended.
                if self._capacity is None:
                    self._capacity = self._buffered
                # An endless repeat of an empty input ends instead of trying indefinitely.
                if self._node.count is None and not self._buffered and not self.sources:
                    return

    def _may_read(self) -> bool:
        if len(self._slices) > _MAX_EPOCHS and self._buffered:
            return False
        count = self._node.count
        return self._input is not None or count is None or self._num_opened < count

    def _room(self) -> int:
        return EVERYTHING if self._capacity is None else self._capacity - self._buffered

    def _open(self) -> None:
        self._input = self._node.child.iterate()
        self._slices.append(ShuffledEpoch(self._input, self._capacity))
        self._num_opened += 1

    def _clear(self) -> None:
        """Advance to the first epoch of which the buffer holds something; each takes seeds."""
        while not self._slices[0].left:
            # A slice is used up only after it has ended, so its epoch is over.
            self._slices.pop(0)
            self._seeds = self._node.generator.take()
        # An epoch gets its seeds when it comes to the front, not when it is read.
        if self._slices[0].seeds is None:
            self._slices[0].seeds = self._seeds
            self.sources.append(self._slices[0])

    def _hand_out(self, count: int) -> int:
        """Yield one element, and as many more as follow in the same way; return how many."""
        front = self._slices[0]
        # The refill happens with the next pull, so of `count` elements the first needs no read.
        more = 0
        if not self._may_read():
            more = min(count, front.left) - 1
        elif self._input is not None and self._room() == 0:
            # The buffer is full, so that for each one more one is read.
            wanted = count - 1
            if len(self._slices) > 1:
                # Elements of a later epoch are read, those of the front one yielded: it must not
                # run empty.
                wanted = min(wanted, front.left - 1)
            more = self._input.pull(wanted)
            if more < wanted:
                self._input = None
            self._buffered += more
        # The slice's own counter, as this shuffle and not `pull` reads it.
        front.pulled += more + 1
        self._buffered -= more + 1
        return more + 1

    def abandon(self) -> None:
        if self._input is not None:
            self._input.abandon()


class ShuffledEpoch(Derived):
    """One epoch of a shuffle: what is read of its input, and in which order it comes out.

    buffer: None holds the whole epoch.
    """

    def __init__(self, child: Iteration, buffer: int | None) -> None:
        super().__init__(child)
        self._buffer = buffer
        self.seeds: TakenSeeds | None = None

    def _advance(self, count: int) -> int:
        raise AssertionError("the shuffle reads it")

    @property
    def left(self) -> int:
        """Number of elements that are read and not yielded."""
        return self._child.pulled - self.pulled

    def check(self) -> None:
        if self.pulled:
            _ = self.replay
        super().check()

    @property
    def replay(self) -> ShuffleReplay:
        """The shuffle of what is read so far; of what is yielded so far nothing changes."""
        assert self.seeds is not None
        size = self._child.pulled
        buffer = max(1, size) if self._buffer is None else self._buffer
        # Of one element there is one order, whatever the seeds are.
        seeds = _ANY if min(buffer, size) <= 1 else self.seeds.seeds
        return ShuffleReplay(num_elements=size, buffer_size=buffer, seeds=seeds)

    def _inputs_of(self, elements: Int64s) -> Int64s:
        return self.replay.inputs_at(elements)

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        return self.replay.outputs_of(inputs)

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        if start >= stop:
            return
        child, replay = self._child, self.replay
        if child.width != 1:
            size = max(1, _CHUNK // (child.width or _WIDTH))
            for inputs in replay.chunks(start, stop, chunk_size=size):
                yield child.examples(inputs)
            return
        # To look up what is older than that costs a replay, where the input is shuffled too.
        buffer = replay.num_buffered
        reach = max(_FEW * buffer, min(_MANY * buffer, _MAX_KEPT))
        yield from shuffled_codes(InTurn(child), replay, start, stop, reach=reach)


class InTurn:
    """The codes of an iteration of single examples, which a shuffle above it reads on and looks up.

    Read in order it goes through the iteration once, in pieces.
    """

    def __init__(self, iteration: Iteration) -> None:
        self._iteration, self.num_examples = iteration, iteration.pulled
        self._next, self._rest = -1, np.empty(0, np.int64)
        self._chunks: Iterator[Int64s] = iter(())

    def codes(self, start: int, stop: int) -> Int64s:
        """Return the codes of the elements [start, stop)."""
        # Not where the last answer ended: start a new walk through the iteration.
        if start != self._next:
            self._chunks = self._iteration.chunks(start, self.num_examples)
            self._rest = self._rest[:0]
        parts, missing = [self._rest], stop - start - len(self._rest)
        while missing > 0:
            parts.append(next(self._chunks))
            missing -= len(parts[-1])
        codes = np.concatenate(parts)
        self._next, self._rest = stop, codes[stop - start :]
        return codes[: stop - start]

    def codes_at(self, positions: Int64s) -> Int64s:
        """Return the codes of any elements."""
        return self._iteration.examples(positions)
