"""A sweep over numbers of hosts as a table for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.core.hosts.modes import HOST_MODES
from shardctl.core.text import counted
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.hosts.advice import reason
from shardctl.planning.hosts.hosts import Comparison, HostsPlan
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
    cells = [_cells(comparison) for comparison in plan.comparisons]
    columns = [Column(heading=heading) for heading, _ in cells[0]]
    yield table(columns, [[text for _, text in row] for row in cells], screen)
    yield paragraph(_legend(plan, columns[-1].heading), screen)
    if screen.pictures:
        from shardctl.rendering.text.drawers import picture_lines

        yield "\n"
        yield from picture_lines(plan, screen)


def _cells(comparison: Comparison) -> list[tuple[str, str]]:
    """Return what is said of a number of hosts, and the heading of each column."""
    best, first = comparison.recommended, comparison.strategies[0]
    cells = [("hosts", str(comparison.num_hosts))]
    if first.name not in HOST_MODES:
        return [
            *cells,
            ("examples/host", extremes(first.num_examples)),
            ("batches/host", extremes(first.num_batches)),
            ("read", number(first.read_amplification, 2)),
            ("imbalance", number(first.imbalance, 3)),
            ("idle", f"{first.idle_hosts:,}"),
            ("again", f"{first.num_repeated:,}"),
        ]
    cells.append(("serves best", "none" if best is None else best.name))
    for strategy in comparison.strategies:
        mode, read = HOST_MODES[strategy.name], number(strategy.read_amplification, 2)
        # Where every host reads all, TFDS refuses a spec without examples alone.
        star = "*" if strategy.refusal is not None and not mode.reads_all else ""
        if not mode.whole_files:  # those are read once, with any number of hosts
            cells.append((f"{mode.word} read", read + star))
            star = ""
        if not mode.reads_all:  # else no host keeps more than one example over another
            cells.append((mode.word, number(strategy.imbalance, 3) + star))
        if mode.whole_files:
            cells.append(("idle", f"{strategy.idle_hosts:,}"))
    if first.num_batches is not None:
        cells.append(("batches", "-" if best is None else extremes(best.num_batches)))
    return cells


def _legend(plan: HostsPlan, last: str) -> str:
    if last == "again":
        return (
            f"read: times the data is read; again: examples that {plan.judged} hands out again; "
            "idle: hosts without examples"
        )
    modes = HOST_MODES.values()
    cut = " and ".join(mode.word for mode in modes if not mode.reads_all)
    files = " and ".join(mode.word for mode in modes if mode.whole_files)
    batches = "; batches under what serves best" if last == "batches" else ""
    return (
        f"read: times the data is read; {cut}: imbalance, examples of the busiest host / mean; "
        f"idle: hosts without a file under {files}; * refused by TFDS{batches}"
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
