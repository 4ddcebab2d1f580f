"""How close is an order to a uniform permutation, where does it fall short, and what would help?"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from shardctl.base.arguments import byte_count, checked
from shardctl.base.columns import Tabular
from shardctl.base.phrase import option, refused
from shardctl.base.text import either, in_short
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.dataset.element_size import ElementSize, element_size
from shardctl.errors import ShardctlError, UnpredictableOrderError, UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.sample import OrderSample, Sampled, epoch_length, sample_epoch
from shardctl.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
    with_stand_in_seeds,
)
from shardctl.verbs.quality.across import AcrossEpochs, AcrossHosts, across_epochs, across_hosts
from shardctl.verbs.quality.metrics import (
    FAIR,
    GOOD,
    Metric,
    Score,
    Verdict,
    buffer_coverage,
    far_metrics,
    lowest_uniform,
    near_metrics,
    score_of,
    shards_in_batch,
    verdict_of,
)
from shardctl.verbs.quality.what_if import (
    Alternative,
    BufferForTarget,
    MemoryBudget,
    Question,
    alternatives,
    buffer_for_target,
    has_alternatives,
    memory_budget,
    refuse_fixed_buffer,
    with_buffer,
)

DEFAULT_WINDOW = 256
_LONGEST_BUFFER_WINDOW = 4096


@dataclass(frozen=True, kw_only=True)
class Quality(Tabular):
    """The quality of an order, measured over one epoch of one host.

    num_examples: of the epoch. window: examples in a batch, or what is taken for one.
    assumed: stand-ins for settings that the pipeline leaves open.
    num_classes: how many the labels sorted in storage are taken to have, None where not asked.
    verdict: what the score is worth, in a word or a few.
    question: what was measured, for what it would be under other settings.
    element_size, buffer_bytes: what an example, and the whole buffer, take in memory; None where
        that is not known, or there is no buffer. memory: what an amount of memory buys.
    sample: what was measured, of which pictures are made. sampled: None where that is all of it.
    """

    spec: str
    order: Order
    num_examples: int
    window: int
    assumed: Mapping[str, Any]
    num_classes: int | None
    score: Score
    verdict: Verdict
    metrics: tuple[Metric, ...]
    by_position: tuple[Part, ...]
    tail: Part | None
    across_epochs: AcrossEpochs | None
    across_hosts: AcrossHosts | None
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
    num_classes: int | None = None,
    target: float | None = None,
    what_if: bool = True,
    memory: int | str | None = None,
    example_bytes: int | str | None = None,
) -> Quality:
    """Return how well the order in which a pipeline reads a spec is shuffled, and what would help.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: how it is read. Seeds that are not given get stand-ins: the quality depends on
            them little.
        num_classes: labels are sorted in storage, in so many classes of equal size; 0 is one a
            shard.
        target: a score for which to find the smallest shuffle buffer.
        what_if: whether to measure alternatives, too.
        memory: bytes, or a text such as "8GiB", for which to say what buffer they hold and how well
            it shuffles.
        example_bytes: what a decoded example takes, likewise, where the metadata does not say it or
            less is kept of an example.

    Returns:
        A Quality; `score.value` is from 0 to 1, where 1 is a uniform permutation.

    Raises:
        UsageError: fewer than 2 examples; a bad spec, target, size or number of classes; memory for
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
    if target is not None:
        refuse_fixed_buffer(settings, "target")
    if memory is not None:
        refuse_fixed_buffer(settings, "memory")
    settings, assumed = with_stand_in_seeds(settings)
    if settings.stand_ins_of_rule:
        settings, assumed = _with_seed_of_rule(dataset, spec, settings)
    return quality_of(
        plan_order(dataset, spec, settings),
        assumed,
        num_classes=num_classes,
        target=target,
        what_if=what_if,
        memory=memory,
        example_bytes=example_bytes,
    )


def quality_of(
    planned: PlannedOrder,
    assumed: Mapping[str, Any] | None = None,
    *,
    num_classes: int | None = None,
    target: float | None = None,
    what_if: bool = True,
    memory: int | str | None = None,
    example_bytes: int | str | None = None,
) -> Quality:
    """Return how well an order that is planned is shuffled; the rest is as of `quality`.

    assumed: settings of it that are stand-ins, None where it has none.

    Raises:
        UsageError: as for `quality`.
    """
    assumed = assumed or {}
    order = planned.order
    num_examples = epoch_length(order)
    _check(planned.spec, num_examples, num_classes, target)
    budget = _bytes("memory", memory)
    window = _window(order, num_examples)
    splits = tuple({piece.split.name: piece.split for piece in planned.ranges}.values())
    question = Question(
        settings=order.settings,
        window=window,
        num_classes=num_classes,
        element_size=element_size(order.dataset, splits, _bytes("example_bytes", example_bytes)),
        resolved=planned.resolved,
        asked=order,
    )
    sample = sample_epoch(order, window=window)
    metrics = _metrics(order, sample, window, num_classes)
    parts, tail = by_position(sample, window, num_classes)
    score = score_of(metrics)
    held = None if order.one_buffer is None else min(order.one_buffer, order.stream_size)
    return Quality(
        spec=planned.spec,
        order=order,
        num_examples=num_examples,
        window=window,
        assumed=assumed,
        num_classes=num_classes or (None if num_classes is None else len(sample.shard_sizes)),
        score=score,
        verdict=verdict_of(score, order),
        metrics=metrics,
        by_position=parts,
        tail=tail,
        across_epochs=across_epochs(question, order, sample),
        across_hosts=across_hosts(question),
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
    try:
        plan_order(dataset, spec, settings)
    except UnpredictableOrderError:
        for name in settings.stand_ins_of_rule:
            with contextlib.suppress(ShardctlError):
                seeded = replace(settings, **{name: 1})  # type: ignore[arg-type]
                plan_order(dataset, spec, seeded)
                return seeded, {name: 1}
        raise
    return settings, {}


def _notes(assumed: Mapping[str, Any], order: Order) -> list[str]:
    notes: list[str] = []
    seeds = [option(name, value) for name, value in assumed.items() if name != "deterministic"]
    if "deterministic" in assumed:
        notes.append(
            "the order depends on timing, which mixes a little more; measured as if --deterministic"
        )
    if seeds:
        notes.append(
            f"no seed is given: measured with {' and '.join(seeds)}; others give about the same"
        )
    if order.codes.several_splits:
        notes.append("several splits are read: in storage one follows the other")
    return notes


def _check(spec: str, num_examples: int, num_classes: int | None, target: float | None) -> None:
    if num_examples < 2:
        raise UsageError(
            f"the quality of an order needs 2 examples at least, and {spec} has {num_examples} here"
        )
    if num_classes is not None and not 0 <= num_classes <= num_examples:
        raise refused(
            "{num_classes=}: {} has {} examples; give 1 to that many",
            spec,
            num_examples,
            num_classes=num_classes,
        )
    if target is not None and not 0 < target <= 1:
        raise refused("{target=}: a score above 0, at most 1, is needed", target=target)


def _bytes(name: str, value: int | str | None) -> int | None:
    try:
        return None if value is None else byte_count(value)
    except UsageError as error:
        raise UsageError(f"{option(name, value, given=True)}: {error}") from None


def _window(order: Order, num_examples: int) -> int:
    """Return the examples in a batch; without batches, or with batches of one, a stand-in."""
    batch = order.batch_size
    if batch is not None and batch > 1:
        return min(batch, num_examples)
    return max(2, min(DEFAULT_WINDOW, num_examples // 4))


def _metrics(
    order: Order, sample: OrderSample, window: int, num_classes: int | None
) -> tuple[Metric, ...]:
    found = [*near_metrics(sample, window, num_classes), *far_metrics(sample)]
    if len(sample.shard_sizes) > 1 and window <= sample.length:
        found.append(shards_in_batch(sample, window))
    if order.one_buffer is not None:
        buffer = min(order.one_buffer, _LONGEST_BUFFER_WINDOW, sample.num_positions)
        if buffer > sample.length:
            sample = sample_epoch(order, window=buffer)
        if buffer > 1:
            found.append(buffer_coverage(sample, buffer))
    return tuple(found)


# Is an order as good as the least that is asked for, and what is the cheapest cure?

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
    for verdict in _RANKS[1:]:
        if verdict == word:
            return verdict
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:  # also refuses nan
        raise refused(
            "{min_score!}: a score from 0 to 1, or {}, is needed",
            either(MINIMUM_WORDS),
            min_score=value,
        )
    return number


def reaches(score: Score, verdict: Verdict, minimum: float | Verdict) -> bool:
    """Return whether a score is enough: for a number the score itself, for a word its verdict.

    One of which nothing can be told reaches no word.
    """
    if not isinstance(minimum, str):
        return score.value >= minimum
    return verdict in _RANKS and _RANKS.index(verdict) >= _RANKS.index(minimum)


def shortfall(plan: Quality, minimum: float | Verdict) -> str | None:
    """Return why an order is not as good as the least that is asked for, and the cheapest cure.

    None where it is good enough. A change that needs no memory is cheaper than a buffer, and a
    small buffer than a large one. Writing the dataset anew is no cure.
    """
    if reaches(plan.score, plan.verdict, minimum):
        return None
    said, uniform = f"score {plan.score.value:.4f} ({plan.verdict})", plan.score.expected
    if isinstance(minimum, str):
        least = lowest_uniform(plan.score)
        few = f": a uniform permutation of so few examples may score {least:.4f}"
        said += few if plan.verdict == "cannot tell" else f" is not {minimum}"
    elif minimum > uniform:
        also = f"so is a uniform permutation, which scores {uniform:.4f}"
        return f"{said} is below {minimum:g}, and {also}"
    else:
        said += f" is below {minimum:g}"
    settings = plan.order.settings
    if not has_alternatives(settings):
        return said
    cures: list[tuple[int, str]] = [
        (choice.buffer or 0, f"{choice.change} (score {choice.score.value:.4f})")
        for choice in plan.alternatives[1:]
        if not choice.rewrites and reaches(choice.score, choice.verdict, minimum)
    ]
    if not cures and not settings.takes("buffer"):
        return f"{said}; change the shuffles of --stages"
    target = {"fair": FAIR, "good": GOOD}.get(str(minimum), minimum)
    is_free = any(not size for size, _ in cures)
    if not is_free and not isinstance(target, str) and plan.verdict != "cannot tell":
        smallest = buffer_for_target(plan.question, target)
        size, score = smallest.buffer, f"{smallest.score:.4f}"
        # A score alone does not say of few examples that it is a cure.
        measured = plan.question.measured(with_buffer(settings, size)) if size else None
        if size and measured and reaches(measured.score, measured.verdict, minimum):
            cures.append((size, f"--buffer {size} (score {score})"))
    whole = f"--buffer {plan.num_examples}, the whole epoch, which is uniform"
    _, cure = min([*cures, (plan.num_examples + 1, whole)], key=lambda one: one[0])
    return f"{said}; cheapest cure: {cure}"


# How well is each part of an epoch mixed near by?

_NUM_PARTS = 10
_TAIL = 0.01


@dataclass(frozen=True, kw_only=True)
class Part:
    """How well a part of the epoch, positions [start, stop), is mixed near by.

    `mean_storage` is where in storage its examples lie on average, from 0 to 1; uniform 0.5.
    """

    start: int
    stop: int
    score: Score
    metrics: tuple[Metric, ...]
    mean_storage: float


def by_position(
    sample: OrderSample, window: int, num_classes: int | None
) -> tuple[tuple[Part, ...], Part | None]:
    """Return the quality of equal parts of an epoch, ten at most, and of its last hundredth.

    The end is None where it is about as long as a part, which then shows the same.
    """
    count = max(1, min(_NUM_PARTS, sample.num_positions // window, len(sample.ranks[0])))
    if not sample.complete:
        count = min(_NUM_PARTS, len(sample.starts) // 2)
    parts = tuple(
        _part(sample, i / count, (i + 1) / count, window, num_classes) for i in range(count)
    )
    share = max(_TAIL, window / sample.num_positions)
    if not sample.complete:
        share = max(share, 2 / len(sample.starts))
    if share > 1 / (2 * count):
        return parts, None
    return parts, _part(sample, 1 - share, 1.0, window, num_classes)


def _part(
    sample: OrderSample, first: float, last: float, window: int, num_classes: int | None
) -> Part:
    piece = sample.part(first, last, window)
    start = int(piece.starts[0]) if piece.complete else round(first * sample.num_positions)
    metrics = near_metrics(piece, window, num_classes)
    return Part(
        start=start,
        stop=start + piece.length if piece.complete else round(last * sample.num_positions),
        score=score_of(metrics),
        metrics=tuple(metrics),
        mean_storage=(float(piece.ranks.mean()) + 0.5) / sample.num_ranks,
    )
