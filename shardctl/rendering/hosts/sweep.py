"""A sweep over numbers of hosts as a table for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.hosts.advice import reason
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.rendering.hosts.hosts import extremes, number, summary_record, title
from shardctl.rendering.text.quantities import counted
from shardctl.rendering.text.screen import Screen
from shardctl.rendering.text.tables import Column, paragraph, table

_COLUMNS = ("hosts", "serves best", "even read", "even", "files", "idle", "examples read")
_LEGEND = (
    "read: times the data is read; even and files: imbalance, examples of the busiest host / mean; "
    "idle: hosts without a file under files; * refused by TFDS"
)

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
    columns = [Column(heading=heading) for heading in _COLUMNS]
    with_batches = plan.settings.batch is not None
    if with_batches:
        columns.append(Column(heading="batches"))
    rows = []
    for comparison in plan.comparisons:
        even, files, examples = comparison.strategies
        best = comparison.recommended
        row = [
            str(comparison.num_hosts),
            "none" if best is None else best.name,
            number(even.read_amplification, 2) + ("*" if even.refusal else ""),
            number(even.imbalance, 3),
            number(files.imbalance, 3) + ("*" if files.refusal else ""),
            f"{files.idle_hosts:,}",
            number(examples.read_amplification, 2),
        ]
        if with_batches:
            row.append("-" if best is None else extremes(best.num_batches))
        rows.append(row)
    yield table(columns, rows, screen)
    legend = _LEGEND + ("; batches under what serves best" if with_batches else "")
    yield paragraph(legend, screen)


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
