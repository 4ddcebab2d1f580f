"""`Order`, the interface of all orders: from positions of a pass to examples, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike
from shardctl.base.text import counted, in_short
from shardctl.errors import UsageError
from shardctl.order.example_codes import RowLookup

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.loaders.loader_sequence import LoaderSequence
    from shardctl.order.example_codes import ExampleCodes
    from shardctl.settings.read_settings import ReadSettings
    from shardctl.spec.reads import Reads
    from shardctl.spec.subsplit import SplitRange
    from shardctl.stages.stages import Read

CHUNK_SIZE = 1 << 18  # codes of a piece: few enough that they stay in the cache
ENDLESS = 1 << 40  # positions, and steps, of an order without end that can be asked for
MAX_POSITIONS = 1 << 23  # that one answer looks up; their arrays take half a gigabyte
NONE = np.empty(0, np.int64)

Over = Callable[[range], Iterable[int]]
ContinuedBy = Literal["file_instructions", "shardctl.tfds", "loader"]


def ignore(count: int) -> None:
    """Do nothing with a report of progress."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a reader reads: its own dataset, a spec of that, and what it is called among others."""

    name: str
    dataset: Dataset
    spec: str


class Order(ABC):
    """Every position of one pass over a pipeline, all epochs of it, from 0.

    What a command asks of an order is here. Each way to read a dataset implements it: TFDS's reader
    with a buffer behind it (`ReaderOrder`), stages as a script has them (`StagedOrder`), another
    loader (`LoaderOrder`). An example is named by a code (see `ExampleCodes`): its id where the
    spec reads one split. Nothing is read, and no array is as long as the order.

    ranges: those that are read, of all hosts.
    num_examples: of the pass, without a last batch that is dropped; of `epoch_size` those of an
        epoch of this host, before whole batches are formed.
    shuffles: whether anything mixes the examples or the files.
    given: what all hosts read in an epoch, in the order of storage; `reads` is this host's part.
    sources: what several readers of a mixture are called; origins: what readers in stages read.
    sequence: indices in place of codes, of another loader than TFDS's reader.
    is_endless: whether `num_examples` is no more than a bound of what can be asked for.
    has_epochs: whether an epoch can be begun by itself, not mixed with others or with datasets.
    has_readings: whether an epoch is a reading of files, whose rest is known without its examples.
    goes_on: what is left out of a reading without end, None where all of it is followed.
    why_unshared: why other hosts cannot continue with what is left, None where they can.
    unshuffled: how examples come where nothing shuffles them, a clause.
    is_uniform: whether an epoch is known to be a uniform permutation by its making.
    is_made_whole: whether an epoch is made as a whole before any place in it is known.
    one_buffer: `num_buffered` where every example of an epoch goes through that buffer alone.
    has_blocks: whether blocks of files come one after the other, since nothing mixes them.
    why_no_steps: why there are no batches to ask for, where that is so.
    draws_stretches: whether stretches may be drawn as a shuffle buffer would make them.
    num_in_turn: how many files are read at once, None where examples are read by their index.
    continued_by: what resumes in the midst of it: file instructions, shardctl.tfds, or the library
        of the loader.
    """

    continued_by: ContinuedBy
    dataset: Dataset
    settings: ReadSettings
    codes: ExampleCodes
    given: Reads
    reads: Reads
    sources: tuple[str, ...] = ()
    origins: Mapping[Read, Origin] = {}
    is_endless = has_readings = is_uniform = is_made_whole = has_blocks = draws_stretches = False
    has_epochs = True
    why_no_steps = "--step needs --batch N: a step is a batch"
    goes_on: str | None = None
    why_unshared: str | None = None
    unshuffled = "examples come as the files are interleaved"
    one_buffer: int | None = None
    num_in_turn: int | None = None
    sequence: LoaderSequence | None = None
    ranges: tuple[SplitRange, ...]
    num_examples: int
    epoch_size: int
    shuffles: bool

    def __new__(cls, *_: object, **__: object) -> Self:
        # Order is public for annotations and isinstance only.
        if cls is Order:
            raise UsageError("an Order is made by shardctl.plan_order(..).order")
        return super().__new__(cls)

    def __eq__(self, other: object) -> bool:
        """Whether both are read of one dataset, the same ranges and in the same way."""
        if not isinstance(other, Order):
            return NotImplemented
        of = ("settings", "ranges", "dataset")
        return all(getattr(self, name) == getattr(other, name) for name in of)

    def __hash__(self) -> int:
        return hash(self.settings)

    def __repr__(self) -> str:
        total = "without end" if self.is_endless else counted(self.num_examples, "example")
        return in_short(self, self.dataset.title, total)

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on though no setting states it, a sentence each; mostly none."""

    # How long it is.

    @property
    def num_epochs(self) -> int | None:
        """Number of epochs of the pass, None without end."""
        return self.settings.epochs

    @property
    def has_second_epoch(self) -> bool:
        """Whether the pass continues after the first `epoch_size` examples, in an epoch more."""
        return self.num_epochs != 1

    @property
    def stream_size(self) -> int:
        """Number of examples after which the order may begin anew: mostly all of them."""
        return self.num_examples

    @property
    def why_empty(self) -> str:
        """Why nothing is yielded of what the spec selects, where that is so."""
        settings = self.settings
        if self.epoch_size:
            return f"--drop-remainder leaves nothing: {self.epoch_size} examples fill no batch"
        if settings.host is None:
            return "the stages leave no examples"
        return f"host {settings.host} by {settings.host_by} reads no examples"

    # How it is shuffled.

    @property
    def num_buffered(self) -> int | None:
        """Size of the largest shuffle buffer of tf.data's in force, None without one."""
        return None

    @property
    def before_buffer(self) -> Order | None:
        """The order in which files are read into that buffer, None where there is none to see."""
        return None

    # What is at positions.

    @checked
    def read(self, start: int, stop: int) -> Int64s:
        """Return the codes at positions [start, stop), int64[stop - start]."""
        pieces = list(self.chunks(start, stop))
        return np.concatenate(pieces) if pieces else NONE

    @checked
    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Return an iterator over the codes at [start, stop), in pieces, in bounded memory."""
        self._check_range(start, stop)
        return iter(()) if start == stop else self._chunks(start, stop)

    @checked
    def codes_at(self, positions: Int64sLike) -> Int64s:
        """Return the codes at any positions, int64[q] each."""
        wanted = self._checked(positions)
        return self._codes_at(wanted) if len(wanted) else NONE

    @checked
    def epoch_of(self, positions: Int64sLike) -> Int64s:
        """Return the epoch (int64[q]) in which each position is.

        Of stages it is which reading of its source the example is of.
        """
        wanted = self._checked(positions)
        return self._epochs_at(wanted) if len(wanted) else NONE

    def _codes_of_stretches(
        self, epoch: int, starts: Int64s, length: int, *, exact: bool = True
    ) -> Int64s:
        """Return the codes at stretches of an epoch, int64[len(starts), length].

        Behind a shuffle buffer of tf.data they are replayed if `exact`, else drawn from its
        distribution, which takes no time for what comes before. Equal seeds draw equally, so that
        hosts and epochs that shuffle alike stay alike.
        """
        # int64[stretches, length]; one lookup of all of them, flattened, is the quickest.
        positions = starts[:, None] + np.arange(length) + epoch * self.epoch_size
        return self.codes_at(positions.ravel()).reshape(positions.shape)

    @checked
    def blocks_at(self, positions: Int64sLike) -> tuple[Int64s, Int64s] | None:
        """Return (slot of the interleave, offset in the file instruction), int64[q] each.

        None where no blocks come one after the other, see `has_blocks`.
        """
        positions = self._checked(positions)
        return self._blocks_at(positions) if self.has_blocks else None

    def _blocks_at(self, positions: Int64s) -> tuple[Int64s, Int64s] | None:
        return None

    # What each order answers, of positions that it has and of one at least.

    @abstractmethod
    def _chunks(self, start: int, stop: int) -> Iterator[Int64s]: ...

    @abstractmethod
    def _codes_at(self, positions: Int64s) -> Int64s: ...

    @abstractmethod
    def _epochs_at(self, positions: Int64s) -> Int64s: ...

    @abstractmethod
    def _found(self, codes: Int64s, over: Over) -> Iterator[tuple[Int64s, Int64s]]: ...

    @abstractmethod
    def _steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]: ...

    @abstractmethod
    def _in_step(self, step: int) -> range: ...

    # Where examples are.

    @checked
    def positions_of(self, codes: Int64sLike, *, over: Over = iter) -> tuple[Int64s, Int64s]:
        """Return (which query, position), int64[r] each, for every time an example is yielded.

        Ordered by query, then by position; an example that is never yielded has none. `over`
        goes through the epochs, where each has an order of its own, and may report how far it is.
        """
        found = [(NONE, NONE), *self.positions_in_pieces(codes, over=over)]
        # The empty pair in front keeps this valid, and int64, where nothing is found.
        query, position = (np.concatenate(column) for column in zip(*found, strict=True))
        # The last key is the primary one: by query, then by position.
        order = np.lexsort((position, query))
        return query[order], position[order]

    @checked
    def positions_in_pieces(
        self, codes: Int64sLike, *, over: Over = iter
    ) -> Iterator[tuple[Int64s, Int64s]]:
        """Return an iterator over the answer of `positions_of`, piece by piece as it is found.

        Every position of a piece is below those of the next one.
        """
        return self._found(np.asarray(codes, np.int64), over)

    @cached_property
    def _first_codes(self) -> Int64s:
        """The code of the first example that each row reads, int64[n]."""
        return self.codes.first_codes(self.reads)

    @cached_property
    def lookup(self) -> RowLookup:
        """Which rows read an example."""
        return RowLookup(self.reads, self._first_codes)

    @property
    def epochs_per_second(self) -> int:
        """About how many epochs are searched for an example in a second."""
        return 1_000_000

    # Batches.

    @property
    @abstractmethod
    def has_steps(self) -> bool:
        """Whether examples come in batches, or several in an element."""

    @property
    @abstractmethod
    def num_steps(self) -> int | None:
        """Number of batches of the pass, None without end."""

    @property
    def batch_size(self) -> int | None:
        """Number of examples in the first batch, None where there is none."""
        return self.settings.batch

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes of the batches around an example, outermost first; None for tuples."""
        return () if self.batch_size is None else (self.batch_size,)

    @checked
    def steps_of(self, positions: Int64sLike) -> tuple[Int64s, Int64s]:
        """Return (batch, index of the example in it), int64[q] each; see `has_steps`."""
        wanted = self._checked(positions)
        return self._steps_of(wanted) if len(wanted) else (NONE, NONE)

    @checked
    def positions_in_step(self, step: int) -> range:
        """Return the positions of the examples of a batch."""
        self._check_step(step)
        return self._in_step(step)

    @checked
    def steps_in_epoch(self, epoch: int) -> range:
        """Return the batches of an epoch, both counted from 0 in this pass.

        Raises:
            UsageError: no such epoch, or one that begins or ends inside a batch, or mixed with
                others: then no batch is the first of it.
        """
        if not self.has_steps:
            raise UsageError(self.why_no_steps)
        if self.is_endless or not self.has_epochs:
            raise UsageError("--epoch: epochs mix in this order; count all steps with --step alone")
        all_of_it = range(self.num_examples)
        # By bisection: where epochs do not mix, the epoch never decreases from position to
        # position.
        start, stop = (
            bisect_left(all_of_it, one, key=lambda at: int(self.epoch_of([at])[0]))
            for one in (epoch, epoch + 1)
        )
        if start == stop:
            raise UsageError(
                f"--epoch {epoch}: this order has {counted(self.num_epochs or 0, 'epoch')}, from "
                "0; a longer job has more --epochs"
            )
        steps, within = self.steps_of([start, stop - 1])
        first, last = steps.tolist()
        # A batch across an epoch boundary belongs to two epochs.
        if within[0] or self.positions_in_step(last).stop != stop:
            raise UsageError(
                f"--epoch {epoch}: this epoch begins or ends inside a batch, so it has no fixed "
                "number of steps; count all steps with --step alone"
            )
        return range(first, last + 1)

    @checked
    def steps_up_to(self, stop: int) -> int:
        """Return `stop`, or how many batches there are where those are fewer."""
        self._check_count(stop)
        return stop if self.num_steps is None else min(stop, self.num_steps)

    @checked
    def examples_in_steps(self, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return (which of `sources`, code) of the examples of batches [start, stop).

        And how many each batch has, int64[stop - start]. Where nothing makes batches an example is
        one of its own.
        """
        self._check_count(start, stop)
        if start == stop:
            return NONE, NONE, NONE
        first, last = self.positions_in_step(start).start, self.positions_in_step(stop - 1).stop
        codes = self.read(first, last)
        steps, _ = self.steps_of(np.arange(first, last))
        # One source only, number 0; a mixture overrides this.
        return np.zeros_like(codes), codes, np.bincount(steps - start, minlength=stop - start)

    # What it takes to read it.

    @property
    def reads_of_epoch(self) -> Reads:
        """What this host reads in an epoch, in the order of storage."""
        return self.reads

    @checked
    def consumed(self, stop: int, advance: Callable[[int], None] = ignore) -> list[int]:
        """Return how many of the first `stop` examples come from each of `sources`."""
        self._check_range(0, stop)
        advance(stop)
        return [stop]

    def forget_readings(self) -> None:
        """Give back the memory of what is kept; it is built anew when it is asked for."""
        return

    def _check_count(self, *steps: int) -> None:
        # Sorted, so the first and the last bound all of them.
        if list(steps) != sorted(steps) or steps[0] < 0 or steps[-1] > ENDLESS:
            given = " to ".join(map(str, steps))
            raise UsageError(f"batches {given}: counted from 0, upwards, to {ENDLESS} at most")

    def _check_range(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.num_examples:
            raise UsageError(
                f"start={start} and stop={stop}: the order has {self.num_examples} examples"
            )

    def _check_step(self, step: int) -> None:
        most = ENDLESS if self.num_steps is None else self.num_steps
        if not 0 <= step < most:
            batch = self.settings.batch
            batches = "batches" if batch is None else f"batches of {batch}"
            raise UsageError(f"step {step}: the order has {most} {batches}, counted from 0")

    def _checked(self, positions: Int64sLike) -> Int64s:
        wanted = np.asarray(positions)
        # Negative positions are refused: NumPy would count them from the end without a word.
        wrong = wanted[(wanted < 0) | (wanted >= self.num_examples)]
        if wrong.size:
            raise UsageError(
                f"position {wrong[0]}: the order has {self.num_examples} examples, counted from 0"
            )
        return wanted


def check_answerable(order: Order, num_examples: int) -> None:
    """Refuse to look up so many examples together, whose positions take too much memory.

    Raises:
        UsageError: they have more than `MAX_POSITIONS`.
    """
    if order.settings.epochs * num_examples > MAX_POSITIONS:
        raise UsageError(
            f"{num_examples} examples in {order.settings.epochs} epochs have more than "
            f"{MAX_POSITIONS} positions; ask for fewer --epochs"
        )
