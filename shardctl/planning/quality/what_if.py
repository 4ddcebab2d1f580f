"""What would other settings make of the quality of an order, and how large must its buffer be?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import ShardctlError
from shardctl.planning.quality.metrics import far_metrics, near_metrics
from shardctl.planning.quality.sample import epoch_length, sample_epoch
from shardctl.planning.quality.score import Score, score_of

_LIMIT = 1 << 18  # examples up to which an alternative is measured whole
_MORE_FILES = 4
_MAX_SHARDS = 1 << 19
_SEEDS = {"shuffle_seed": 1, "buffer_seed": 2}


@dataclass(frozen=True, kw_only=True)
class Question:
    """The pipeline whose quality is asked for.

    `window` is the examples in a batch, `num_classes` that of labels sorted in storage: 0 for one a
    shard, None where they are not.
    """

    dataset: Dataset
    ranges: tuple[SplitRange, ...]
    settings: ReadSettings
    window: int
    num_classes: int | None = None

    def order(self, settings: ReadSettings) -> Order:
        """Return the order under other settings."""
        return Order(self.dataset, self.ranges, settings)

    def score(self, settings: ReadSettings) -> Score:
        """Return the score under other settings, from a sample where there are many examples."""
        order = self.order(settings)
        window = min(self.window, epoch_length(order))
        sample = sample_epoch(order, window=window, limit=_LIMIT)
        near = near_metrics(sample, window, self.num_classes)
        return score_of([*near, *far_metrics(sample)])

    def buffer_bytes(self, buffer: int) -> int | None:
        """Return the size in bytes of so many mean examples as they are stored, None if unknown."""
        splits = {piece.split.name: piece.split for piece in self.ranges}.values()
        num_bytes = [split.num_bytes for split in splits]
        num_examples = sum(split.num_examples for split in splits)
        if not num_examples or None in num_bytes:
            return None
        return -(-buffer * sum(size or 0 for size in num_bytes) // num_examples)


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A change of the settings and the score it leads to; `num_bytes` of its buffer, if any."""

    change: str
    score: Score
    num_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class BufferForTarget:
    """The smallest shuffle buffer that reaches a score, to two digits.

    buffer: 0 where none is needed, None where not even the whole epoch does.
    score: with that buffer, or with the whole epoch. num_bytes: as stored, None if unknown.
    """

    target: float
    buffer: int | None
    score: float
    num_bytes: int | None


def alternatives(question: Question) -> tuple[Alternative, ...]:
    """Return the score as it is and after each change by itself.

    All are measured alike. What TFDS refuses for this dataset is left out.
    """
    found = [Alternative(change="as it is", score=question.score(question.settings))]
    for change, settings, buffer in _changes(question):
        try:
            score = question.score(settings)
        except ShardctlError:
            continue
        size = None if buffer is None else question.buffer_bytes(buffer)
        found.append(Alternative(change=change, score=score, num_bytes=size))
    more = _with_more_files(question)
    if more is not None:
        score = more.score(more.settings)
        found.append(Alternative(change=f"{_MORE_FILES} times as many files", score=score))
    return tuple(found)


def _changes(question: Question) -> Iterator[tuple[str, ReadSettings, int | None]]:
    """Yield (what changes, settings, size of a buffer that is new)."""
    settings = question.settings
    shuffled = replace(settings, shuffle_seed=_SEEDS["shuffle_seed"], shuffle_files=True)
    if settings.shuffles_files:
        yield "files not shuffled", replace(settings, shuffle_files=False, shuffle_seed=None), None
    else:
        yield "files shuffled", shuffled, None
    cycle = settings.cycle_length(ordered=question.dataset.ordered)
    for factor in (4, 16):
        yield f"cycle {cycle * factor:,}", replace(settings, cycle=cycle * factor, cpus=None), None
    if settings.block > 1:
        yield "block 1", replace(settings, block=1), None
    num_examples = epoch_length(question.order(settings))
    present = num_examples if settings.buffer == -2 else settings.buffer
    sizes = (1_000, 10_000, 100_000) if present is None else (10 * present,)
    seed = settings.buffer_seed if settings.buffer_seed is not None else _SEEDS["buffer_seed"]
    for size in sizes:
        if size > num_examples:
            break
        yield f"buffer {size:,}", replace(settings, buffer=size, buffer_seed=seed), size
        if not settings.shuffles_files:
            both = replace(shuffled, buffer=size, buffer_seed=seed)
            yield f"files shuffled, buffer {size:,}", both, size


def _with_more_files(question: Question) -> Question | None:
    """Return the same examples with each shard in four, None where a list names the files."""
    splits = {piece.split.name: piece.split for piece in question.ranges}
    lengths = [length for split in splits.values() for length in split.shard_lengths]
    if question.settings.file_order is not None or max(lengths) < _MORE_FILES:
        return None
    if len(lengths) * _MORE_FILES > _MAX_SHARDS:
        return None
    finer = {name: _finer(split) for name, split in splits.items()}
    dataset = replace(
        question.dataset,
        splits=tuple(finer.get(split.name, split) for split in question.dataset.splits),
    )
    ranges = tuple(replace(piece, split=finer[piece.split.name]) for piece in question.ranges)
    return replace(question, dataset=dataset, ranges=ranges)


def _finer(split: Split) -> Split:
    lengths = tuple(
        length * (part + 1) // _MORE_FILES - length * part // _MORE_FILES
        for length in split.shard_lengths
        for part in range(_MORE_FILES)
    )
    return Split(name=split.name, shard_lengths=lengths, num_bytes=split.num_bytes)


def buffer_for_target(question: Question, target: float) -> BufferForTarget:
    """Return the smallest `ds.shuffle` buffer, in place of any there is, that reaches a score.

    The score grows with the buffer but for the sampling error, so halving the interval finds it to
    a hundredth; it is rounded up to two digits.
    """
    settings = question.settings
    bare = replace(settings, buffer=None, buffer_seed=None, buffer_reshuffle=None)
    without = question.score(bare).value
    if without >= target:
        return BufferForTarget(target=target, buffer=0, score=without, num_bytes=0)
    seed = settings.buffer_seed
    if seed is None and settings.global_seed is None:
        seed = _SEEDS["buffer_seed"]

    def score(size: int) -> float:
        return question.score(replace(settings, buffer=size, buffer_seed=seed)).value

    most = max(1, epoch_length(question.order(bare)))
    largest = score(most)
    if largest < target:
        return BufferForTarget(target=target, buffer=None, score=largest, num_bytes=None)
    low, high = 1, most
    while high - low > max(1, low // 100):
        # Halved on a logarithmic scale: the answer may lie anywhere between 1 and billions.
        middle = max(low + 1, min(high - 1, math.isqrt(low * high)))
        if score(middle) >= target:
            high = middle
        else:
            low = middle
    buffer = min(most, _rounded_up(high))
    while (reached := score(buffer)) < target and buffer < most:
        buffer = min(most, _rounded_up(buffer + 1))
    return BufferForTarget(
        target=target,
        buffer=buffer,
        score=reached,
        num_bytes=question.buffer_bytes(buffer),
    )


def _rounded_up(number: int) -> int:
    """Return the number with two digits and zeros that is not below.

    >>> _rounded_up(23_411), _rounded_up(99_500), _rounded_up(7)
    (24000, 100000, 7)
    """
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit
