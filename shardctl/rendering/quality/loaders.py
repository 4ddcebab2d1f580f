"""All ways to read a dataset side by side: tables for people, a document, rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardctl.core.settings.document import settings_in_force
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.quality.loaders.compare import Ending, LoaderComparison, WayToRead
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.step_rows import settings_words
from shardctl.rendering.text.tables import Column, Screen, paragraph, table

CSV_HEADER = (
    *("reader", "loader", "version", "shards_in_batch", "shards_at_end", "uniform_shards"),
    *("score", "verdict", "ends", "fewest_steps", "most_steps", "repeated", "left_out", "dropped"),
    *("continued", "continued_by", "num_lost", "access", "num_files", "refused"),
)


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
        yield paragraph("in force:", screen)
        for way in read:
            yield paragraph(f"- {way.reader}: {_in_force(plan, way)}", screen)
    refused = [way for way in plan.ways if way.refused is not None]
    if refused:
        yield "\n"
        yield paragraph("not read so:", screen)
        for way in refused:
            yield paragraph(f"- {way.reader}: {as_options(way.refused)}", screen)


def _read(plan: LoaderComparison) -> list[WayToRead]:
    return [way for way in plan.ways if way.refused is None]


def mixing_cells(plan: LoaderComparison) -> tuple[list[Column], list[list[str]]]:
    """Return how each way mixes and ends, as columns and rows."""
    columns = [Column(heading="reader", align="left"), Column(heading="shards")]
    columns += [Column(heading=name) for name in ("end", "score", "steps")]
    columns.append(Column(heading="ends", align="left"))
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
    return columns, rows


def going_on_cells(plan: LoaderComparison) -> tuple[list[Column], list[list[str]]]:
    """Return how each way goes on after a stop, and what it reads, as columns and rows."""
    columns = [Column(heading="reader", align="left"), Column(heading="goes on", align="left")]
    columns.append(Column(heading="reads", align="left"))
    return columns, [[way.reader, goes_on(way), _reads(way)] for way in _read(plan)]


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
    said = []
    if ending.hangs:
        said.append(f"hangs after {ending.steps[0]:,}")
    if ending.num_repeated:
        said.append(f"{ending.num_repeated:,} repeated")
    if ending.num_left_out:
        said.append(f"{ending.num_left_out:,} lost")
    if ending.num_dropped:
        said.append(f"{ending.num_dropped:,} dropped")
    if ending.last_batch is not None:
        said.append(f"last {ending.last_batch:,}")
    return ", ".join(said) or "even"


def goes_on(way: WayToRead) -> str:
    """Return whether the library's own state continues an order, as a phrase."""
    if way.continued == "loses examples":
        return f"loses up to {way.num_lost:,} ({way.by})"
    return way.continued if way.by is None else f"{way.continued} ({way.by})"


def _reads(way: WayToRead) -> str:
    return f"{way.access}, {counted(way.num_files or 0, 'file')}"


def _in_force(plan: LoaderComparison, way: WayToRead) -> str:
    return settings_words(settings_in_force(way.settings, ordered=plan.dataset.ordered))


def loaders_document(plan: LoaderComparison) -> Document:
    """Return every figure of the tables, and the settings in force in each row."""
    return {
        **head("quality", plan.dataset.identity),
        "spec": plan.spec,
        "num_examples": plan.num_examples,
        "num_shards": plan.num_shards,
        "batch": plan.batch,
        "num_hosts": plan.num_hosts,
        "uniform_shards": plan.uniform_shards,
        "loaders": [_record(plan, way) for way in plan.ways],
    }


def _record(plan: LoaderComparison, way: WayToRead) -> dict[str, Any]:
    mixing, ending = way.mixing, way.ending
    return {
        "reader": way.reader,
        "loader": way.settings.loader,
        "pipeline": settings_in_force(way.settings, ordered=plan.dataset.ordered),
        "num_measured": None if mixing is None else mixing.num_measured,
        "shards_in_batch": None if mixing is None else mixing.shards,
        "shards_at_end": None if mixing is None else mixing.at_end,
        "uniform_shards": None if mixing is None else mixing.uniform_shards,
        "sampling_error_of_shards": None if mixing is None else mixing.shards_error,
        "score": None if mixing is None else mixing.score,
        "sampling_error": None if mixing is None else mixing.score_error,
        "verdict": None if mixing is None else mixing.verdict,
        "ending": None
        if ending is None
        else {
            "hangs": ending.hangs,
            "fewest_steps": ending.steps[0],
            "most_steps": ending.steps[1],
            "repeated": ending.num_repeated,
            "left_out": ending.num_left_out,
            "dropped": ending.num_dropped,
            "last_batch": ending.last_batch,
        },
        "continued": way.continued,
        "continued_by": way.by,
        "num_lost": way.num_lost,
        "access": way.access,
        "num_files": way.num_files,
        "refused": None if way.refused is None else as_options(way.refused),
    }


def loaders_rows(plan: LoaderComparison) -> Iterator[tuple[object, ...]]:
    """Yield a row of CSV_HEADER for each way to read."""
    for way in plan.ways:
        mixing, ending = way.mixing, way.ending
        yield (
            way.reader,
            way.settings.loader,
            way.settings.loader_version,
            None if mixing is None else mixing.shards,
            None if mixing is None else mixing.at_end,
            None if mixing is None else mixing.uniform_shards,
            None if mixing is None else mixing.score,
            None if mixing is None else mixing.verdict,
            None if ending is None else ends(ending),
            None if ending is None else ending.steps[0],
            None if ending is None else ending.steps[1],
            None if ending is None else ending.num_repeated,
            None if ending is None else ending.num_left_out,
            None if ending is None else ending.num_dropped,
            way.continued,
            way.by,
            way.num_lost,
            way.access,
            way.num_files,
            None if way.refused is None else as_options(way.refused),
        )
