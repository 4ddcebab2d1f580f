"""Mixtures: the choices that `sample_from_datasets` makes, and where each element comes from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import EqualByItems, Int64s, groups_of, spans
from shardctl.base.tfds_rules import STATELESS_KEY
from shardctl.errors import UsageError
from shardctl.tfdata.philox import philox_rounds, philox_samples
from shardctl.tfdata.shuffle_seeds import KernelSeeds

# Weights of `sample_from_datasets`, as TensorFlow rounds them on their way to a choice.
#
# TensorFlow takes the logarithm of each weight and hands it to `stateless_multinomial`, which
# takes the exponential of it again (tensorflow/python/data/ops/sample_from_datasets_op.py and
# tensorflow/core/kernels/multinomial_op.cc). In float32 the last bit of that logarithm moves the
# border between two datasets by 1e-7, so that it decides one choice in some ten million. Here it
# is that of TensorFlow for Linux on x86-64, bit for bit: whole groups of eight are Eigen's own
# formula (plog_impl_float in GenericPacketMathFunctions.h), those left over the logf of glibc.
# What two float64 logarithms or exponentials may differ by decides one choice in 1e14.

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
WeightsDtype = Literal["float32", "float64"]


def cumulative_of(weights: Sequence[float], dtype: WeightsDtype = "float32") -> Float64s:
    """Return the running totals, float64[n], that a uniform number is looked up in.

    weights: those above 0; dtype: what TensorFlow makes of them, float32 from Python's own floats
        and float64 from a NumPy array of these.

    >>> cumulative_of([1.0, 1.0]).tolist(), cumulative_of([0.5, 0.25]).tolist()
    ([1.0, 2.0], [1.0, 1.499999999047673])

    Raises:
        UsageError: a weight is beyond float32, which TensorFlow refuses; one is too small for a
            full mantissa, which some versions take as 0 and others do not; or none is left that
            can be chosen, and it fails at the first choice.
    """
    with np.errstate(divide="ignore", over="ignore"):
        rounded = np.array(weights, dtype)
        if (np.isinf(rounded) & np.isfinite(weights)).any():
            raise UsageError(f"weights {list(weights)}: float32 ends at 3.4e+38")
        tiny = np.finfo(dtype).tiny
        if ((rounded > 0) & (rounded < tiny)).any():
            raise UsageError(
                f"weights {list(weights)}: what is below {tiny:.2g} in {dtype} is 0 to some "
                "versions of TensorFlow and not to others; write 0"
            )
        logs = _float32_logs(rounded) if dtype == "float32" else np.log(rounded)
    logits = logs.astype(np.float64)
    finite = np.isfinite(logits)
    if not finite.any():
        raise UsageError(
            f"weights {list(weights)}: none of them is a number above 0 in {dtype}, "
            "so TensorFlow has nothing to choose"
        )
    # What is not finite is never chosen: the running total stays where it is.
    shares = np.exp(np.where(finite, logits - logits[finite].max(), -np.inf))
    return np.cumsum(shares)


def uniform_cumulative(num_inputs: int) -> Float64s:
    """Return the running totals where no weights are given: all inputs are alike."""
    return np.arange(1, num_inputs + 1, dtype=np.float64)


def weights_of_logits(logits: NDArray[np.float32] | NDArray[np.float64]) -> tuple[float, ...]:
    """Return weights whose logarithms are these, as a dataset's graph keeps them.

    Several weights may have one logarithm; they choose alike.

    >>> weights_of_logits(np.array([-0.6931472, -1.3862944], np.float32))
    (0.5, 0.25)

    Raises:
        UsageError: no weight has this logarithm, so something else made it.
    """
    near = np.exp(logits.astype(np.float64))
    if logits.dtype != np.float32:
        return tuple(near.tolist())
    weights: list[float] = []
    for place, logit in enumerate(logits):
        bits = int(near[place].astype(np.float32).view(np.int32))
        around = np.arange(max(bits - 64, 0), bits + 64, dtype=np.int32)
        candidates = around.view(np.float32)
        # The logarithm depends on the place of a weight among the others, so it keeps its place.
        at = np.arange(len(logits)) == place
        logs = [_float32_logs(np.where(at, weight, np.float32(1)))[place] for weight in candidates]
        exact = [weight for weight, log in zip(candidates, logs, strict=True) if log == logit]
        if not exact:
            raise UsageError(f"no weight has the logarithm {logit!s} in float32")
        weights.append(min((float(str(weight)) for weight in exact), key=lambda w: len(str(w))))
    return tuple(weights)


_GROUP = 8  # float32 numbers that AVX works on at once


def _float32_logs(weights: Float32s) -> Float32s:
    in_groups = len(weights) // _GROUP * _GROUP
    logs = np.concatenate(
        [_logs_of_eigen(weights[:in_groups]), _logs_of_glibc(weights[in_groups:])]
    )
    logs[weights < np.finfo(np.float32).tiny] = -np.inf
    logs[weights == np.inf] = np.inf
    return logs


_SQRT_HALF = np.float32(0.707106781186547524)
_LN2 = np.float32(0.6931471805599453)
_NUMERATOR = np.array([0.18256296349849254, 1.0000000190281063, 1.0000000190281136], np.float32)
_DENOMINATOR = np.array(
    [0.049616247954120038, 0.59923249590823520, 1.4999999999999927, 1.0], np.float32
)


def _logs_of_eigen(weights: Float32s) -> Float32s:
    """Return log(1 + x) as x p(x) / q(x), and the exponent times log 2, all in float32."""
    fraction, exponent = np.frexp(weights)
    exponents = exponent.astype(np.float32)
    low = fraction < _SQRT_HALF
    x = (fraction - np.float32(1)) + np.where(low, fraction, np.float32(0))
    exponents -= low.astype(np.float32)
    p, q = (_polynomial(coefficients, x) for coefficients in (_NUMERATOR, _DENOMINATOR))
    return exponents * _LN2 + x * p / q


def _polynomial(coefficients: Float32s, x: Float32s) -> Float32s:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


# glibc, sysdeps/ieee754/flt-32/e_logf_data.c: 1 / c and log(c) for c near the middle of 16 parts.
_PARTS = """
1.661ec79f8f3bep+0 -1.57bf7808caadep-2   1.571ed4aaf883dp+0 -1.2bef0a7c06ddbp-2
1.49539f0f010bp+0 -1.01eae7f513a67p-2    1.3c995b0b80385p+0 -1.b31d8a68224e9p-3
1.30d190c8864a5p+0 -1.6574f0ac07758p-3   1.25e227b0b8eap+0 -1.1aa2bc79c81p-3
1.1bb4a4a1a343fp+0 -1.a4e76ce8c0e5ep-4   1.12358f08ae5bap+0 -1.1973c5a611cccp-4
1.0953f419900a7p+0 -1.252f438e10c1ep-5   1p+0 0p+0
1.e608cfd9a47acp-1 1.aa5aa5df25984p-5    1.ca4b31f026aap-1 1.c5e53aa362eb4p-4
1.b2036576afce6p-1 1.526e57720db08p-3    1.9c2d163a1aa2dp-1 1.bc2860d22477p-3
1.886e6037841edp-1 1.1058bc8a07ee1p-2    1.767dcf5534862p-1 1.4043057b6ee09p-2
"""
_INVERSES, _LOGS = np.array([float.fromhex(part) for part in _PARTS.split()]).reshape(16, 2).T
_CUBIC = [float.fromhex(f"{c}") for c in ("-1.00ea348b88334p-2", "1.5575b0be00b6ap-2")]
_SQUARE = float.fromhex("-1.ffffef20a4123p-2")
_LN2_DOUBLE = float.fromhex("1.62e42fefa39efp-1")
_FIRST_PART = 0x3F330000  # the bits of the smallest c, near 0.7
_MANTISSA_BITS = 23


def _logs_of_glibc(weights: Float32s) -> Float32s:
    """Return log(c) + log(z / c) + k log 2 of weights z 2**k, in float64 and then rounded."""
    bits = weights.view(np.int32).astype(np.int64)
    offset = bits - _FIRST_PART
    part = (offset >> (_MANTISSA_BITS - 4)) & 15
    exponents = offset >> _MANTISSA_BITS
    z = (bits - (exponents << _MANTISSA_BITS)).astype(np.int32).view(np.float32).astype(np.float64)
    r = z * _INVERSES[part] - 1
    near = _LOGS[part] + exponents * _LN2_DOUBLE
    square = r * r
    y = (_CUBIC[0] * square + (_CUBIC[1] * r + _SQUARE)) * square + (near + r)
    logs: Float32s = y.astype(np.float32)
    return logs


BLOCK = 1 << 16  # choices between two checkpoints
NEVER = 1 << 62  # the choice at which an input ends that has not ended
_KEPT_BLOCKS = 8


# A choice of an input that has ended yields nothing, so elements and choices are counted apart. How
# many there were of each is kept every 65,536 choices; what lies between is chosen again when it is
# asked for, so a billion choices take a megabyte.
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

    >>> from shardctl.tfdata.mixture import cumulative_of
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
        for first, last in spans(start, stop, _TILE):
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
