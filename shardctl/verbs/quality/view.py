"""The quality of an order, as tables for people, a document or rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from shardctl.base.columns import RecordStream, picked, record_of, records_of, stream_of
from shardctl.base.text import choices, counted
from shardctl.dataset.element_size import ElementSize
from shardctl.draw.quantities import human_bytes, number
from shardctl.draw.step_rows import order_head, order_heading, pipeline_record, settings_words
from shardctl.draw.tables import Column, Screen, cells_of, columns, paragraph, paragraphs, table
from shardctl.files.documents import Document
from shardctl.saved.head import head
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.loaders import Ending, LoaderComparison, WayToRead
from shardctl.verbs.quality.metrics import Metric, meaning
from shardctl.verbs.quality.what_if import MemoryBudget


def quality_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the score, the metrics it is made of, the parts of the epoch, and what would help."""
    yield from order_heading(plan.spec, plan.order, screen)
    score = plan.score
    error = "" if score.sampling_error is None else f", sampling error {score.sampling_error:.4f}"
    verdict = f"verdict: {plan.verdict} ({meaning(plan.verdict, plan.order)})"
    yield from paragraphs(screen, verdict, f"score {score.value:.4f} of 1{error}", style="bold")
    uniform = f"a uniform permutation scores {score.expected:.4f}, spread {score.spread:.4f}"
    weakest = f"weakest: {label_of(plan.weakest)}"
    yield from paragraphs(screen, uniform, weakest, measured_line(plan))
    yield "\n"
    if screen.pictures:
        from shardctl.draw.picture import picture_lines

        yield from picture_lines(plan, screen, most=2)
        yield "\n"
    yield from metric_table(plan, screen)
    yield "\n"
    yield from part_table(plan, screen)
    yield "\n"
    yield paragraph(epochs_line(plan), screen)
    if plan.alternatives:
        yield "\n"
        yield from what_if_table(plan, screen)
    yield from paragraphs(screen, target_line(plan))
    if plan.buffer_bytes is not None or plan.memory is not None:
        yield "\n"
        yield from paragraphs(screen, *memory_lines(plan))


def measured_line(plan: Quality) -> str:
    """Return how much of an epoch is measured."""
    batch = f"batches of {plan.window:,}"
    if plan.sampled is None:
        return f"measured: all {plan.num_examples:,} examples of an epoch, {batch}"
    sampled = plan.sampled
    text = (
        f"measured: {sampled.num_examples:,} of {plan.num_examples:,} examples of an epoch, "
        f"in {sampled.num_stretches:,} stretches of {sampled.stretch:,}, {batch}"
    )
    return f"{text}; the buffer drawn at random, not its seed" if sampled.buffer_drawn else text


def quality_document(plan: Quality) -> Document:
    """Return the quality with every figure of the table."""
    target, sampled = plan.buffer_for_target, plan.sampled
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
        **memory_record(plan),
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
    """Return how the next pass differs from this one."""
    across = plan.across_epochs
    if across is None:
        return "next pass: its order depends on timing, so there is nothing to compare"
    index = plan.order.settings.pass_index
    first = 0 if across.unit == "epoch" else index
    title = f"from {across.unit} {first} to {across.unit} {first + 1}"
    if across.same_order:
        return f"{title}: the same order"
    return (
        f"{title}: another order, correlation {across.correlation:.4f} "
        f"(uniform 0, spread {across.spread:.4f})"
    )


def what_if_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield what other settings would score, and which of them do most."""
    shown = columns("<change=what_if 4score.value=score 4score.sampling_error=error")
    sizes = (choice.num_bytes for choice in plan.alternatives)
    buffers = (["" if size is None else human_bytes(size)] for size in sizes)
    rows = map(list.__add__, cells_of(shown, plan.alternatives), buffers)
    yield table([*shown, *columns("buffer")], list(rows), screen)
    yield paragraph(best_line(plan), screen)


def best_line(plan: Quality) -> str:
    """Return which of the other settings do most, with a larger buffer and without."""
    as_it_is, *_ = ranked = list(plan.alternatives)
    ranked.sort(key=lambda choice: -choice.score.value)
    best = ranked[0]
    if best is as_it_is:
        return "none of these does more than the settings as they are"
    free = next(choice for choice in ranked if choice.num_bytes is None)
    text = f"does most: {best.change}"
    if free is not best and free is not as_it_is:
        text += f"; without a larger buffer: {free.change}"
    return text


def target_line(plan: Quality) -> str:
    """Return the buffer that reaches the score asked for, nothing where none is."""
    found = plan.buffer_for_target
    if found is None:
        return ""
    title = f"buffer for a score of {found.target:g}"
    if found.buffer is None:
        return f"{title}: none, one of the whole epoch scores {found.score:.4f}"
    if not found.buffer:
        return f"{title}: none is needed, without one it is {found.score:.4f}"
    size = "of unknown size"
    if found.num_bytes is not None:
        size = f"{human_bytes(found.num_bytes)} {counted_how(plan.element_size)}"
    return f"{title}: {found.buffer:,} examples, {size}; it scores {found.score:.4f}"


# The metrics of an order, of the whole epoch and of its parts: tables, records and rows.

_CHANGE = (
    "change score=score.value verdict sampling_error=score.sampling_error buffer_bytes=num_bytes"
)
METRIC = "name value score expected spread sampling_error counts=scale"
_PART = "start stop score=score.value expected=score.expected spread=score.spread mean_storage"


def label_of(metric: Metric) -> str:
    """Return how people call a metric."""
    words = metric.name.replace("_", " ")
    return words.replace("same shard", "same-shard").replace("in batch", "in a batch")


def metric_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the metrics beside what a uniform permutation shows."""
    yield table(*metric_cells(plan), screen)
    if any(metric.scale == "shown" for metric in plan.metrics):
        yield paragraph("* shown, not in the score", screen)


def metric_cells(plan: Quality) -> tuple[list[Column], list[list[str]]]:
    """Return the metrics beside what a uniform permutation shows, as columns and rows."""
    sampled = plan.sampled is not None
    rows = [
        [
            f"{label_of(metric)}{'*' * (metric.scale == 'shown')}",
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
    shown = columns("start=from 4score.value=near_by 4mean_storage=place")
    uniform = ["uniform", number(plan.by_position[0].score.expected, 4), number(0.5, 4)]
    yield table(shown, [*cells_of(shown, plan.by_position), uniform], screen)
    yield paragraph(
        "from: position in the epoch; near by: the score without displacement and correlation; "
        "place: where in storage the examples lie on average, from 0 to 1",
        screen,
    )


# What buffers take in memory, and what an amount of memory buys: text and record.

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
    """Yield as phrases what an example takes, what the present buffer does, and what memory buys.

    Nothing where the size of an example is not known."""
    size = plan.element_size
    if size is None:
        return
    yield f"an example in a buffer: {_example(size)}"
    if plan.buffer_bytes is not None and plan.order.num_buffered is not None:
        held = min(plan.order.num_buffered, plan.order.stream_size)
        taken = f"{human_bytes(plan.buffer_bytes)} {counted_how(size)}"
        yield f"the buffer of {counted(held, 'example')}: {taken}"
    if plan.memory is not None:
        yield _budget(plan.memory, size)


def _example(size: ElementSize) -> str:
    each = f"{human_bytes(math.ceil(size.num_bytes))} {_BASES[size.basis]}"
    if size.certain:
        return f"{each}, {size.overhead:,} of them TensorFlow's own"
    if size.basis == "features":
        each = f"at least {each}"
    why = "no readable features.json is here"
    if size.unknown:
        names = choices(size.unknown, _MOST_NAMES)
        why = f"features.json gives no fixed size for: {names}"
    return f"{each}, since {why}; --example-bytes N says what it is"


def _budget(memory: MemoryBudget, size: ElementSize) -> str:
    amount = human_bytes(memory.num_bytes)
    if memory.buffer is None:
        return f"{amount} buys no shuffle: it holds {counted(memory.fits, 'example')}"
    held = f"{'all ' * memory.whole_epoch}{memory.buffer:,} examples"
    held += " of that size" * (not size.certain)
    scored = f"{memory.score.value:.4f} ({memory.verdict})"
    return f"{amount} holds {held}: --buffer {memory.buffer} scores {scored}"


def memory_record(plan: Quality) -> dict[str, Any]:
    """Return what buffers take and what the memory buys, with the names of the document."""
    size, memory = plan.element_size, plan.memory
    each = size and {"num_bytes": math.ceil(size.num_bytes)}
    return {
        "example_bytes": each and {**each, **picked(size, "basis unknown overhead")},
        "buffer_bytes": plan.buffer_bytes,
        "memory": record_of(memory, "num_bytes fits buffer whole_epoch score=score.value verdict"),
    }


# All ways to read a dataset side by side: tables for people, a document, rows.

_MIXING = "num_measured shards_in_batch=shards shards_at_end=at_end uniform_shards score verdict"
_ENDING = "fewest_steps most_steps repeated=num_repeated left_out=num_left_out dropped=num_dropped"
_GOING_ON = "continued continued_by=by num_lost access refused"
_LOADER = "reader loader=settings.loader"


def loaders_table(plan: LoaderComparison, screen: Screen) -> Iterator[str]:
    """Yield how each way mixes and ends, then how it goes on and reads, and what is refused."""
    hosts = "" if plan.num_hosts == 1 else f", {counted(plan.num_hosts, 'host')}"
    yield paragraph(
        f"{plan.spec} of {plan.dataset.title}: {counted(plan.num_examples, 'example')} in "
        f"{counted(plan.num_shards, 'shard')}, batches of {plan.batch:,}{hosts}",
        screen,
    )
    read = _read(plan)
    if read:
        yield "\n"
        if screen.pictures:
            from shardctl.draw.picture import picture_lines

            yield from picture_lines(plan, screen)
            yield "\n"
        yield table(*mixing_cells(plan), screen)
        yield paragraph(mixing_legend(plan), screen)
        yield "\n"
        yield table(*going_on_cells(plan), screen)
        yield paragraph(
            "goes on: by the library itself (get_state and state_dict with as many workers), TFDS "
            "by shardctl.tfds.Position; shardctl resume goes on exactly with each",
            screen,
        )
        yield "\n"
        in_force = (f"- {way.reader}: {_in_force(plan, way)}" for way in read)
        yield from paragraphs(screen, "in force:", *in_force)
    refused = [way for way in plan.ways if way.refused is not None]
    if refused:
        yield "\n"
        reasons = (f"- {way.reader}: {way.refused}" for way in refused)
        yield from paragraphs(screen, "not read so:", *reasons)


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
    """Return how each way goes on after a stop, and what it reads, as columns and rows."""
    rows = [[way.reader, goes_on(way), way.access] for way in _read(plan)]
    return columns("<reader <goes_on <reads"), rows


def mixing_legend(plan: LoaderComparison) -> str:
    """Return what the columns of `mixing_cells` are."""
    read = _read(plan)
    text = (
        f"shards: that a batch comes from, {plan.uniform_shards:.1f} where all are permuted "
        "uniformly; end: in the last 2%; score: 0 is the order of storage, 1 a uniform permutation"
    )
    if plan.num_hosts > 1:
        text += (
            f" of what host {read[0].settings.host} reads, which is measured; steps: the most of "
            "a host"
        )
    mixings = [way.mixing for way in read if way.mixing is not None]
    if any(0 < mixing.num_measured < mixing.num_examples for mixing in mixings):
        text += "; measured in samples"
    return f"{text}; last: examples in the last batch"


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
    rows = []
    for way in plan.ways:
        record = {
            **picked(way, f"{_LOADER} version=settings.loader_version"),
            **picked(way.mixing, _MIXING),
            "ends": None if way.ending is None else ends(way.ending),
            **picked(way.ending, _ENDING),
            **picked(way, _GOING_ON),
        }
        rows.append(list(record.values()))
    return stream_of(list(record), rows)
