"""What hosts read, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.columns import (
    Records,
    RecordStream,
    numbered_records,
    picked,
    record_of,
    stream_of,
)
from shardctl.base.text import counted
from shardctl.draw import tables
from shardctl.draw.quantities import bytes_between, counts_between, number, numbered, percent_over
from shardctl.files.documents import Document
from shardctl.order.shard_map import Bucket, buckets
from shardctl.saved.head import head
from shardctl.verbs.hosts.answer import Comparison, HostsPlan, advice, call_of, reason, spread
from shardctl.verbs.hosts.sharing import OUTSTANDING, Load, Strategy

if TYPE_CHECKING:  # else a pipe would load what draws
    from shardctl.draw import picture as draw

_ROWS = 8  # hosts of one strategy on a terminal

_COLUMNS = tables.columns("index=host num_examples=examples ~num_bytes=bytes num_files=files")
_COLUMNS += tables.columns("num_batches=batches")
_FIELDS = [column.field for column in _COLUMNS]
_SUMMARY = "read_amplification imbalance idle_hosts shared_files"


def hosts_table(
    plan: HostsPlan, screen: tables.Screen, *, every_strategy: bool = False
) -> Iterator[str]:
    """Yield the strategies side by side, which is recommended and why, then its hosts.

    With `every_strategy` the hosts of the others follow too.
    """
    comparison = plan.comparisons[0]
    yield tables.paragraph(title(plan, counted(comparison.num_hosts, "host")), screen, style="bold")
    yield tables.table(*measure_cells(plan), screen)
    refused = (one for one in comparison.strategies if one.refusal is not None)
    yield from tables.paragraphs(screen, *(f"* {one.name}: {one.refusal}" for one in refused))
    best = comparison.recommended
    named = "none" if best is None else call_of(best)
    if best is not None and best.name not in named:  # the table has the short name
        named += f" ({best.name})"
    recommended = f"Recommended: {named}, " if len(comparison.strategies) > 1 else ""
    advised = (f"- {line}" for line in advice(comparison, plan.settings))
    yield from tables.paragraphs(screen, f"{recommended}{reason(comparison)}", *advised)
    shown = comparison.strategies if every_strategy else [best] if best is not None else []
    for strategy in shown:
        yield "\n"
        yield tables.paragraph(f"{strategy.name}: what each host reads", screen, style="bold")
        # Without --batch there are no batches, the last column.
        columns = _COLUMNS if strategy.batches is not None else _COLUMNS[:-1]
        records = _records(strategy, [column.field for column in columns])
        rows = tables.grouped(records, columns)
        yield from tables.table_pieces(columns, rows, screen, keep=_ROWS)
    yield from tables.pictures(plan, screen)


def title(plan: HostsPlan, hosts: str) -> str:
    """Return the line over the tables: the spec, the dataset, how many hosts, which batches."""
    settings = plan.settings
    line = f"{plan.spec} in {plan.dataset.title}, {hosts}"
    if settings.batch is not None:
        line += f", batches of {settings.batch:,}"
        line += " without the remainder" if settings.drop_remainder else ""
        line += f" over {settings.epochs:,} epochs" if settings.epochs > 1 else ""
    return line


def measure_cells(plan: HostsPlan) -> tuple[list[tables.Column], list[Sequence[str]]]:
    """Return the measures of each strategy side by side, as columns and rows."""
    comparison = plan.comparisons[0]
    columns = [tables.Column(heading="measure", align="left")]
    columns += [tables.Column(heading=strategy.name) for strategy in comparison.strategies]
    return columns, list(_measures(comparison, plan))


def _measures(comparison: Comparison, plan: HostsPlan) -> Iterator[Sequence[str]]:
    """Yield a row a measure: its name, and its value under each strategy."""
    rows: list[tuple[str, Callable[[Strategy], str]]] = [
        ("examples/host", lambda s: extremes(s.num_examples)),
        ("bytes/host", lambda s: extremes(s.num_bytes, bytes_between, "unknown")),
        ("files/host", lambda s: extremes(s.num_files)),
    ]
    if any(strategy.num_batches is not None for strategy in comparison.strategies):
        rows.append(("batches/host", lambda s: extremes(s.num_batches)))
    rows += [
        ("read amplification", lambda s: _times(s.read_amplification)),
        ("imbalance", lambda s: number(s.imbalance, 3)),
        ("idle hosts", _idle),
        ("shared files", lambda s: f"{s.shared_files:,}"),
        ("most examples", lambda s: _straggler(s.num_examples)),
        ("most bytes", lambda s: _straggler(s.num_bytes)),
    ]
    for name, measure in rows:
        cells = [*map(measure, comparison.strategies)]
        if set(cells) != {"-"}:  # no host stands out
            yield (name, *cells)


def _times(factor: float | None) -> str:
    return "-" if factor is None else f"{number(factor, 3)}x"


def _idle(strategy: Strategy) -> str:
    text = f"{strategy.idle_hosts:,}" + ("*" if strategy.refusal else "")
    return tables.Cell(text, "warning" if strategy.idle_hosts or strategy.refusal else "")


def extremes(
    load: Load | None, between: Callable[[int, int], str] = counts_between, unknown: str = "-"
) -> str:
    """Return the least and the most, or the one value all hosts have."""
    return unknown if load is None else between(load.min, load.max)


def _straggler(load: Load | None) -> str:
    """Return the host with the most and how far it is above the mean; `-` where none stands out."""
    if load is None or load.imbalance is None or load.imbalance < OUTSTANDING:
        return "-"
    return f"host {load.straggler} {percent_over(load.imbalance - 1)}"


def _records(strategy: Strategy, fields: Sequence[str] = _FIELDS) -> Records:
    """Return what each host reads, of the first fields."""
    reads = strategy.columns
    if reads is None:
        return Records(0, fields, lambda start, stop: [])
    known = [reads.num_examples, reads.num_bytes, reads.num_files, strategy.batches]
    return numbered_records(fields, known[: len(fields) - 1])


def hosts_document(plan: HostsPlan) -> Document:
    """Return the document of `hosts` for one number of hosts."""
    comparison = plan.comparisons[0]
    return {
        **head("hosts", plan.dataset.identity),
        "spec": plan.spec,
        "num_hosts": comparison.num_hosts,
        "batch": plan.settings.batch,
        "strategies": [_strategy(strategy) for strategy in comparison.strategies],
        **picked(comparison, "recommended=recommended.name"),
        "reason": reason(comparison),
        **_of_loader(plan, comparison.strategies[0]),
        "advice": list(advice(comparison, plan.settings)),
    }


def _of_loader(plan: HostsPlan, own: Strategy) -> Document:
    """Return what there is to say of another loader than TFDS's."""
    if not plan.settings.loader_version:
        return {}
    of_examples = "repeated_examples=num_repeated left_out_examples=num_left_out"
    return {**picked(plan.settings, "loader loader_version"), **picked(own, of_examples)}


def _strategy(strategy: Strategy) -> Document:
    return {
        "name": strategy.name,
        "hosts": _records(strategy),
        **picked(strategy, _SUMMARY),
        "stragglers": {
            "examples": _load(strategy.num_examples),
            "bytes": _load(strategy.num_bytes),
        },
        "equal_batches": None if strategy.num_batches is None else not strategy.is_uneven,
        **picked(strategy, "same_permutation refusal"),
    }


def _load(load: Load | None) -> Document | None:
    return record_of(load, "index=straggler min max total imbalance")


def hosts_rows(plan: HostsPlan) -> RecordStream:
    """Return a row for each strategy and host."""
    return RecordStream(
        ["strategy", *_FIELDS],
        lambda: (
            (count, [strategy.name, *cells])
            for strategy in plan.comparisons[0].strategies
            for count, cells in _records(strategy).pieces()
        ),
    )


# A sweep over numbers of hosts: a row for each number and strategy, as a table and as records.

_ENDS = "min_examples=num_examples.min max_examples=num_examples.max"
_ENDS += " min_batches=num_batches.min max_batches=num_batches.max refusal"
_SHOWN = tables.columns(
    "num_hosts=hosts <recommended <strategy 3read_amplification=read_amplification"
)
_SHOWN += tables.columns("3imbalance idle_hosts=idle min_batches max_batches")


def sweep_table(plan: HostsPlan, screen: tables.Screen) -> Iterator[str]:
    """Yield a line for each number of hosts and strategy."""
    numbers = counted(len(plan.comparisons), "number") + " of hosts"
    yield tables.paragraph(title(plan, numbers), screen, style="bold")
    records = list(_sweep(plan))
    rows = [[tables.cell_of(record[c.field], c) for c in _SHOWN] for record in records]
    for row, record in zip(rows, records, strict=True):
        row[2] += "*" if record["refusal"] else ""
    yield tables.table(_SHOWN, rows, screen)
    if any(record["refusal"] for record in records):
        yield tables.paragraph("* TFDS refuses to read so", screen)


def _sweep(plan: HostsPlan) -> Iterator[Document]:
    for comparison in plan.comparisons:
        for strategy in comparison.strategies:
            of_number = picked(comparison, "num_hosts recommended=recommended.name")
            yield {**of_number, **picked(strategy, f"strategy=name {_SUMMARY} {_ENDS}")}


def sweep_document(plan: HostsPlan) -> Document:
    """Return the document of a sweep: an entry for each number of hosts and strategy."""
    of_plan = picked(plan, "spec batch=settings.batch")
    return {**head("hosts", plan.dataset.identity), **of_plan, "sweep": list(_sweep(plan))}


def sweep_rows(plan: HostsPlan) -> RecordStream:
    """Return a row for each number of hosts and strategy."""
    records = list(_sweep(plan))
    return stream_of(list(records[0]), [list(record.values()) for record in records])


# As pictures.

_CAPTION = (
    "A bar is the number of examples of a host; in a collective the others wait for the longest."
)


def hosts_pictures(plan: HostsPlan, paper: draw.Paper) -> tuple[draw.Picture, ...]:
    """Return what each host reads in each way to share.

    A sweep has no figures of single hosts, and no pictures.
    """
    from shardctl.draw import picture as draw

    comparison = plan.comparisons[0]
    if not comparison.num_examples:
        return (draw.nothing(f"What hosts read of {plan.spec}"),)
    if comparison.strategies[0].columns is None:
        return ()
    return tuple(_bars_of(comparison, strategy, paper) for strategy in comparison.strategies)


def _bars_of(comparison: Comparison, strategy: Strategy, paper: draw.Paper) -> draw.Picture:
    """Return a bar for each host, or group of them; one for all where hosts are alike."""
    from shardctl.draw import picture as draw

    found = list(_quantities(strategy))
    differ = any(draw.differs(values, exact=name == "batches") for name, values in found)
    rows = paper.num_rows(comparison.num_hosts) if differ else 1
    groups = buckets(found[0][1], rows)
    # Hosts are grouped alike in each series, so that the bars of a row are of the same hosts.
    series = [
        draw.Series(name, [_bar(name, group) for group in buckets(values, rows)])
        for name, values in found
    ]
    labels = [numbered(group.first, group.last) for group in groups]
    return draw.Picture(
        title=f"{strategy.name}: what each of {counted(comparison.num_hosts, 'host')} reads",
        caption=_CAPTION
        + " Highlighted: hosts without examples." * (not found[0][1].min())
        + draw.OF_GROUPS * (1 < len(groups) < comparison.num_hosts),
        said=f"{strategy.refusal or f'A host reads {spread(strategy.num_examples)} examples'}.",
        marks=tuple(draw.bar_lines(f"{strategy.name}: host", labels, series, paper)),
        warnings=(f"{strategy.name}: {strategy.refusal}",) if strategy.refusal else (),
    )


def _bar(name: str, group: Bucket) -> draw.Bar:
    from shardctl.draw import picture as draw

    between = bytes_between if name == "bytes" else counts_between
    idle = name == "examples" and not group.min
    word = ("idle" if not group.max else "some idle") if idle else ""
    return draw.Bar(group.min, group.max, between(int(group.min), int(group.max)), word)


def _quantities(strategy: Strategy) -> Iterator[tuple[str, Int64s]]:
    """Yield what hosts have of examples, of batches and of bytes, where these are known.

    Without bytes it is the examples taken from disk, where more are taken than are yielded.
    """
    columns = strategy.columns
    assert columns is not None
    yield "examples", columns.num_examples
    if strategy.batches is not None:
        yield "batches", strategy.batches
    if columns.num_bytes is not None:
        yield "bytes", columns.num_bytes
    elif not np.array_equal(columns.num_read, columns.num_examples):
        yield "examples from disk", columns.num_read
