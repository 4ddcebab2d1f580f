"""What would other settings score, and how large must a shuffle buffer be?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shardctl.base.phrase import option, refused
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.dataset.element_size import ElementSize
from shardctl.errors import ShardctlError, UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import order_of
from shardctl.order.sample import epoch_length, sample_epoch
from shardctl.order.sources import ask_for_one_source
from shardctl.settings.read_settings import ReadSettings, refuse_loader
from shardctl.settings.short_form import stages_of
from shardctl.spec.subsplit import Resolved
from shardctl.stages.pipelines import readers_of
from shardctl.verbs.quality.metrics import Score, Verdict, measured

_LIMIT = 1 << 18  # examples up to which an alternative is measured whole
_SHUFFLED: dict[str, Any] = {"shuffle_files": True, "shuffle_seed": 1}
_BUFFER_SEED = 2


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The score under some settings, and what it is worth."""

    score: Score
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Question:
    """The pipeline whose quality is asked for.

    `window` is the examples in a batch, `element_size` what an example takes in a buffer, if known,
    `resolved` what the spec selects, or the readers of stages, `asked` the order under `settings`.
    """

    resolved: Resolved
    settings: ReadSettings
    window: int
    element_size: ElementSize | None = None
    asked: Order

    def order(self, settings: ReadSettings) -> Order:
        """Return the order under other settings."""
        return self.asked if settings == self.settings else order_of(self.resolved, settings).order

    def measured(self, settings: ReadSettings) -> Measured:
        """Return the score under other settings, from a sample where there are many examples."""
        order = self.order(settings)
        if not epoch_length(order):  # of other files a host has no whole batch, as of these it has
            raise UsageError("these settings yield no example")
        window = min(self.window, epoch_length(order))
        sample = sample_epoch(order, window=window, limit=_LIMIT)
        _, score, verdict = measured(order, sample, window)
        return Measured(score=score, verdict=verdict)

    def buffer_bytes(self, buffer: int) -> int | None:
        """Return the size in bytes of a buffer of so many examples, None if unknown."""
        return None if self.element_size is None else self.element_size.of(buffer)


@dataclass(frozen=True, kw_only=True)
class Alternative(Measured):
    """A change of the settings, as options are typed, and the score it leads to.

    `buffer` is the size of a buffer that is new, `num_bytes` what it takes, if that is known.
    """

    change: str
    buffer: int | None = None
    num_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class BufferForTarget:
    """The smallest shuffle buffer that reaches a score, to two digits.

    buffer: 0 where none is needed, None where not even the whole epoch does.
    score: with that buffer, or with the whole epoch. num_bytes: what it takes, None if unknown.
    """

    target: float
    buffer: int | None
    score: float
    num_bytes: int | None


def alternatives(question: Question) -> tuple[Alternative, ...]:
    """Return the score as it is and after each change by itself.

    All are measured alike. What TFDS refuses for this dataset is left out, and what has no effect.
    """
    if not question.settings.reader.on_tf_data:
        return ()  # the changes are those of TFDS's reader, its files and its buffer
    found: list[Alternative] = []
    # Measured by one method, so the scores can be compared with each other.
    for change, settings, buffer in [("as it is", question.settings, None), *_other(question)]:
        with suppress(ShardctlError):
            change_of = question.measured(settings)
            # An equal score means the change had no effect at all: scores of different orders
            # hardly agree in every digit.
            if any(change_of.score == other.score for other in found):
                continue  # no effect: there is one file, or fewer than are read at a time
            size = None if buffer is None else question.buffer_bytes(buffer)
            found.append(
                Alternative(**vars(change_of), change=change, buffer=buffer, num_bytes=size)
            )
    return tuple(found)


def with_buffer(settings: ReadSettings, size: int) -> ReadSettings:
    """Return the settings with a shuffle buffer of a size, in place of any there is."""
    seed = settings.buffer_seed
    if seed is None and settings.global_seed is None:
        seed = _BUFFER_SEED
    return replace(settings, buffer=size, buffer_seed=seed)


def _without_buffer(settings: ReadSettings) -> ReadSettings:
    return replace(settings, buffer=None, buffer_seed=None, buffer_reshuffle=None)


def _other(question: Question) -> Iterator[tuple[str, ReadSettings, int | None]]:
    settings = question.settings
    if any(read.settings for read in readers_of(stages_of(settings))):
        return  # readers with settings of their own take nothing of others
    seed = _SHUFFLED["shuffle_seed"]
    if not settings.shuffles_files:
        yield f"--shuffle-seed {seed}", replace(settings, **_SHUFFLED), None
    cycle = settings.cycle_length(ordered=question.resolved.dataset.ordered)
    # Four and sixteen times as many files at once.
    for factor in (4, 16):
        yield f"--cycle {cycle * factor}", replace(settings, cycle=cycle * factor, cpus=None), None
    if settings.block > 1:
        yield "--block 1", replace(settings, block=1), None
    if not settings.takes("buffer"):
        return  # the stages say themselves where what is shuffled
    num_examples = epoch_length(question.order(settings))
    present = num_examples if settings.buffer == WHOLE_DATASET else settings.buffer
    sizes = (1_000, 10_000, 100_000) if present is None else (10 * present,)
    # Sizes beyond the epoch become the whole epoch; equal ones are tried once.
    for size in dict.fromkeys(min(size, num_examples) for size in sizes):
        if size != present:
            buffered = with_buffer(settings, size)
            yield f"--buffer {size}", buffered, size
            if not settings.shuffles_files and size < num_examples:
                both = f"--shuffle-seed {seed} --buffer {size}"
                yield both, replace(buffered, **_SHUFFLED), size


def refuse_fixed_buffer(settings: ReadSettings, asked: str) -> None:
    """Refuse a question about the buffer of a pipeline that has stages.

    Raises:
        UsageError: there are stages, or another loader reads, which has no such buffer.
    """
    refuse_loader(
        settings, f"the buffer that {option(asked)} finds", "compare the scores of other settings"
    )
    if not settings.takes("buffer"):
        raise refused(
            "{} finds a buffer, and {stages} have their own; change the shuffle in {stages}{}",
            option(asked),
            ask_for_one_source(settings),
        )


def buffer_for_target(question: Question, target: float) -> BufferForTarget:
    """Return the smallest `ds.shuffle` buffer, in place of any there is, that reaches a score.

    The score grows with the buffer but for the sampling error, so halving the interval finds it to
    a hundredth; it is rounded up to two digits.
    """
    settings = question.settings
    bare = _without_buffer(settings)
    without = question.measured(bare).score.value
    # The target may be reached without any buffer.
    if without >= target:
        return BufferForTarget(target=target, buffer=0, score=without, num_bytes=0)

    def score(size: int) -> float:
        return question.measured(with_buffer(settings, size)).score.value

    most = max(1, epoch_length(question.order(bare)))
    largest = score(most)
    if largest < target:
        return BufferForTarget(target=target, buffer=None, score=largest, num_bytes=None)
    low, high = 1, most
    while high - low > max(1, low // 100):
        # Halved on a logarithmic scale: the answer may lie anywhere between 1 and billions.
        # The geometric mean of the bounds. `isqrt` keeps whole numbers exact.
        middle = max(low + 1, min(high - 1, math.isqrt(low * high)))
        if score(middle) >= target:
            high = middle
        else:
            low = middle
    buffer = min(most, _rounded_up(high))
    # Rounding up can land on a size whose sample scores a little lower, so the next ones are tried.
    while (reached := score(buffer)) < target and buffer < most:
        buffer = min(most, _rounded_up(buffer + 1))
    return BufferForTarget(
        target=target, buffer=buffer, score=reached, num_bytes=question.buffer_bytes(buffer)
    )


def _rounded_up(number: int) -> int:
    """Return the number with two digits and zeros that is not below.

    >>> _rounded_up(23_411), _rounded_up(99_500), _rounded_up(7)
    (24000, 100000, 7)
    """
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


# Which shuffle buffer fits into an amount of memory, and how well does it shuffle?


@dataclass(frozen=True, kw_only=True)
class MemoryBudget(Measured):
    """What fits into an amount of memory: a buffer in place of any other, and its score.

    num_bytes: the memory. fits: examples that fit into it. buffer: the buffer to use, which is not
        larger than the epoch; None where not even two examples fit.
    """

    num_bytes: int
    fits: int
    buffer: int | None
    whole_epoch: bool


def memory_budget(question: Question, num_bytes: int) -> MemoryBudget:
    """Return which buffer fits into an amount of memory, and its score.

    Raises:
        UsageError: nothing is known of the size of an example.
    """
    size = question.element_size
    if size is None:
        raise refused(
            "{memory} needs the size of a decoded example, which this metadata does not have; "
            "give {example_bytes=N}"
        )
    bare = _without_buffer(question.settings)
    num_examples, fits = epoch_length(question.order(bare)), size.fits(num_bytes)
    buffer = min(fits, num_examples)
    bought = question.measured(with_buffer(question.settings, buffer) if buffer > 1 else bare)
    return MemoryBudget(
        **vars(bought),
        num_bytes=num_bytes,
        fits=fits,
        buffer=buffer if buffer > 1 else None,
        whole_epoch=fits >= num_examples,
    )
