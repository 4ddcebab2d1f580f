"""Grain's own orders: chains of its datasets, and of its DataLoader, in closed form.

What settings say is a chain as well (`chain_of`), so one rule answers both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import option, refused
from shardctl.errors import UsageError
from shardctl.loaders import grain_stages as ast
from shardctl.loaders.grain_rows import NUM_SEEDS, Rows, joined
from shardctl.loaders.grain_shuffle import is_permutation
from shardctl.loaders.loader_sequence import ENDLESS, Batches, LoaderConfig, LoaderSequence
from shardctl.stages.pipelines import parts_of

# Numbers of records beyond this are none that anybody has.
_MOST = 1 << 61
_MOST_COUNTED = 1 << 24  # places of which it is counted which examples come twice
_PIECE = 1 << 18  # elements that are looked up at once


def grain_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process of Grain yields.

    Raises:
        UsageError: Grain refuses these settings, or they are settings of two of its ways.
    """
    if config.stages is None:
        _check(config)
    chain = ast.chain_of(config)
    rows = ast.Reading(config=config).rows(chain)
    if ast.kind_of(chain) == "map":
        rows = ast.iterated(rows, chain)
    holds_several = any(isinstance(part, ast.Batch | ast.Zip) for part in parts_of(chain))
    return GrainSequence(rows, config, holds_several=holds_several)


def _check(config: LoaderConfig) -> None:
    """Refuse settings that no chain says, or that the chain would say by other names."""
    _check_seed("shuffle_seed", config.seed)
    # Positions are int64, with room for sums.
    if config.num_examples * config.epochs >= _MOST:
        raise UsageError(f"Grain cannot count {config.num_examples} examples")
    if not ast.reads_map_dataset(config):
        if config.host_by != "even":
            raise refused(
                "Grain has no {}: its hosts share by {host_by=even} (ShardOptions) or "
                "{host_by=examples} (a slice of a MapDataset)",
                option("host_by", config.host_by),
            )
        return
    if config.shares and config.host_by != "examples":
        raise refused(
            "{buffer} is the shuffle of windows of Grain's MapDataset, whose hosts share by "
            "{host_by=examples}"
        )
    if config.drop_shard_remainder:
        raise refused(
            "{drop_shard_remainder} is of Grain's IndexSampler; a slice of a MapDataset "
            "({host_by=examples}) drops nothing"
        )
    if config.buffer is not None:
        _check_windows(config, config.buffer)


def _check_windows(config: LoaderConfig, size: int) -> None:
    if size < 1:
        raise refused(
            "{}: Grain shuffles windows of 1 example at least; {shuffle_seed=N} shuffles all",
            option("buffer", size),
        )
    if config.buffer_seed is None:
        raise refused(
            "{buffer} is WindowShuffleMapDataset, which needs a seed; give {buffer_seed=N}"
        )
    _check_seed("buffer_seed", config.buffer_seed)
    # Number of the last window, whose seed must still be valid.
    own = range(config.host, config.num_examples * config.epochs, config.num_hosts)
    last_window = own[-1] // size if own else 0
    if config.buffer_seed + last_window >= NUM_SEEDS:
        raise refused(
            "{}: Grain adds the number of the window, up to {}, and refuses seeds beyond {}",
            option("buffer_seed", config.buffer_seed),
            last_window,
            NUM_SEEDS - 1,
        )


def _check_seed(name: str, seed: int | None) -> None:
    if seed is not None and not 0 <= seed < NUM_SEEDS:
        raise UsageError(f"{option(name, seed)}: Grain takes seeds from 0 to {NUM_SEEDS - 1}")


class GrainSequence(LoaderSequence):
    """The examples of the elements that one process of Grain yields."""

    is_made_whole = False

    def __init__(self, rows: Rows, config: LoaderConfig, *, holds_several: bool) -> None:
        self.rows, self.config = rows, config
        self._elements = Elements(rows)
        self.is_endless = rows.length >= ENDLESS
        self.num_examples = ENDLESS if self.is_endless else self._elements.num_examples
        self.epoch_size = min(rows.epoch, self.num_examples)
        self.batches = self._elements if holds_several else None
        self.shuffles, self.is_uniform, self.among = rows.shuffles, rows.is_uniform, rows.among

    def indices_at(self, positions: Int64s) -> Int64s:
        """Return the index of the example at each position, int64[q]."""
        return self._examples_at(positions)[0]

    def epochs_at(self, positions: Int64s) -> Int64s:
        """Return the epoch of each position, int64[q], counted from 0."""
        return self._examples_at(positions)[1]

    def _examples_at(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        if not len(positions):
            return positions, positions
        elements, within = self._elements.steps_of(positions)
        if self.batches is None:
            found = self.rows.examples(elements)
            return found.indices, found.epochs
        # Many positions are of one element, which is made once.
        different, which = np.unique(elements, return_inverse=True)
        found = self.rows.examples(different)
        places = (np.cumsum(found.widths) - found.widths)[which] + within
        return found.indices[places], found.epochs[places]

    def positions_of(self, indices: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which of `indices`, position), int64[r] each, for each time one is yielded."""
        pieces = []
        for start in range(0, max(len(indices), 1), _PIECE):
            piece = indices[start : start + _PIECE]
            which, elements, within = self.rows.find(piece, self.rows.length)
            pieces.append((which + start, elements, within))
        which, elements, within = joined(pieces)
        return which, self._elements.starts_of(elements) + within

    def starts_of(self, elements: int) -> int:
        """Return how many examples the first `elements` elements hold."""
        return int(self._elements.starts_of(np.array([elements]))[0])

    def elements_before(self, position: int) -> int:
        """Return how many elements the examples before a position are.

        Raises:
            UsageError: it is not the first of an element.
        """
        if not 0 <= position <= self.num_examples:
            raise UsageError(f"position {position} of {self.num_examples}")
        if position == self.num_examples:
            return self._elements.num_batches
        steps, within = self._elements.steps_of(np.array([position]))
        if within[0]:
            start = position - int(within[0])
            raise UsageError(
                f"position {position} is in the midst of a batch, and a state is between two; "
                f"that batch begins at {start}"
            )
        return int(steps[0])

    def num_again(self, all_hosts: Sequence[LoaderSequence]) -> int:
        """Return how many examples Grain's shuffles yield in place of others.

        A window that reaches beyond the epoch takes examples of the next one, and of a few sizes
        the shuffle is no permutation.
        """
        config = self.config
        if config.stages is not None:
            return 0
        window, total = config.buffer, config.num_examples
        sizes = [row.stop - row.start for row in self.among or ()]
        if window is None and (config.seed is None or all(map(is_permutation, sizes))):
            return 0
        # Windows before the last are whole: each yields its own part of storage.
        whole = total // window * window if window and is_permutation(window) else 0
        whole = 0 if config.seed is not None else whole
        if total - whole > _MOST_COUNTED:
            raise refused(
                "{}: what Grain yields twice is counted of {:,} examples at most; give "
                "another {buffer}",
                option("buffer", window),
                _MOST_COUNTED,
            )
        found = [one._from(whole) for one in all_hosts if isinstance(one, GrainSequence)]
        indices = np.concatenate(found)
        return len(indices) - len(np.unique(indices[indices >= whole]))

    def _from(self, number: int) -> Int64s:
        """Return the examples of this host that come from a number of all hosts on."""
        first = max(0, -(-(number - self.config.host) // self.config.num_hosts)) if number else 0
        return self.indices_at(np.arange(first, self.num_examples))


class Elements(Batches):
    """Where elements begin among the positions; of those of one width by a division."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.num_batches = min(rows.length, ENDLESS)
        self._regular = min(rows.regular, rows.length)
        # Where elements behind the regular ones begin; looked up as far as is asked for.
        self._starts = np.array([self._regular * rows.width if self._regular < ENDLESS else 0])

    @property
    def num_examples(self) -> int:
        """Number of examples in all elements."""
        return int(self._look(self._rows.length, None)[-1])

    def _look(self, elements: int, positions: int | None) -> Int64s:
        while (behind := self._regular + len(self._starts) - 1) < self._rows.length:
            if behind >= elements and (positions is None or self._starts[-1] > positions):
                break
            numbers = np.arange(behind, min(behind + _PIECE, self._rows.length))
            more = self._starts[-1] + np.cumsum(self._rows.widths(numbers))
            self._starts = np.concatenate([self._starts, more])
        return self._starts

    def steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """Return (element, index of the example in it), int64[q] each."""
        steps, within = np.divmod(positions, max(self._rows.width, 1))
        late = np.flatnonzero(steps >= self._regular)
        if len(late):
            starts = self._look(0, int(positions.max()))
            elements = np.searchsorted(starts, positions[late], side="right") - 1
            steps[late] = self._regular + elements
            within[late] = positions[late] - starts[elements]
        return steps, within

    def starts_of(self, elements: Int64s) -> Int64s:
        """Return the position of the first example of elements, int64[q]."""
        starts: Int64s = elements * self._rows.width
        late = np.flatnonzero(elements >= self._regular)
        if len(late):
            known = self._look(int(elements.max()) + 1, None)
            starts[late] = known[elements[late] - self._regular]
        return starts

    def bounds(self, step: int) -> tuple[int, int]:
        """Return the positions [start, stop) of an element."""
        start, stop = self.starts_of(np.array([step, step + 1])).tolist()
        return start, stop
