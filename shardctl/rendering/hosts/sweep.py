"""A sweep over numbers of hosts as a table for people, a document or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shardctl.core.hosts.modes import HOST_MODES, HostMode
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.hosts.advice import reason
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.hosts.strategy import Strategy
from shardctl.rendering.hosts.hosts import extremes, number, summary_record, title
from shardctl.rendering.text.tables import Column, Screen, paragraph, table

CSV_HEADER = (
    "num_hosts",
    "recommended",
    "strategy",
    "read_amplification",
    "imbalance",
    "idle_hosts",
    "shared_files",
    "min_examples",
    "max_examples",
    "min_batches",
    "max_batches",
)


def sweep_table(plan: HostsPlan, screen: Screen) -> Iterator[str]:
    """Yield a line for each number of hosts."""
    numbers = counted(len(plan.comparisons), "number") + " of hosts"
    yield paragraph(title(plan, numbers), screen, style="bold")
    own_way = not plan.settings.reader.shares_in_modes
    yield from (_of_loader if own_way else _of_modes)(plan, screen)
    if screen.pictures:
        from shardctl.rendering.hosts.loads import sweep_bars

        yield "\n"
        yield from sweep_bars(plan, screen)


def _of_modes(plan: HostsPlan, screen: Screen) -> Iterator[str]:
    headings = ["hosts", "serves best"]
    headings += [heading for mode in HOST_MODES.values() for heading in _figures(mode)]
    columns = [Column(heading=heading) for heading in headings]
    with_batches = plan.comparisons[0].strategies[0].num_batches is not None
    if with_batches:
        columns.append(Column(heading="batches"))
    rows = []
    for comparison in plan.comparisons:
        best = comparison.recommended
        row = [str(comparison.num_hosts), "none" if best is None else best.name]
        for strategy in comparison.strategies:
            row += _cells(strategy)
        if with_batches:
            row.append("-" if best is None else extremes(best.num_batches))
        rows.append(row)
    yield table(columns, rows, screen)
    legend = _legend() + ("; batches under what serves best" if with_batches else "")
    yield paragraph(legend, screen)


def _of_loader(plan: HostsPlan, screen: Screen) -> Iterator[str]:
    """Yield a line for each number of hosts, which share as another loader does."""
    headings = ("hosts", "examples/host", "batches/host", "read", "imbalance", "idle", "again")
    columns = [Column(heading=heading) for heading in headings]
    rows = []
    for comparison in plan.comparisons:
        (own,) = comparison.strategies
        figures = (extremes(own.num_examples), extremes(own.num_batches))
        read, imbalance = number(own.read_amplification, 2), number(own.imbalance, 3)
        again = f"{comparison.num_repeated:,}"
        rows.append(
            (str(comparison.num_hosts), *figures, read, imbalance, f"{own.idle_hosts:,}", again)
        )
    yield table(columns, rows, screen)
    yield paragraph(
        f"read: times the data is read; again: examples that {plan.judged} hands out again; idle: "
        "hosts without examples",
        screen,
    )


def _figures(mode: HostMode) -> dict[str, Callable[[Strategy], str]]:
    """Return the figures that tell how a mode does with a number of hosts, by their headings."""
    figures: dict[str, Callable[[Strategy], str]] = {}
    if not mode.whole_files:  # those are read once, with any number of hosts
        figures[f"{mode.word} read"] = lambda s: number(s.read_amplification, 2)
    if not mode.reads_all:  # else no host keeps more than one example over another
        figures[mode.word] = lambda s: number(s.imbalance, 3)
    if mode.whole_files:
        figures["idle"] = lambda s: f"{s.idle_hosts:,}"
    return figures


def _cells(strategy: Strategy) -> list[str]:
    mode = HOST_MODES[strategy.name]
    first, *rest = (figure(strategy) for figure in _figures(mode).values())
    # Where every host reads all, TFDS refuses a spec without examples alone.
    refused = strategy.refusal is not None and not mode.reads_all
    return [first + "*" if refused else first, *rest]


def _legend() -> str:
    modes = HOST_MODES.values()
    cut = " and ".join(mode.word for mode in modes if not mode.reads_all)
    files = " and ".join(mode.word for mode in modes if mode.whole_files)
    return (
        f"read: times the data is read; {cut}: imbalance, examples of the busiest host / mean; "
        f"idle: hosts without a file under {files}; * refused by TFDS"
    )


def sweep_document(plan: HostsPlan) -> Document:
    """Return the document of a sweep: an entry for each number of hosts, without single hosts."""
    entries = [
        {
            "num_hosts": comparison.num_hosts,
            "recommended": comparison.recommended.name if comparison.recommended else None,
            "strategies": [
                {"name": strategy.name, **summary_record(strategy)}
                for strategy in comparison.strategies
            ],
            "reason": reason(comparison),
            "even_shard_counts": list(comparison.even_shard_counts),
        }
        for comparison in plan.comparisons
    ]
    return {
        **head("hosts", plan.dataset.identity),
        "spec": plan.spec,
        "batch": plan.settings.batch,
        "sweep": entries,
    }


def sweep_rows(plan: HostsPlan) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each number of hosts and strategy."""
    for comparison in plan.comparisons:
        best = comparison.recommended
        for strategy in comparison.strategies:
            batches = strategy.num_batches
            yield (
                comparison.num_hosts,
                best.name if best else None,
                strategy.name,
                strategy.read_amplification,
                strategy.imbalance,
                strategy.idle_hosts,
                strategy.shared_files,
                strategy.num_examples.min,
                strategy.num_examples.max,
                batches.min if batches else None,
                batches.max if batches else None,
            )
