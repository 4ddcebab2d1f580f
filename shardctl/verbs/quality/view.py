"""The quality of an order, as tables for people, a document or rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict

from shardctl.base.columns import RecordStream, picked, record_of, records_of, stream_of
from shardctl.base.text import choices, counted, first_upper
from shardctl.dataset.buffer_memory import ElementSize
from shardctl.draw.quantities import human_bytes, number
from shardctl.draw.step_rows import order_head, order_heading, pipeline_record, settings_words
from shardctl.draw.tables import (
    Column,
    Screen,
    cells_of,
    columns,
    paragraph,
    paragraphs,
    pictures,
    table,
)
from shardctl.files.documents import Document
from shardctl.saved.head import head
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.quality.answer import Alternative, MemoryBudget, Quality, with_buffer
from shardctl.verbs.quality.compare_loaders import Ending, LoaderComparison, WayToRead
from shardctl.verbs.quality.metrics import meaning


def quality_table(
    plan: Quality,
    screen: Screen,
    *,
    details: bool = False,
    again: Callable[[str], str] | None = None,
) -> Iterator[str]:
    """Yield the verdict, why, what would help most, and one table; `details` adds all the rest.

    `again` makes a whole command of the options of a change, "" where no options make it.
    """
    yield from order_heading(plan.spec, plan.order, screen)
    score = plan.score
    error = "" if score.sampling_error is None else f" ± {score.sampling_error:.4f}"
    uniform = f"storage order 0, uniform permutation {score.expected:.4f}"
    verdict = f"verdict: {plan.verdict}, score {score.value:.4f}{error} ({uniform})"
    yield paragraph(verdict, screen, style="bold")
    yield from paragraphs(screen, f"{why(plan)}.", f"{first_upper(measured_line(plan))}.")
    said, options = advice(plan)
    if said:
        yield "\n"
        yield from paragraphs(screen, *(f"{first_upper(text)}." for text in said))
    command = again(options) if options and again is not None else ""
    if command:  # in one line, to be pasted
        yield f"  {command}\n"
    yield "\n"
    has_others = len(plan.alternatives) > 1
    # The first alternative is the order as it is; alone it is nothing to compare.
    yield from what_if_table(plan, screen) if has_others else metric_table(plan, screen)
    yield from pictures(plan, screen, most=1)
    if not details:
        yield paragraph("--details: all metrics, the parts of the epoch, the next epoch", screen)
        return
    if has_others:
        yield "\n"
        yield from metric_table(plan, screen)
    yield "\n"
    yield from part_table(plan, screen)
    yield "\n"
    yield paragraph(epochs_line(plan), screen)
    yield from paragraphs(screen, *memory_lines(plan))


# Templates of the metrics: how an order falls short, beside a uniform permutation.
_SHORT_OF = {
    "same_shard_neighbours": "{} of adjacent examples come from the same shard",
    "neighbour_distance": "adjacent examples are on average {} of the dataset apart in storage",
    "batch_coverage": "a batch of {window:,} examples is spread over {} of the dataset",
    "displacement": "examples are on average {} of the dataset away from their position in storage",
    "rank_correlation": "the correlation with storage order is {}",
}


def why(plan: Quality) -> str:
    """Return why an order has its verdict, as one or two sentences without the last dot."""
    said, metric = first_upper(meaning(plan.verdict, plan.order)), plan.weakest
    if plan.verdict in ("close to uniform", "as good as uniform", "cannot tell"):
        return said
    # A correlation lies between -1 and 1, the others are shares.
    digits = ".2f" if metric.name == "rank_correlation" else ".1%"
    fault = _SHORT_OF[metric.name].format(format(metric.value, digits), window=plan.window)
    return f"{said}. {first_upper(fault)} (uniform permutation: {metric.expected:{digits}})"


def measured_line(plan: Quality) -> str:
    """Return how much of an epoch is measured."""
    batch = f"batches of {plan.window:,}"
    batch += " (assumed)" * (plan.window != plan.order.batch_size)
    if plan.sampled is None:
        return f"measured on all {plan.num_examples:,} examples of an epoch, in {batch}"
    sampled = plan.sampled
    text = (
        f"measured on {sampled.num_examples:,} of {plan.num_examples:,} examples of an epoch, "
        f"in {sampled.num_stretches:,} samples of {sampled.stretch:,}, in {batch}"
    )
    drawn = "; the shuffle buffer is simulated with random draws, not with its seed"
    return text + drawn * sampled.buffer_drawn


def advice(plan: Quality) -> tuple[list[str], str]:
    """Return what would help most, and the options that do it, "" where nothing does."""
    said, options = [], ""
    if plan.memory is not None and plan.element_size is not None:
        said, size = [_budget(plan.memory, plan.element_size)], plan.memory.buffer
        options = f"--buffer {size}" if size else ""
    if plan.buffer_for_target is not None:
        said, size = [*said, target_line(plan)], plan.buffer_for_target.buffer
        options = f"--buffer {size}" if size else ""
    # What was asked for, a budget or a target, goes before the best of the changes tried.
    if not said and plan.alternatives[1:] and "uniform" not in plan.verdict:
        best = best_change(plan)
        said, options = [best_line(plan)], "" if best is None else best.change
    if options.startswith("--buffer "):
        # A new buffer needs a seed to be reproducible; 2 is any buffer that shuffles.
        seed = with_buffer(plan.question.settings, 2).buffer_seed
        options += f" --buffer-seed {seed}" * (seed != plan.question.settings.buffer_seed)
    return said, options


def quality_document(plan: Quality) -> Document:
    """Return the quality with every figure of the table."""
    target, sampled, size = plan.buffer_for_target, plan.sampled, plan.element_size
    each = size and {"num_bytes": math.ceil(size.num_bytes)}
    return {
        **order_head("quality", plan.order),
        "spec": plan.spec,
        "pipeline": pipeline_record(plan.order),
        "assumed": dict(plan.assumed),
        **picked(plan, "num_examples window verdict"),
        **picked(plan.score, "score=value near far expected spread sampling_error"),
        "weakest": plan.weakest.name,
        "metrics": records_of(METRIC, plan.metrics),
        "by_position": records_of(_PART, plan.by_position),
        "across_epochs": record_of(plan.across_epochs, "unit same_order correlation spread"),
        "what_if": records_of(_CHANGE, plan.alternatives),
        "buffer_for_target": None if target is None else asdict(target),
        "example_bytes": each and {**each, **picked(size, "basis unknown overhead")},
        "buffer_bytes": plan.buffer_bytes,
        "memory": record_of(plan.memory, _MEMORY),
        "sampled": record_of(
            sampled, "num_examples num_stretches stretch buffer_by_law=buffer_drawn"
        ),
    }


def quality_rows(plan: Quality) -> RecordStream:
    """Return a row for the score and for each metric."""
    score = picked(plan.score, "value score=value expected spread sampling_error")
    metrics = records_of(METRIC, plan.metrics)
    return stream_of(metrics.fields, [("score", *score.values(), None), *metrics.rows()])


def epochs_line(plan: Quality) -> str:
    """Return how the next epoch, or pass, differs from this one."""
    across = plan.across_epochs
    if across is None and not plan.order.settings.takes("pass_index"):
        return "next epoch: the stages read once, so there is none to compare with"
    if across is None:
        return "next pass: its order depends on timing, so it cannot be compared"
    # Epochs within a pass count from 0; passes from the one that was asked about.
    first = 0 if across.unit == "epoch" else plan.order.settings.pass_index
    title = f"{across.unit} {first} and {across.unit} {first + 1}"
    if across.same_order:
        return f"{title}: the same order"
    correlation = f"{across.correlation:.4f} (uniform permutations 0 ± {across.spread:.4f})"
    return f"{title}: different orders, with a correlation of {correlation}"


def what_if_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield what other settings would score, and what a new buffer takes in memory."""
    found = plan.alternatives
    sampled = any(choice.score.sampling_error is not None for choice in found)
    error = "4score.sampling_error=standard_error" * sampled
    shown = columns(f"<change 4score.value=score {error}")
    rows = cells_of(shown, found)
    if any(choice.num_bytes for choice in found):
        shown += columns("buffer_memory")
        for row, choice in zip(rows, found, strict=True):
            row.append("" if choice.num_bytes is None else human_bytes(choice.num_bytes))
    yield table(shown, rows, screen)


def best_change(plan: Quality) -> Alternative | None:
    """Return the change that scores highest, None where none does by more than chance."""
    best = max(plan.alternatives, key=lambda choice: choice.score.value)
    return best if best.score.value > plan.alternatives[0].score.value + _CHANCE else None


_CHANCE = 0.005  # of a score that is measured in samples


def best_line(plan: Quality) -> str:
    """Return which single change scores highest."""
    best = best_change(plan)
    if best is None:
        return "none of these changes scores higher"
    memory = "" if best.num_bytes is None else f", buffer of {human_bytes(best.num_bytes)}"
    return f"best single change: {best.change} (score {best.score.value:.4f}{memory})"


def target_line(plan: Quality) -> str:
    """Return the buffer that reaches the score asked for, nothing where none is."""
    found = plan.buffer_for_target
    if found is None:
        return ""
    title = f"smallest buffer for a score of {found.target:g}"
    if found.buffer is None:
        return f"{title}: none; a buffer of the whole epoch scores {found.score:.4f}"
    if not found.buffer:
        return f"{title}: none is needed; without a buffer the score is {found.score:.4f}"
    size = "of unknown size"
    if found.num_bytes is not None:
        size = f"{human_bytes(found.num_bytes)} {counted_how(plan.element_size)}"
    return f"{title}: {found.buffer:,} examples, {size}. It scores {found.score:.4f}"


# The metrics of an order, of the whole epoch and of its parts: tables, records and rows.

_CHANGE = (
    "change score=score.value verdict sampling_error=score.sampling_error buffer_bytes=num_bytes"
)
_MEMORY = "num_bytes fits buffer whole_epoch score=score.value verdict"
METRIC = "name value score expected spread sampling_error counts=scale"
_PART = "start stop score=score.value expected=score.expected spread=score.spread mean_storage"


LABELS = {
    "same_shard_neighbours": "adjacent examples of one shard",
    "neighbour_distance": "distance of adjacent examples",
    "batch_coverage": "share of the dataset in a batch",
    "displacement": "distance from storage position",
    "rank_correlation": "correlation with storage order",
    "shards_in_batch": "shards in a batch",
}


def metric_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the metrics beside what a uniform permutation shows."""
    yield table(*metric_cells(plan), screen)
    text = "uniform, spread: mean and standard deviation of uniform permutations"
    starred = any(metric.scale == "shown" for metric in plan.metrics)
    yield paragraph(text + "; * not part of the score" * starred, screen)


def metric_cells(plan: Quality) -> tuple[list[Column], list[list[str]]]:
    """Return the metrics beside what a uniform permutation shows, as columns and rows."""
    sampled = plan.sampled is not None
    rows = [
        [
            f"{LABELS[metric.name]}{'*' * (metric.scale == 'shown')}",
            _number(metric.value),
            _number(metric.expected),
            f"{metric.spread:.5f}",
            f"{metric.score:.4f}",
            *([number(metric.sampling_error, 5)] if sampled else []),
        ]
        for metric in plan.metrics
    ]
    return columns(f"<metric measured uniform spread score {'error' * sampled}"), rows


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"


def part_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the parts of the epoch, and what the columns are."""
    shown = columns("start=first_position 4score.value=local_score 4mean_storage=mean_in_storage")
    uniform = ["uniform", number(plan.by_position[0].score.expected, 4), number(0.5, 4)]
    yield table(shown, [*cells_of(shown, plan.by_position), uniform], screen)
    yield paragraph(
        "local score: of adjacent examples and batches alone; mean in storage: the mean position "
        "in storage, from 0 (first example) to 1 (last)",
        screen,
    )


# What buffers take in memory, and what fits into an amount of memory: text and record.

_MOST_NAMES = 4
_BASES = {
    "given": "as given",
    "features": "from features.json",
    "stored": "as stored on average (decoded images take more)",
}


def counted_how(size: ElementSize | None) -> str:
    """Return how far the bytes of a buffer can be trusted, nothing where they are not known."""
    if size is None or size.certain:
        return "" if size is None else "decoded"
    return "as stored (decoded images take more)" if size.basis == "stored" else "or more"


def memory_lines(plan: Quality) -> Iterator[str]:
    """Yield as phrases what an example and the present buffer take; nothing if it is unknown."""
    size = plan.element_size
    if size is None:
        return
    yield f"an example in a buffer: {_example(size)}"
    if plan.buffer_bytes is not None and plan.order.num_buffered is not None:
        held = min(plan.order.num_buffered, plan.order.stream_size)
        taken = f"{human_bytes(plan.buffer_bytes)} {counted_how(size)}"
        yield f"the buffer of {counted(held, 'example')}: {taken}"


def _example(size: ElementSize) -> str:
    each = f"{human_bytes(math.ceil(size.num_bytes))} {_BASES[size.basis]}"
    if size.certain:
        return f"{each}, with {size.overhead:,} of TensorFlow's own"
    why = "there is no readable features.json"
    if size.unknown:
        why = f"features.json gives no fixed size for: {choices(size.unknown, _MOST_NAMES)}"
    least = "at least " * (size.basis == "features")
    return f"{least}{each}, since {why}; set it with --example-bytes N"


def _budget(memory: MemoryBudget, size: ElementSize) -> str:
    amount = human_bytes(memory.num_bytes)
    if memory.buffer is None:
        return f"{amount} of memory holds {counted(memory.fits, 'example')}: no shuffle"
    held = f"{'all ' * memory.whole_epoch}{memory.buffer:,} examples"
    held += f" of {human_bytes(math.ceil(size.num_bytes))}"
    held += " (they may be larger)" * (not size.certain)
    scored = f"{memory.score.value:.4f} ({memory.verdict})"
    return f"{amount} of memory holds {held}. --buffer {memory.buffer} scores {scored}"


# All ways to read a dataset side by side: tables for people, a document, rows.

_MIXING = "num_measured shards_in_batch=shards shards_at_end=at_end uniform_shards score verdict"
_ENDING = "fewest_steps most_steps repeated=num_repeated left_out=num_left_out dropped=num_dropped"
_GOING_ON = "continued continued_by=by num_lost access refused"
_LOADER = "reader loader=settings.loader"


def loaders_table(plan: LoaderComparison, screen: Screen) -> Iterator[str]:
    """Yield how each way mixes and ends, then how it resumes and reads, and what is refused."""
    hosts = "" if plan.num_hosts == 1 else f", {counted(plan.num_hosts, 'host')}"
    yield paragraph(
        f"{plan.spec} of {plan.dataset.title}: {counted(plan.num_examples, 'example')} in "
        f"{counted(plan.num_shards, 'shard')}, batches of {plan.batch:,}{hosts}",
        screen,
    )
    read = _read(plan)
    if read:
        yield from pictures(plan, screen)
        yield "\n"
        yield table(*mixing_cells(plan), screen)
        yield paragraph(mixing_legend(plan), screen)
        yield "\n"
        yield table(*going_on_cells(plan), screen)
        yield paragraph(
            "resumes: by the library's own state, with the same number of workers; TFDS by "
            "shardctl.tfds.Position. shardctl resume continues each of them exactly",
            screen,
        )
        yield "\n"
        in_force = (f"- {way.reader}: {_in_force(plan, way)}" for way in read)
        yield from paragraphs(screen, "settings:", *in_force)
    refused = [way for way in plan.ways if way.refused is not None]
    if refused:
        yield "\n"
        reasons = (f"- {way.reader}: {way.refused}" for way in refused)
        yield from paragraphs(screen, "refused:", *reasons)


def _read(plan: LoaderComparison) -> list[WayToRead]:
    return [way for way in plan.ways if way.refused is None]


def mixing_cells(plan: LoaderComparison) -> tuple[list[Column], list[list[str]]]:
    """Return how each way mixes and ends, as columns and rows."""
    read = [way for way in _read(plan) if way.mixing is not None and way.ending is not None]
    shown = columns("<reader 1mixing.shards=shards 1mixing.at_end=end 3mixing.score=score")
    more = [[f"{way.ending.most_steps:,}", ends(way.ending)] for way in read if way.ending]
    rows = map(list.__add__, cells_of(shown, read), more)
    return [*shown, *columns("steps <ends")], list(rows)


def going_on_cells(plan: LoaderComparison) -> tuple[list[Column], list[list[str]]]:
    """Return how each way resumes after a stop, and what it reads, as columns and rows."""
    rows = [[way.reader, goes_on(way), way.access] for way in _read(plan)]
    return columns("<reader <goes_on=resumes <reads"), rows


def mixing_legend(plan: LoaderComparison) -> str:
    """Return what the columns of `mixing_cells` are."""
    host = "" if plan.num_hosts == 1 else "; figures are of host 0, steps the most of any host"
    return (
        f"shards: that a batch comes from, in a uniform permutation {plan.uniform_shards:.1f}; "
        "end: the same in the last 2%; score: 0 is storage order, 1 a uniform permutation; last: "
        f"examples in the last batch. Long epochs are measured in samples{host}"
    )


def ends(ending: Ending) -> str:
    """Return how an epoch ends, as a phrase."""
    counts = (ending.num_repeated, ending.num_left_out, ending.num_dropped)
    named = zip(counts, ("repeated", "lost", "dropped"), strict=True)
    said = [f"hangs after {ending.fewest_steps:,}"] if ending.hangs else []
    said += [f"{count:,} {word}" for count, word in named if count]
    said += [] if ending.last_batch is None else [f"last {ending.last_batch:,}"]
    return ", ".join(said) or "even"


def goes_on(way: WayToRead) -> str:
    """Return whether the library's own state continues an order, as a phrase."""
    if way.continued == "loses examples":
        return f"loses up to {way.num_lost:,} ({way.by})"
    return way.continued if way.by is None else f"{way.continued} ({way.by})"


def _in_force(plan: LoaderComparison, way: WayToRead) -> str:
    return settings_words(settings_in_force(way.settings, ordered=plan.dataset.ordered))


def loaders_document(plan: LoaderComparison) -> Document:
    """Return every figure of the tables, and the settings in force in each row."""
    return {
        **head("quality", plan.dataset.identity),
        **picked(plan, "spec num_examples num_shards batch num_hosts uniform_shards"),
        "loaders": [_record(plan, way) for way in plan.ways],
    }


def _record(plan: LoaderComparison, way: WayToRead) -> Document:
    return {
        **picked(way, _LOADER),
        "pipeline": settings_in_force(way.settings, ordered=plan.dataset.ordered),
        **picked(way.mixing, _MIXING),
        "ending": record_of(way.ending, f"hangs {_ENDING} last_batch"),
        **picked(way, _GOING_ON),
    }


def loaders_rows(plan: LoaderComparison) -> RecordStream:
    """Return a row for each way to read."""
    records = [
        {
            **picked(way, f"{_LOADER} version=settings.loader_version"),
            **picked(way.mixing, _MIXING),
            "ends": None if way.ending is None else ends(way.ending),
            **picked(way.ending, _ENDING),
            **picked(way, _GOING_ON),
        }
        for way in plan.ways
    ]
    return stream_of(list(records[0]), [list(record.values()) for record in records])
