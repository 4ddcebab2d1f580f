"""What hosts read, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shardctl.core.on_demand import OnDemand
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.hosts.advice import advice, reason
from shardctl.planning.hosts.hosts import Comparison, HostsPlan
from shardctl.planning.hosts.strategy import OUTSTANDING, Load, Strategy
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.quantities import (
    bytes_between,
    counts_between,
    human_bytes,
    percent_over,
)
from shardctl.rendering.text.tables import Cell, Column, Screen, paragraph, table, table_pieces

_ROWS = 8  # hosts of one strategy on a terminal

_PER_HOST = ("host", "examples", "bytes", "files", "batches")
CSV_HEADER = ("strategy", "index", "num_examples", "num_bytes", "num_files", "num_batches")


def hosts_table(plan: HostsPlan, screen: Screen, *, every_strategy: bool = False) -> Iterator[str]:
    """Yield the strategies side by side, which serves best and why, then the hosts under it.

    With `every_strategy` the hosts under the others follow too.
    """
    comparison = plan.comparisons[0]
    yield paragraph(title(plan, counted(comparison.num_hosts, "host")), screen, style="bold")
    yield table(*measure_cells(plan), screen)
    for strategy in comparison.strategies:
        if strategy.refusal is not None:
            yield paragraph(f"* {strategy.name}: {strategy.refusal}", screen)
    best = comparison.recommended
    named = "none" if best is None else best.name
    serves = f"serves best: {named}, " if len(comparison.strategies) > 1 else ""
    yield paragraph(f"{serves}{reason(comparison)}", screen)
    for line in advice(comparison, plan.settings):
        yield paragraph(f"- {as_options(line)}", screen)
    shown = comparison.strategies if every_strategy else [best] if best is not None else []
    for strategy in shown:
        yield "\n"
        yield from _host_table(strategy, screen)
    if screen.pictures:
        from shardctl.rendering.text.drawers import picture_lines

        yield "\n"
        yield from picture_lines(plan, screen)


def title(plan: HostsPlan, hosts: str) -> str:
    """Return the line over the tables: the spec, the dataset, how many hosts, which batches."""
    settings = plan.settings
    line = f"{plan.spec} in {plan.dataset.title}, {hosts}"
    if settings.batch is not None:
        line += f", batches of {settings.batch:,}"
        line += " without the remainder" if settings.drop_remainder else ""
        line += f" over {settings.epochs:,} epochs" if settings.epochs > 1 else ""
    return line


def measure_cells(plan: HostsPlan) -> tuple[list[Column], list[Sequence[str]]]:
    """Return the measures of each strategy side by side, as columns and rows."""
    comparison = plan.comparisons[0]
    columns = [Column(heading="measure", align="left")]
    columns += [Column(heading=strategy.name) for strategy in comparison.strategies]
    return columns, list(_measures(comparison, plan))


def _measures(comparison: Comparison, plan: HostsPlan) -> Iterator[Sequence[str]]:
    """Yield a row a measure: its name, and its value under each strategy."""
    rows: list[tuple[str, Callable[[Strategy], str]]] = [
        ("examples/host", lambda s: extremes(s.num_examples)),
        ("bytes/host", lambda s: _byte_extremes(s.num_bytes)),
        ("files/host", lambda s: extremes(s.num_files)),
    ]
    if any(strategy.num_batches is not None for strategy in comparison.strategies):
        rows.append(("batches/host", lambda s: extremes(s.num_batches)))
    rows += [
        ("times read", lambda s: number(s.read_amplification, 3)),
        ("imbalance", lambda s: number(s.imbalance, 3)),
        ("idle hosts", _idle),
        ("shared files", lambda s: f"{s.shared_files:,}"),
        ("most examples", lambda s: _straggler(s.num_examples)),
        ("most bytes", lambda s: _straggler(s.num_bytes)),
    ]
    if plan.settings.reader.has_blocks and plan.settings.shuffles_files:
        rows.append(("same shuffle", lambda s: _yes_or_no(s.same_permutation)))
    for name, measure in rows:
        yield (name, *map(measure, comparison.strategies))


def _idle(strategy: Strategy) -> str:
    text = f"{strategy.idle_hosts:,}" + ("*" if strategy.refusal else "")
    return Cell(text, "warning" if strategy.idle_hosts or strategy.refusal else "")


def extremes(load: Load | None) -> str:
    """Return the least and the most, or the one value all hosts have."""
    if load is None:
        return "-"
    return counts_between(load.min, load.max)


def _byte_extremes(load: Load | None) -> str:
    return "unknown" if load is None else bytes_between(load.min, load.max)


def _straggler(load: Load | None) -> str:
    """Return the host with the most and how far it is above the mean; `-` where none stands out."""
    if load is None or load.imbalance is None or load.imbalance < OUTSTANDING:
        return "-"
    return f"host {load.straggler} {percent_over(load.imbalance - 1)}"


def number(value: float | None, digits: int) -> str:
    """Return a figure with so many decimals, `-` where there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


def _yes_or_no(value: bool | None) -> str:
    return "open" if value is None else "yes" if value else "no"


def _host_table(strategy: Strategy, screen: Screen) -> Iterator[str]:
    yield paragraph(f"{strategy.name}: what each host reads", screen, style="bold")
    columns = [Column(heading=heading) for heading in _PER_HOST]
    records = _records(strategy)
    if strategy.batches is None:
        columns = columns[:-1]

    def row(index: int) -> Sequence[str]:
        host, examples, num_bytes, files, batches = records[index]
        cells = (str(host), f"{examples:,}", _bytes(num_bytes), f"{files:,}", _count(batches))
        return cells[: len(columns)]

    yield from table_pieces(columns, OnDemand(len(records), row), screen, keep=_ROWS)


def _bytes(num_bytes: int | None) -> str:
    return "unknown" if num_bytes is None else human_bytes(num_bytes)


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _records(
    strategy: Strategy,
) -> OnDemand[tuple[int, int, int | None, int, int | None]]:
    """Return (index, examples, bytes, files, batches) of each host."""
    columns = strategy.columns
    if columns is None:
        return OnDemand(0, lambda index: (index, 0, None, 0, None))
    examples, files = columns.num_examples, columns.num_files
    num_bytes, batches = columns.num_bytes, strategy.batches
    return OnDemand(
        len(examples),
        lambda index: (
            index,
            int(examples[index]),
            None if num_bytes is None else int(num_bytes[index]),
            int(files[index]),
            None if batches is None else int(batches[index]),
        ),
    )


def hosts_document(plan: HostsPlan) -> Document:
    """Return the document of `hosts` for one number of hosts."""
    comparison = plan.comparisons[0]
    best = comparison.recommended
    return {
        **head("hosts", plan.dataset.identity),
        "spec": plan.spec,
        "num_hosts": comparison.num_hosts,
        "batch": plan.settings.batch,
        "strategies": [_strategy(strategy) for strategy in comparison.strategies],
        "recommended": None if best is None else best.name,
        "reason": reason(comparison),
        "even_shard_counts": list(comparison.even_shard_counts),
        **_of_loader(plan, comparison),
        "advice": list(map(as_options, advice(comparison, plan.settings))),
    }


def _of_loader(plan: HostsPlan, comparison: Comparison) -> Document:
    """Return what there is to say of another loader than TFDS's."""
    if not plan.settings.loader_version:
        return {}
    return {
        "loader": plan.settings.loader,
        "loader_version": plan.settings.loader_version,
        "repeated_examples": comparison.num_repeated,
        "left_out_examples": comparison.num_left_out,
    }


def _strategy(strategy: Strategy) -> Document:
    names, records = CSV_HEADER[1:], _records(strategy)
    return {
        "name": strategy.name,
        "hosts": OnDemand(
            len(records), lambda index: dict(zip(names, records[index], strict=True))
        ),
        **summary_record(strategy),
    }


def summary_record(strategy: Strategy) -> Document:
    """Return what a strategy comes to, without single hosts."""
    return {
        "read_amplification": strategy.read_amplification,
        "imbalance": strategy.imbalance,
        "idle_hosts": strategy.idle_hosts,
        "shared_files": strategy.shared_files,
        "stragglers": {
            "examples": _load(strategy.num_examples),
            "bytes": _load(strategy.num_bytes),
        },
        "equal_batches": None if strategy.num_batches is None else not strategy.is_uneven,
        "same_permutation": strategy.same_permutation,
        "refusal": strategy.refusal,
    }


def _load(load: Load | None) -> Document | None:
    if load is None:
        return None
    return {
        "index": load.straggler,
        "min": load.min,
        "max": load.max,
        "total": load.total,
        "imbalance": load.imbalance,
    }


def hosts_rows(plan: HostsPlan) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each strategy and host."""
    for strategy in plan.comparisons[0].strategies:
        for record in _records(strategy):
            yield (strategy.name, *record)
