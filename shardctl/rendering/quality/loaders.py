"""All ways to read a dataset side by side: tables for people, a document, rows."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.columns import RecordStream, picked, stream_of
from shardctl.core.settings.document import settings_in_force
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.quality.loaders.compare import Ending, LoaderComparison, WayToRead
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.step_rows import settings_words
from shardctl.rendering.text.tables import Column, Screen, columns, paragraph, paragraphs, table

_MIXING = (
    "shards_in_batch=shards shards_at_end=at_end uniform_shards "
    "sampling_error_of_shards=shards_error score sampling_error=score_error verdict"
)
_ENDING = "repeated=num_repeated left_out=num_left_out dropped=num_dropped"
_GOING_ON = "continued continued_by=by num_lost access num_files"
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
            from shardctl.rendering.text.drawers import picture_lines

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
        reasons = (f"- {way.reader}: {as_options(way.refused)}" for way in refused)
        yield from paragraphs(screen, "not read so:", *reasons)


def _read(plan: LoaderComparison) -> list[WayToRead]:
    return [way for way in plan.ways if way.refused is None]


def mixing_cells(plan: LoaderComparison) -> tuple[list[Column], list[list[str]]]:
    """Return how each way mixes and ends, as columns and rows."""
    shown = columns("<reader shards end score steps <ends")
    rows = [
        [
            way.reader,
            f"{way.mixing.shards:.1f}",
            f"{way.mixing.at_end:.1f}",
            f"{way.mixing.score:.3f}",
            f"{way.ending.steps[1]:,}",
            ends(way.ending),
        ]
        for way in _read(plan)
        if way.mixing is not None and way.ending is not None
    ]
    return shown, rows


def going_on_cells(plan: LoaderComparison) -> tuple[list[Column], list[list[str]]]:
    """Return how each way goes on after a stop, and what it reads, as columns and rows."""

    def reads(way: WayToRead) -> str:
        return f"{way.access}, {counted(way.num_files or 0, 'file')}"

    shown = columns("<reader <goes_on <reads")
    return shown, [[way.reader, goes_on(way), reads(way)] for way in _read(plan)]


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
    errors = [way.mixing.shards_error or 0.0 for way in read if way.mixing is not None]
    if any(errors):
        text += f"; measured in samples, sampling error of shards at most {max(errors):.2f}"
    return f"{text}; last: examples in the last batch"


def ends(ending: Ending) -> str:
    """Return how an epoch ends, as a phrase."""
    counts = (ending.num_repeated, ending.num_left_out, ending.num_dropped)
    named = zip(counts, ("repeated", "lost", "dropped"), strict=True)
    said = [f"hangs after {ending.steps[0]:,}"] if ending.hangs else []
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
    ending = None
    if way.ending is not None:
        ending = {
            "hangs": way.ending.hangs,
            **_steps(way.ending),
            **picked(way.ending, f"{_ENDING} last_batch"),
        }
    return {
        **picked(way, _LOADER),
        "pipeline": settings_in_force(way.settings, ordered=plan.dataset.ordered),
        **picked(way.mixing, f"num_measured {_MIXING}"),
        "ending": ending,
        **picked(way, _GOING_ON),
        "refused": None if way.refused is None else as_options(way.refused),
    }


def _steps(ending: Ending | None) -> Document:
    fewest, most = (None, None) if ending is None else ending.steps
    return {"fewest_steps": fewest, "most_steps": most}


def loaders_rows(plan: LoaderComparison) -> RecordStream:
    """Return a row for each way to read."""
    rows = []
    for way in plan.ways:
        mixing = picked(way.mixing, _MIXING)
        record = {
            **picked(way, f"{_LOADER} version=settings.loader_version"),
            **{name: value for name, value in mixing.items() if not name.startswith("sampling")},
            "ends": None if way.ending is None else ends(way.ending),
            **_steps(way.ending),
            **picked(way.ending, _ENDING),
            **picked(way, _GOING_ON),
            "refused": None if way.refused is None else as_options(way.refused),
        }
        rows.append(list(record.values()))
    return stream_of(list(record), rows)
