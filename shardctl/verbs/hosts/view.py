"""What hosts read, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.columns import Cell as RowsCell
from shardctl.base.columns import Records, RecordStream, picked, record_of, stream_of
from shardctl.base.text import counted
from shardctl.draw.quantities import (
    bytes_between,
    counts_between,
    human_bytes,
    in_ranges,
    number,
    numbered,
    percent_over,
    subject,
)
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
from shardctl.order.shard_map import Bucket, buckets
from shardctl.saved.head import head
from shardctl.spec.host_modes import HOST_MODES
from shardctl.spec.host_reads import HostReads
from shardctl.verbs.hosts.advice import advice, reason
from shardctl.verbs.hosts.answer import Comparison, HostsPlan
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


# What hosts differ in, and which of them stand out: said alike by tables, bars and pictures.

FROM_DISK = "examples from disk"
_ONE = {"examples": "example", FROM_DISK: "example from disk", "batches": "batch", "files": "file"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantity:
    """What each host has of something, int64[num_hosts].

    `in_step` is set where a single one more or less makes others wait.
    """

    name: str
    values: Int64s
    in_step: bool = False

    @cached_property
    def mean(self) -> float:
        """The mean of all hosts, the idle ones included."""
        return float(self.values.mean())

    @cached_property
    def straggler(self) -> int | None:
        """The first host that has the most, None where none stands out.

        One example more is as even as whole numbers can be, so it stands out only `in_step`.
        """
        most = int(self.values.max())
        differs = most - int(self.values.min())
        much = differs > 1 and most >= OUTSTANDING * self.mean
        return int(self.values.argmax()) if differs and (self.in_step or much) else None

    def stands_out(self, group: Bucket) -> bool:
        """Whether a group of hosts has one with the most, or with as much when it is rounded."""
        less = int(self.values.max()) - int(group.max)
        as_much = not less or (not self.in_step and less < (OUTSTANDING - 1) * self.mean)
        return as_much and self.straggler is not None

    @property
    def of_straggler(self) -> str:
        """The most that a host has, and how far that is over the mean where it can be read."""
        most = int(self.values.max())
        over = f" ({percent_over(most / self.mean - 1)})" if most >= OUTSTANDING * self.mean else ""
        return self.with_noun(most) + over

    def with_noun(self, value: int) -> str:
        """Return a value with what it counts; a size has its unit already.

        >>> Quantity(name="batches", values=np.array([3])).with_noun(3)
        '3 batches'
        """
        is_size = self.name == "bytes"
        return human_bytes(value) if is_size else counted(value, _ONE[self.name], self.name)

    def between(self, least: int, most: int) -> str:
        """Return a range of values, or the one that all have.

        >>> Quantity(name="examples", values=np.array([3, 4])).between(3, 4000)
        '3–4,000'
        """
        return (bytes_between if self.name == "bytes" else counts_between)(least, most)


def quantities(strategy: Strategy) -> tuple[Quantity, ...]:
    """Return what hosts have of examples, of batches and of bytes, where these are known.

    Without bytes it is the examples taken from disk, where they are others than are handed out.
    """
    columns = strategy.columns
    if columns is None:
        return ()
    found = [Quantity(name="examples", values=columns.num_examples)]
    if columns.num_bytes is not None:
        found.append(Quantity(name="bytes", values=columns.num_bytes))
    elif not np.array_equal(columns.num_read, columns.num_examples):
        found.append(Quantity(name=FROM_DISK, values=columns.num_read))
    if strategy.batches is not None:
        found.insert(1, Quantity(name="batches", values=strategy.batches, in_step=True))
    return tuple(found)


def told(strategy: Strategy) -> Iterator[str]:
    """Yield who is late and who is idle under a strategy, each a sentence without its dot."""
    columns = strategy.columns
    if columns is None:
        return
    most: dict[int, list[Quantity]] = {}
    for quantity in quantities(strategy):
        if quantity.straggler is not None:
            most.setdefault(quantity.straggler, []).append(quantity)
    for host, about in most.items():
        as_late = np.logical_and.reduce([one.values == one.values.max() for one in about])
        figures = ", ".join(one.of_straggler for one in about).replace("%)", "% over the mean)", 1)
        who = subject("host", np.flatnonzero(as_late), "has", "have")
        yield f"{who} the most: {figures}{_of_files(columns, host, about)}"
    batches = strategy.num_batches
    if batches is not None and batches.min != batches.max and strategy.refusal is None:
        yield (
            f"hosts make {batches.min:,} to {batches.max:,} batches: a collective hangs at step "
            f"{batches.min:,}"
        )
    if strategy.idle_hosts:
        idle = np.flatnonzero(columns.num_examples == 0)
        yield f"{subject('host', idle, 'is', 'are')} idle: no examples"


def told_of_padding(comparison: Comparison) -> Iterator[str]:
    """Yield how many examples a loader hands out again, and how many no host gets."""
    counts = {"again": comparison.num_repeated, "by no host": comparison.num_left_out}
    for how, count in counts.items():
        if count:
            yield f"{counted(count, 'example')} {'is' if count == 1 else 'are'} handed out {how}"


def _of_files(columns: HostReads, host: int, about: list[Quantity]) -> str:
    files, mean = int(columns.num_files[host]), float(columns.num_files.mean())
    said = f"; {counted(files, 'file')}"
    said += f" (mean {mean:,.1f})" if round(mean, 1) != files else ""
    taken, own = int(columns.num_read[host]), int(columns.num_examples[host])
    if taken > own and all(one.name != FROM_DISK for one in about):
        said += f", {counted(taken, 'example')} taken from disk"
    return said


# What tells how a way to share does with a number of hosts: the figures of a sweep.


class Figure(NamedTuple):
    """A figure that is 1 where nothing is wasted: its name, its meaning, the field it is."""

    heading: str
    meaning: str
    field: str


def figures(name: str) -> Iterator[Figure]:
    """Yield the figures that tell how a way to share does, those that others have by nature not.

    >>> [figure.heading for name in ("even", "files", "examples") for figure in figures(name)]
    ['even read', 'files imbalance']
    """
    mode = HOST_MODES.get(name)
    if mode is None or not (mode.whole_files or mode.reads_all):
        yield Figure(f"{name} read", "times the data is read", "read_amplification")
    if mode is None or mode.whole_files:
        yield Figure(f"{name} imbalance", "examples of the busiest host / mean", "imbalance")


def sweep_figures(plan: HostsPlan) -> list[tuple[int, Figure]]:
    """Return the figures of a sweep, each with the number of its strategy."""
    return [
        (index, figure)
        for index, strategy in enumerate(plan.comparisons[0].strategies)
        for figure in figures(strategy.name)
    ]


Group = Sequence[Comparison]


def sweep_groups(plan: HostsPlan, most: int) -> list[Group]:
    """Return the comparisons of a sweep in at most so many groups, in the order asked."""
    rows = plan.comparisons
    return [rows[found.first : found.last + 1] for found in buckets(range(len(rows)), most)]


def group_name(group: Group) -> str:
    """Return the numbers of hosts of a group."""
    counts = [comparison.num_hosts for comparison in group]
    return numbered(min(counts), max(counts))


class Spread(NamedTuple):
    """A figure over a group of numbers of hosts: how far over 1 it is, and what stands out."""

    least: float
    most: float
    words: str

    @property
    def text(self) -> str:
        """The figure itself.

        >>> Spread(0.028, 0.055, "").text
        '1.028–1.055'
        """
        least, most = f"{1 + self.least:,.3f}", f"{1 + self.most:,.3f}"
        return least if least == most else f"{least}–{most}"


def spread_of(group: Group, index: int, figure: Figure) -> Spread:
    """Return what a figure of the strategy at `index` is over a group; there are examples."""
    strategies = [comparison.strategies[index] for comparison in group]
    over = [(getattr(strategy, figure.field) or 1.0) - 1.0 for strategy in strategies]
    idle = [strategy.idle_hosts for strategy in strategies]
    num_refused = sum(strategy.refusal is not None for strategy in strategies)
    words = [f"{numbered(min(idle), max(idle))} idle"] if max(idle) else []
    if num_refused:
        words.append("refused" if num_refused == len(group) else f"{num_refused:,} refused")
    return Spread(max(min(over), 0.0), max(*over, 0.0), ", ".join(words))


def refused_numbers(plan: HostsPlan) -> Iterator[str]:
    """Yield with which numbers of hosts a way to share is refused, and with which some are idle."""
    for index, first in enumerate(plan.comparisons[0].strategies):
        found = [(one.num_hosts, one.strategies[index]) for one in plan.comparisons]
        refused = sorted({count for count, strategy in found if strategy.refusal is not None})
        idle = sorted({count for count, strategy in found if strategy.idle_hosts})
        said = {"refused and hosts idle": refused} if refused == idle else {}
        for word, counts in (said or {"refused": refused, "hosts idle": idle}).items():
            if counts:
                yield f"{first.name}: {word} with {in_ranges(np.array(counts))} hosts"
