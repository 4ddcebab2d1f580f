"""What hosts read, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shardctl.base.columns import Cell as RowsCell
from shardctl.base.columns import Records, RecordStream, picked, record_of, stream_of
from shardctl.base.text import counted
from shardctl.draw.quantities import bytes_between, counts_between, number, percent_over
from shardctl.draw.tables import (
    Cell,
    Column,
    Screen,
    cell_of,
    columns,
    paragraph,
    paragraphs,
    table,
    table_pieces,
)
from shardctl.files.documents import Document
from shardctl.saved.head import head
from shardctl.spec.host import HOST_MODES
from shardctl.verbs.hosts.answer import Comparison, HostsPlan, advice, reason
from shardctl.verbs.hosts.sharing import OUTSTANDING, Load, Strategy

_ROWS = 8  # hosts of one strategy on a terminal

_COLUMNS = columns("index=host num_examples=examples ~num_bytes=bytes num_files=files")
_COLUMNS += columns("num_batches=batches")
_FIELDS = [column.field for column in _COLUMNS]
_SUMMARY = "read_amplification imbalance idle_hosts shared_files"


def hosts_table(plan: HostsPlan, screen: Screen, *, every_strategy: bool = False) -> Iterator[str]:
    """Yield the strategies side by side, which serves best and why, then the hosts under it.

    With `every_strategy` the hosts under the others follow too.
    """
    comparison = plan.comparisons[0]
    yield paragraph(title(plan, counted(comparison.num_hosts, "host")), screen, style="bold")
    yield table(*measure_cells(plan), screen)
    refused = (one for one in comparison.strategies if one.refusal is not None)
    yield from paragraphs(screen, *(f"* {one.name}: {one.refusal}" for one in refused))
    best = comparison.recommended
    named = "none" if best is None else best.name
    serves = f"serves best: {named}, " if len(comparison.strategies) > 1 else ""
    advised = (f"- {line}" for line in advice(comparison, plan.settings))
    yield from paragraphs(screen, f"{serves}{reason(comparison)}", *advised)
    shown = comparison.strategies if every_strategy else [best] if best is not None else []
    for strategy in shown:
        yield "\n"
        yield from _host_table(strategy, screen)
    if screen.pictures:
        from shardctl.draw.picture import picture_lines

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
    return "-" if load is None else counts_between(load.min, load.max)


def _byte_extremes(load: Load | None) -> str:
    return "unknown" if load is None else bytes_between(load.min, load.max)


def _straggler(load: Load | None) -> str:
    """Return the host with the most and how far it is above the mean; `-` where none stands out."""
    if load is None or load.imbalance is None or load.imbalance < OUTSTANDING:
        return "-"
    return f"host {load.straggler} {percent_over(load.imbalance - 1)}"


def _yes_or_no(value: bool | None) -> str:
    return "open" if value is None else "yes" if value else "no"


def _host_table(strategy: Strategy, screen: Screen) -> Iterator[str]:
    yield paragraph(f"{strategy.name}: what each host reads", screen, style="bold")
    shown = _COLUMNS if strategy.batches is not None else _COLUMNS[:-1]

    def row(record: Document) -> Sequence[str]:
        index, *others = record.values()
        cells = (cell_of(value, of) for value, of in zip(others, shown[1:], strict=False))
        return [str(index), *cells]

    yield from table_pieces(shown, _records(strategy).map(row), screen, keep=_ROWS)


def _records(strategy: Strategy) -> Records:
    """Return what each host reads."""
    reads = strategy.columns
    if reads is None:
        return Records(0, _FIELDS, lambda start, stop: [])
    known = (reads.num_examples, reads.num_bytes, reads.num_files, strategy.batches)

    def cells(start: int, stop: int) -> list[RowsCell]:
        own = (None if column is None else column[start:stop] for column in known)
        return [list(range(start, stop)), *own]

    return Records(len(reads.num_examples), _FIELDS, cells)


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
        "advice": list(advice(comparison, plan.settings)),
    }


def _of_loader(plan: HostsPlan, comparison: Comparison) -> Document:
    """Return what there is to say of another loader than TFDS's."""
    if not plan.settings.loader_version:
        return {}
    return {
        **picked(plan.settings, "loader loader_version"),
        **picked(comparison, "repeated_examples=num_repeated left_out_examples=num_left_out"),
    }


def _strategy(strategy: Strategy) -> Document:
    return {"name": strategy.name, "hosts": _records(strategy), **summary_record(strategy)}


def summary_record(strategy: Strategy) -> Document:
    """Return what a strategy comes to, without single hosts."""
    return {
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


# A sweep over numbers of hosts as a table for people, a document or rows.


def sweep_table(plan: HostsPlan, screen: Screen) -> Iterator[str]:
    """Yield a line for each number of hosts."""
    numbers = counted(len(plan.comparisons), "number") + " of hosts"
    yield paragraph(title(plan, numbers), screen, style="bold")
    rows = [_sweep_cells(comparison) for comparison in plan.comparisons]
    headings = [Column(heading=heading) for heading, _ in rows[0]]
    yield table(headings, [[text for _, text in row] for row in rows], screen)
    yield paragraph(_legend(plan, headings[-1].heading), screen)
    if screen.pictures:
        from shardctl.draw.picture import picture_lines

        yield "\n"
        yield from picture_lines(plan, screen)


def _sweep_cells(comparison: Comparison) -> list[tuple[str, str]]:
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
            ("idle", number(first.idle_hosts)),
            ("again", number(first.num_repeated)),
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
            cells.append(("idle", number(strategy.idle_hosts)))
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
            **picked(comparison, "num_hosts"),
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
        **picked(plan, "spec batch=settings.batch"),
        "sweep": entries,
    }


def sweep_rows(plan: HostsPlan) -> RecordStream:
    """Return a row for each number of hosts and strategy."""
    ends = "min_examples max_examples min_batches max_batches"
    rows = [
        (
            comparison.num_hosts,
            comparison.recommended.name if comparison.recommended else None,
            strategy.name,
            *picked(strategy, _SUMMARY).values(),
            *picked(strategy.num_examples, "min max").values(),
            *picked(strategy.num_batches, "min max").values(),
        )
        for comparison in plan.comparisons
        for strategy in comparison.strategies
    ]
    return stream_of(f"num_hosts recommended strategy {_SUMMARY} {ends}", rows)
