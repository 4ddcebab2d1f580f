"""How close is an order to a uniform permutation, where does it fall short, and what would help?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from shardctl.base.arguments import byte_count, checked
from shardctl.base.arrays import Int64s
from shardctl.base.columns import Tabular
from shardctl.base.phrase import option, refused
from shardctl.base.text import either, in_short
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.dataset.buffer_memory import ElementSize, element_size
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import ShardctlError, UnpredictableOrderError, UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, order_of, plan_order
from shardctl.order.sample import Floats, OrderSample, Sampled, epoch_length, sample_epoch
from shardctl.order.sources import ask_for_one_source
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
    refuse_loader,
    with_stand_in_seeds,
)
from shardctl.settings.short_form import stages_of
from shardctl.spec.subsplit import Resolved
from shardctl.stages.pipelines import readers_of
from shardctl.verbs.quality.metrics import (
    Metric,
    Score,
    Verdict,
    measured,
    near_metrics,
    score_of,
    shards_in_batch,
)

DEFAULT_WINDOW = 256


@dataclass(frozen=True, kw_only=True)
class Quality(Tabular):
    """The quality of an order, measured over one epoch of one host.

    num_examples: of the epoch. window: examples in a batch, or what is taken for one.
    assumed: example values of settings without which the order is nondeterministic.
    verdict: what the score is worth, in a word or a few.
    question: what was measured, for what it would be under other settings.
    element_size, buffer_bytes: memory of an example and of the whole buffer; None where that is
        unknown, or there is no buffer. memory: the answer about an amount of memory.
    sample: what was measured, for pictures. sampled: None where that is the whole epoch.
    """

    spec: str
    order: Order
    num_examples: int
    window: int
    assumed: Mapping[str, Any]
    score: Score
    verdict: Verdict
    metrics: tuple[Metric, ...]
    by_position: tuple[Part, ...]
    across_epochs: AcrossEpochs | None
    alternatives: tuple[Alternative, ...]
    buffer_for_target: BufferForTarget | None
    element_size: ElementSize | None
    buffer_bytes: int | None
    memory: MemoryBudget | None
    sampled: Sampled | None
    question: Question = field(repr=False, compare=False)
    sample: OrderSample = field(repr=False, compare=False)
    warnings: tuple[str, ...] = ()

    @property
    def weakest(self) -> Metric:
        """The metric that lowers the score most."""
        counted = [metric for metric in self.metrics if metric.scale != "shown"]
        return min(counted, key=lambda metric: metric.score)

    def __repr__(self) -> str:
        return in_short(
            self,
            f"{self.order.dataset.title} {self.spec}",
            f"score {self.score.value:.3f} ({self.verdict})",
            f"weakest {self.weakest.name}",
        )


@checked
def quality(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    target: float | None = None,
    what_if: bool = True,
    memory: int | str | None = None,
    example_bytes: int | str | None = None,
    **keywords: Unpack[OrderSettings],
) -> Quality:
    """Return how well the order in which a pipeline reads a spec is shuffled, and what would help.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: the split or slice, as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read. Missing seeds are replaced by example seeds, on which
            the score hardly depends.
        target: a score for which to find the smallest shuffle buffer.
        what_if: whether to score other settings, too.
        memory: bytes, or a text such as "8GiB", for which to find the buffer and its score.
        example_bytes: size of a decoded example, likewise, where the metadata does not have it or
            the pipeline keeps less of an example.

    Returns:
        A Quality; `score.value` is from 0 to 1, where 1 is a uniform permutation.

    Raises:
        UsageError: fewer than 2 examples; a bad spec, target or size; memory for
            examples of which no size is known.

    >>> import shardctl
    >>> for settings in ({}, {"buffer": 60_000}):
    ...     found = shardctl.quality("mnist", "train", settings, what_if=False)
    ...     print(round(found.score.value, 1), found.verdict, dict(found.assumed))
    0.0 no shuffle {}
    1.0 as good as uniform {'buffer_seed': 2}
    """
    dataset = as_dataset(dataset)
    settings = as_settings(settings)
    for asked, given in (("target", target), ("memory", memory)):
        if given is not None:
            refuse_fixed_buffer(settings, asked)
    # A score needs an order, and an order needs seeds; example seeds are named in the answer.
    settings, assumed = with_stand_in_seeds(settings)
    if settings.stand_ins_of_rule:
        settings, assumed = _with_seed_of_rule(dataset, spec, settings)
    return quality_of(
        plan_order(dataset, spec, settings),
        assumed,
        target=target,
        what_if=what_if,
        memory=memory,
        example_bytes=example_bytes,
    )


def quality_of(
    planned: PlannedOrder,
    assumed: Mapping[str, Any] | None = None,
    *,
    target: float | None = None,
    what_if: bool = True,
    memory: int | str | None = None,
    example_bytes: int | str | None = None,
) -> Quality:
    """Return how well an order that is planned is shuffled; the rest is as of `quality`.

    assumed: settings of it that are example values, None where it has none.

    Raises:
        UsageError: as for `quality`.
    """
    assumed = assumed or {}
    order = planned.order
    num_examples = epoch_length(order)
    _check(planned.spec, num_examples, target)
    budget = _bytes("memory", memory)
    window = _window(order, num_examples)
    splits = tuple({piece.split.name: piece.split for piece in planned.ranges}.values())
    question = Question(
        settings=order.settings,
        window=window,
        element_size=element_size(order.dataset, splits, _bytes("example_bytes", example_bytes)),
        resolved=planned.resolved,
        asked=order,
    )
    sample = sample_epoch(order, window=window)
    metrics, score, verdict = measured(order, sample, window)
    if len(sample.shard_sizes) > 1 and window <= sample.length:
        metrics.append(shards_in_batch(sample, window))
    # The buffer cannot hold more than there is.
    held = None if order.one_buffer is None else min(order.one_buffer, order.stream_size)
    return Quality(
        spec=planned.spec,
        order=order,
        num_examples=num_examples,
        window=window,
        assumed=assumed,
        score=score,
        verdict=verdict,
        metrics=tuple(metrics),
        by_position=by_position(sample, window),
        across_epochs=across_epochs(question, sample),
        alternatives=alternatives(question) if what_if else (),
        buffer_for_target=None if target is None else buffer_for_target(question, target),
        element_size=question.element_size,
        buffer_bytes=None if held is None else question.buffer_bytes(held),
        memory=None if budget is None else memory_budget(question, budget),
        sampled=sample.sampled,
        question=question,
        sample=sample,
        warnings=(*planned.resolved.warnings, *planned.of_version, *_notes(assumed, order)),
    )


def _with_seed_of_rule(
    dataset: Dataset, spec: str | None, settings: ReadSettings
) -> tuple[ReadSettings, dict[str, Any]]:
    """Return settings whose order a loader's rule fixes, by a seed that it takes if need be."""
    # First without a seed: some rules need none.
    for assumed in ({}, *({name: 1} for name in settings.stand_ins_of_rule)):
        with suppress(ShardctlError):
            seeded = replace(settings, **assumed)  # type: ignore[arg-type]
            plan_order(dataset, spec, seeded)
            return seeded, dict(assumed)
    return settings, {}  # what is wrong is said where the order is planned


def _notes(assumed: Mapping[str, Any], order: Order) -> list[str]:
    notes: list[str] = []
    seeds = [option(name, value) for name, value in assumed.items() if name != "deterministic"]
    if "deterministic" in assumed:
        notes.append(
            "the order depends on timing, which shuffles slightly more; measured as if "
            "--deterministic"
        )
    if seeds:
        notes.append(
            f"missing seeds are replaced by example seeds: {' '.join(seeds)}; others score about "
            "the same"
        )
    if order.codes.several_splits:
        notes.append("several splits are read: in storage one follows the other")
    return notes


def _check(spec: str, num_examples: int, target: float | None) -> None:
    if num_examples < 2:
        raise UsageError(f"quality needs at least 2 examples, and {spec} has {num_examples} here")
    if target is not None and not 0 < target <= 1:
        raise refused("{target=}: give a score above 0, at most 1", target=target)


def _bytes(name: str, value: int | str | None) -> int | None:
    if value is None:
        return None
    try:
        number = byte_count(value)
    except UsageError as error:
        raise UsageError(f"{option(name, value, given=True)}: {error}") from None
    # "8" is most likely 8 GiB with its unit left out.
    if name == "memory" and isinstance(value, str) and value.isdigit() and number < _LEAST_BYTES:
        raise refused("{memory!}: give a unit, as in {}GiB", value, memory=value)
    return number


_LEAST_BYTES = 1 << 16  # of memory: a smaller number is one of GiB, or of a unit left out


def _window(order: Order, num_examples: int) -> int:
    """Return the examples in a batch; or without batches of two an assumed number."""
    batch = order.batch_size
    if batch is not None and batch > 1:
        return min(batch, num_examples)
    return max(2, min(DEFAULT_WINDOW, num_examples // 4))


# Is an order as good as the least that is asked for?

# The verdicts that a minimum may name, from the worst; `uniform` is what a score can show.
_RANKS: tuple[Verdict, ...] = get_args(Verdict)[:-1]
_SHORT: dict[str, Verdict] = {"uniform": "close to uniform"}
MINIMUM_WORDS = (*_RANKS[1:-2], *_SHORT)


def minimum_score(value: object) -> float | Verdict:
    """Return the least that a score is to be: a number, or the verdict that a word names.

    >>> minimum_score("0.8"), minimum_score("good"), minimum_score("uniform")
    (0.8, 'good', 'close to uniform')

    Raises:
        UsageError: neither a number from 0 to 1 nor such a word.
    """
    word = str(value).strip().lower()
    word = _SHORT.get(word, word)
    if word in _RANKS[1:]:
        return word
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:  # also refuses nan
        raise refused(
            "{min_score!}: give a score from 0 to 1, or {}", either(MINIMUM_WORDS), min_score=value
        )
    return number


def reaches(score: Score, verdict: Verdict, minimum: float | Verdict) -> bool:
    """Return whether a score is enough: for a number the score itself, for a word its verdict.

    The verdict "cannot tell" reaches no word.
    """
    if not isinstance(minimum, str):
        return score.value >= minimum
    # `_RANKS` goes from the worst verdict to the best, without "cannot tell".
    return verdict in _RANKS and _RANKS.index(verdict) >= _RANKS.index(minimum)


def shortfall(plan: Quality, minimum: float | Verdict) -> str | None:
    """Return why an order is not as good as the least that is asked for, None where it is."""
    score, uniform = plan.score.value, plan.score.expected
    if reaches(plan.score, plan.verdict, minimum):
        return None
    if isinstance(minimum, str):
        return f"score {score:.4f} ({plan.verdict}) is not {minimum}"
    even = f"; even a uniform permutation scores {uniform:.4f}" * (minimum > uniform)
    return f"score {score:.4f} ({plan.verdict}) is below {minimum:g}{even}"


# How well is each part of an epoch mixed locally?

_NUM_PARTS = 10


@dataclass(frozen=True, kw_only=True)
class Part:
    """How well a part of the epoch, positions [start, stop), is mixed locally.

    `mean_storage` is where in storage its examples lie on average, from 0 to 1; uniform 0.5.
    """

    start: int
    stop: int
    score: Score
    mean_storage: float


def by_position(sample: OrderSample, window: int) -> tuple[Part, ...]:
    """Return the quality of equal parts of an epoch, ten at most."""
    # At least one window in a part, and one example.
    count = max(1, min(_NUM_PARTS, sample.num_positions // window, len(sample.ranks[0])))
    if not sample.complete:
        count = min(_NUM_PARTS, len(sample.starts) // 2)
    return tuple(_part(sample, i / count, (i + 1) / count, window) for i in range(count))


def _part(sample: OrderSample, first: float, last: float, window: int) -> Part:
    piece = sample.part(first, last, window)
    # Of a sample, the part's bounds are those of the whole epoch, not of what was measured.
    start = int(piece.starts[0]) if piece.complete else round(first * sample.num_positions)
    return Part(
        start=start,
        stop=start + piece.length if piece.complete else round(last * sample.num_positions),
        score=score_of(near_metrics(piece, window)),
        mean_storage=(float(piece.ranks.mean()) + 0.5) / sample.num_ranks,
    )


# How alike are the orders of two epochs?


@dataclass(frozen=True, kw_only=True)
class AcrossEpochs:
    """How an epoch compares with the next.

    unit: "epoch" or "pass". same_order: whether both yield the examples in one order.
    correlation: of what the same positions hold, 1 where both go through storage alike; 0, with
        this spread, under two uniform permutations.
    """

    unit: str
    same_order: bool
    correlation: float
    spread: float


def across_epochs(question: Question, sample: OrderSample) -> AcrossEpochs | None:
    """Return how an epoch compares with the next: of the pass, or else the first of the next pass.

    None where the next pass depends on timing.
    """
    # The epoch in the pass, or the first epoch of the next pass where a pass has only one.
    settings, epoch, unit, second = question.settings, 1, "epoch", question.asked
    try:
        if not second.has_second_epoch:
            following: dict[str, Any] = {"epochs": 2}  # a second one is all there is
            if not settings.takes("epochs") and not settings.takes("pass_index"):
                return None  # a chain says itself how often it reads, and that is once
            if settings.takes("pass_index"):
                following, epoch, unit = {"pass_index": settings.pass_index + 1}, 0, "pass"
            second = question.order(replace(settings, **following))
        again = sample_epoch(second, epoch=epoch, window=question.window)
    except UnpredictableOrderError:
        # Timing decides what the next pass reads.
        return None
    # The last epoch of a pass may be cut short by a batch that is dropped.
    length = min(sample.length, again.length)
    first, other = (_centred(one.ranks[:, :length], one.num_ranks) for one in (sample, again))
    # Of stretches the mean and the spread are those of the whole, so their product may pass 1.
    correlation = float((first * other).mean())
    return AcrossEpochs(
        unit=unit,
        # Equal numbers are drawn of equal seeds alone.
        same_order=np.array_equal(sample.codes, again.codes),
        correlation=max(-1.0, min(1.0, correlation)),
        spread=1 / math.sqrt(max(1, first.size - 1)),
    )


def _centred(ranks: Int64s, n: int) -> Floats:
    # Less the mean of all n ranks, over their standard deviation: the mean of products of such
    # numbers is a correlation coefficient. Of one rank alone, which does not vary, it is 0.
    return np.asarray((ranks - (n - 1) / 2) / math.sqrt(max(1, n * n - 1) / 12), np.float64)


# What would other settings score, and how large must a shuffle buffer be?

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
