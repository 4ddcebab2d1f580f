"""MixtureSchedule: which input each element of a directed interleave comes from, at any place.

A choice of an input that has ended yields nothing, so elements and choices are counted apart. How
many there were of each is kept every 65,536 choices; what lies between is chosen again when it is
asked for, so a billion choices take a megabyte.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardctl.base.arrays import EqualByItems, Int64s, groups_of
from shardctl.base.tfds_rules import STATELESS_KEY
from shardctl.tfdata.mixture_weights import Float64s
from shardctl.tfdata.philox import philox_rounds, philox_samples
from shardctl.tfdata.shuffle_seeds import KernelSeeds

BLOCK = 1 << 16  # choices between two checkpoints
NEVER = 1 << 62  # the choice at which an input ends that has not ended
_KEPT_BLOCKS = 8


class MixtureSchedule:
    """What the choices made so far came to.

    between: returns the choices from one place up to another.

    >>> turns = MixtureSchedule(lambda start, stop: np.arange(start, stop) % 2, 2)
    >>> turns.record(5, np.array([3, 2]))
    >>> turns.of(np.array([4, 1]))
    (array([0, 1]), array([2, 0]))
    >>> turns.elements(1, np.array([1]))
    array([3])
    """

    def __init__(self, between: Callable[[int, int], Int64s], num_inputs: int) -> None:
        self._between = between
        self.num_choices = 0
        self.counts = np.zeros(num_inputs, np.int64)  # elements of each input
        self._ends = np.full(num_inputs, NEVER, np.int64)
        self._checkpoints = [self.counts.copy()]
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        self._choices: tuple[int, Int64s] = (-1, self.counts)

    @property
    def num_elements(self) -> int:
        """How many choices yielded an element."""
        return int(self.counts.sum())

    def next_choices(self, limit: int) -> Int64s:
        """Return up to `limit` choices that are next, fewer in front of a checkpoint."""
        number, start = divmod(self.num_choices, BLOCK)
        known_number, known = self._choices
        if known_number != number or len(known) < min(start + limit, BLOCK):
            # A whole block at once is no dearer than several parts of it, unless few are enough.
            few = min(max(start + limit, 8 * len(known)), BLOCK)
            stop = few if limit < BLOCK // 4 else BLOCK
            known = self._between(number * BLOCK, number * BLOCK + stop)
            self._choices = (number, known)
        choices: Int64s = known[start : start + limit]
        return choices

    def record(self, num_choices: int, counts: Int64s) -> None:
        """Take further choices as made, and the elements of each input that they yielded."""
        self._blocks.pop(self.num_choices // BLOCK, None)
        self.num_choices += num_choices
        self.counts += counts
        if num_choices and self.num_choices % BLOCK == 0:
            self._checkpoints.append(self.counts.copy())
            self.__dict__.pop("_starts", None)

    def end(self, number: int) -> None:
        """Say that the next choice found an input at its end."""
        self._ends[number] = self.num_choices

    def of(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        """Return (input, which of its elements), int64[q] each, of elements handed out."""
        inputs, places = np.empty(len(elements), np.int64), np.empty(len(elements), np.int64)
        for number, here in groups_of(self._numbers(self._starts.sum(axis=1), elements)):
            block = self._block(number)
            local = elements[here] - int(self._starts[number].sum())
            inputs[here], places[here] = block.inputs[local], block.places[local]
        return inputs, places

    def elements(self, number: int, places: Int64s) -> Int64s:
        """Return the elements that are elements `places` of an input (all handed out)."""
        found = np.empty(len(places), np.int64)
        for index, here in groups_of(self._numbers(self._starts[:, number], places)):
            local = places[here] - int(self._starts[index, number])
            found[here] = self._block(index).of_input(number)[local] + self._starts[index].sum()
        return found

    @cached_property
    def _starts(self) -> Int64s:
        """Elements of each input in front of each block, int64[blocks, inputs]."""
        return np.stack(self._checkpoints)

    @staticmethod
    def _numbers(starts: Int64s, wanted: Int64s) -> Int64s:
        return np.searchsorted(starts, wanted, "right") - 1

    def _block(self, number: int) -> _Block:
        block = self._blocks.get(number)
        if block is None:
            start = number * BLOCK
            stop = min(start + BLOCK, self.num_choices)
            choices = self._between(start, stop)
            yields = np.arange(start, stop) < self._ends[choices]
            block = _Block(choices[yields], self._starts[number])
            self._blocks[number] = block
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(number)
        return block


class _Block:
    """The elements between two checkpoints: the input of each, and which of the input's it is."""

    def __init__(self, inputs: Int64s, starts: Int64s) -> None:
        self.inputs = inputs
        # Small numbers are sorted by counting.
        self._order = np.argsort(inputs.astype(np.uint16), kind="stable")
        self._ends = np.cumsum(np.bincount(inputs, minlength=len(starts)))
        self._starts = starts

    def of_input(self, number: int) -> Int64s:
        """Return the elements of one input, counted within the block."""
        first = int(self._ends[number - 1]) if number else 0
        return self._order[first : int(self._ends[number])]

    @cached_property
    def places(self) -> Int64s:
        """Which of its input's each element is, int64[n]."""
        places = np.empty(len(self.inputs), np.int64)
        for number, start in enumerate(self._starts.tolist()):
            mine = self.of_input(number)
            places[mine] = np.arange(start, start + len(mine))
        return places


# Choices of `sample_from_datasets`: which input each one takes, at any place of the sequence.
#
# TensorFlow makes them of `Dataset.random(seed).batch(2)`: the two numbers of choice k are the
# seed of `stateless_multinomial`, which draws one uniform number of 52 bits and looks it up in the
# running totals of the weights (tensorflow/core/kernels/stateless_random_ops.cc, GenerateKey, and
# multinomial_op.cc). So choice k costs only itself, wherever it is.

_KEY_0, _KEY_1 = map(np.uint64, STATELESS_KEY)
_LOW_20 = np.uint64(0xFFFFF)
_WORD_BITS = np.uint64(32)
_TILE = 1 << 14  # choices made at once: their twelve words stay in a level 2 cache
_FEW = 16  # running totals that are compared one by one faster than looked up


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledChoices(EqualByItems):
    """The choices of one iterator: those that `seeds` and `cumulative` weights fix.

    >>> from shardctl.tfdata.mixture_weights import cumulative_of
    >>> seeds = KernelSeeds(seed=87654321, seed2=42)
    >>> choices = SampledChoices(seeds=seeds, cumulative=cumulative_of([0.7, 0.3]))
    >>> choices.between(0, 12).tolist()
    [1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    """

    seeds: KernelSeeds
    cumulative: Float64s

    def between(self, start: int, stop: int) -> Int64s:
        """Return the input of each choice from `start` up to `stop`, int64."""
        choices = np.empty(stop - start, np.int64)
        for first in range(start, stop, _TILE):
            last = min(first + _TILE, stop)
            choices[first - start : last - start] = self._tile(first, last)
        return choices

    def _tile(self, start: int, stop: int) -> Int64s:
        draws = philox_samples(self.seeds.seed, self.seeds.seed2, 2 * start, 2 * (stop - start))
        words = np.zeros((4, stop - start), np.uint64)
        words[0], words[2] = draws[::2], draws[1::2]
        philox_rounds(words, _KEY_0, _KEY_1)
        key_0, key_1 = words[:2].copy()
        words[:2] = 0
        philox_rounds(words, key_0, key_1)
        bits = (words[0] & _LOW_20) << _WORD_BITS | words[1]
        wanted = bits.astype(np.float64) * 2.0**-52 * self.cumulative[-1]
        if len(self.cumulative) > _FEW:
            return np.asarray(np.searchsorted(self.cumulative, wanted, "right"), np.int64)
        found = np.zeros(len(wanted), np.int8)
        for total in self.cumulative[:-1]:
            found += wanted >= total
        return found.astype(np.int64)
