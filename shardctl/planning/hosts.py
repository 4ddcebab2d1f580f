"""What does each of N hosts read, dealt evenly, by files or by examples, and what serves best?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardctl.core.dataset import INT64_MAX, Dataset
from shardctl.core.file_instruction import SplitRange
from shardctl.core.file_order import sorted_rows
from shardctl.core.host_reads import HostReads, host_reads
from shardctl.core.quoting import quoted
from shardctl.core.read_settings import HostBy, ReadSettings
from shardctl.core.read_table import Int64s, ReadTable, read_table
from shardctl.core.subsplit import default_spec, resolve_subsplit
from shardctl.errors import UsageError

STRATEGIES: tuple[HostBy, ...] = ("even", "files", "examples")

# A tenth more than is needed: even splits stay below it from about five files a host on.
MAX_AMPLIFICATION = 1.1

MAX_NUM_HOSTS = 1_000_000
_EVEN = 1.01  # without a batch size hosts count as even when the busiest has 1% over the mean


@dataclass(frozen=True, kw_only=True)
class Load:
    """How a quantity is spread over the hosts: its extremes, and the straggler.

    `straggler` is the first host that has the most; `imbalance` is max / mean over all hosts, the
    idle ones included: 1.0 where all have the same, None where there is nothing.
    """

    min: int
    max: int
    total: int
    straggler: int
    imbalance: float | None


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One way of dealing to the hosts, and what it comes to.

    read_amplification: examples that all hosts take from disk over examples in the spec; None for
        a spec without examples.
    idle_hosts: number of hosts that get no examples.
    shared_files: number of files that more than one host opens.
    num_batches: of the whole pass, None without a batch size.
    same_permutation: whether all hosts open their files in the same permutation of places, None
        where files are not shuffled or no seed fixes how.
    refusal: why TFDS does not read this way, None where it does.
    columns, batches: the figures of each host, None in a sweep.
    """

    name: HostBy
    num_examples: Load
    num_bytes: Load | None
    num_files: Load
    num_batches: Load | None
    read_amplification: float | None
    shared_files: int
    idle_hosts: int
    same_permutation: bool | None
    refusal: str | None
    columns: HostReads | None
    batches: Int64s | None

    @property
    def imbalance(self) -> float | None:
        """Examples of the busiest host over those of the mean one."""
        return self.num_examples.imbalance

    @property
    def is_uneven(self) -> bool:
        """Whether hosts make different numbers of batches; by examples where no batch is given."""
        if self.num_batches is not None:
            return self.num_batches.min != self.num_batches.max
        return (self.imbalance or 1.0) > _EVEN


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The strategies for one number of hosts.

    `num_file_instructions` is how many files, or parts of files, there are to deal.
    """

    num_hosts: int
    num_examples: int
    num_file_instructions: int
    strategies: tuple[Strategy, ...]

    def strategy(self, name: HostBy) -> Strategy:
        """Return a strategy by name."""
        return self.strategies[STRATEGIES.index(name)]

    @cached_property
    def recommended(self) -> Strategy | None:
        """The strategy that serves best, None where TFDS refuses all.

        First, one that leaves no host idle; then one whose hosts keep step (the same number of
        batches, or the least imbalance); then the one that reads least; even splits before files
        before examples where all this is the same.
        """
        able = [strategy for strategy in self.strategies if strategy.refusal is None]
        return min(able, key=_drawbacks) if able else None

    @property
    def even_shard_counts(self) -> tuple[int, ...]:
        """Numbers of shards next to the present one that the hosts divide without a remainder."""
        below = self.num_file_instructions // self.num_hosts * self.num_hosts
        if below and below == self.num_file_instructions:
            return (below,)
        return tuple(count for count in (below, below + self.num_hosts) if count)


def _drawbacks(strategy: Strategy) -> tuple[float, ...]:
    uneven = strategy.is_uneven
    return (
        strategy.idle_hosts > 0,
        uneven,
        round(strategy.imbalance or 1.0, 2) if uneven else 0.0,
        strategy.read_amplification or 0.0,
        STRATEGIES.index(strategy.name),
    )


@dataclass(frozen=True, kw_only=True)
class HostsPlan:
    """A comparison for each number of hosts, in the order asked."""

    dataset: Dataset
    spec: str
    settings: ReadSettings
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...] = ()


def hosts(
    dataset: Dataset,
    spec: str | None = None,
    num_hosts: int | Sequence[int] = 1,
    settings: ReadSettings | None = None,
) -> HostsPlan:
    """Return what hosts read of a spec (None is `train`, else the only split) in one epoch.

    Of the settings the file order, the file shuffle, the epochs and the batches take part; batches
    are those of all epochs, formed across them as `ds.repeat(epochs).batch(batch)` does. Several
    numbers of hosts are a sweep, which leaves out the figures of single hosts.

    Raises:
        UsageError: a bad spec, a number of hosts outside 1 to 1,000,000, a bad file order.

    >>> from shardctl.core.dataset import Split
    >>> train = Split.even(name="train", num_examples=120, num_shards=6)
    >>> plan = hosts(Dataset(name="d", splits=(train,)), "train", 4)
    >>> [(s.name, s.imbalance, s.read_amplification) for s in plan.comparisons[0].strategies]
    [('even', 1.0, 1.1666666666666667), ('files', 1.3333333333333333, 1.0), ('examples', 1.0, 4.0)]
    >>> plan.comparisons[0].recommended.name
    'even'
    """
    settings = ReadSettings() if settings is None else settings
    counts = (num_hosts,) if isinstance(num_hosts, int) else tuple(num_hosts)
    for count in counts:
        if not 1 <= count <= MAX_NUM_HOSTS:
            raise UsageError(
                f"--hosts {quoted(count, 24)}: a number from 1 to {MAX_NUM_HOSTS} is needed"
            )
    resolved = resolve_subsplit(default_spec(dataset) if spec is None else spec, dataset)
    table = sorted_rows(
        read_table(dataset, resolved.ranges),
        reverse=settings.reverse,
        file_order=settings.file_order,
    )
    if table.num_examples * settings.epochs > INT64_MAX:
        raise UsageError(f"--epochs {settings.epochs} of {table.num_examples} examples is too many")
    keep = isinstance(num_hosts, int)
    return HostsPlan(
        dataset=dataset,
        spec=resolved.spec,
        settings=settings,
        comparisons=tuple(
            _compared(table, resolved.ranges, count, settings, keep_columns=keep)
            for count in counts
        ),
        warnings=(*resolved.warnings, *_data_source(dataset)),
    )


def _data_source(dataset: Dataset) -> tuple[str, ...]:
    if dataset.file_format != "array_record":
        return ()
    return (
        "array_record files are read by as_data_source, which seeks; the figures are those of "
        "as_dataset, which reads a file from its start",
    )


def _compared(
    table: ReadTable,
    ranges: Sequence[SplitRange],
    num_hosts: int,
    settings: ReadSettings,
    *,
    keep_columns: bool,
) -> Comparison:
    strategies = []
    for name in STRATEGIES:
        strategy = _strategy(name, host_reads(table, ranges, name, num_hosts), table, settings)
        if not keep_columns:
            strategy = replace(strategy, columns=None, batches=None)
        strategies.append(strategy)
    return Comparison(
        num_hosts=num_hosts,
        num_examples=table.num_examples,
        num_file_instructions=len(table),
        strategies=tuple(strategies),
    )


def _strategy(
    name: HostBy, columns: HostReads, table: ReadTable, settings: ReadSettings
) -> Strategy:
    num_batches = None
    if settings.batch is not None:
        whole, rest = np.divmod(columns.num_examples * settings.epochs, settings.batch)
        num_batches = whole if settings.drop_remainder else whole + (rest > 0)
    num_read, total = sum(columns.num_read.tolist()), table.num_examples
    return Strategy(
        name=name,
        num_examples=_load(columns.num_examples),
        num_bytes=None if columns.num_bytes is None else _load(columns.num_bytes),
        num_files=_load(columns.num_files),
        num_batches=None if num_batches is None else _load(num_batches),
        read_amplification=num_read / total if total else None,
        shared_files=columns.num_shared_files,
        idle_hosts=int((columns.num_examples == 0).sum()),
        same_permutation=_same_permutation(columns, settings),
        refusal=refusal(name, columns.num_examples, len(table)),
        columns=columns,
        batches=num_batches,
    )


def _load(values: Int64s) -> Load:
    total = sum(values.tolist())  # of Python's ints: N hosts that read all are past an int64 soon
    most = int(values.max())
    return Load(
        min=int(values.min()),
        max=most,
        total=total,
        straggler=int(values.argmax()),
        imbalance=most * len(values) / total if total else None,
    )


def refusal(name: HostBy, num_examples: Int64s, num_file_instructions: int) -> str | None:
    """Return why TFDS does not read this way on every host, None where it does.

    Sources: TFDS core/reader.py, validate_input_context; core/splits.py and core/dataset_builder.py
    ("corresponds to no data!").
    """
    num_hosts, total = len(num_examples), int(num_examples.sum())
    if not total:
        return "TFDS refuses to read a spec without examples"
    if name == "files" and 1 < num_hosts > num_file_instructions:
        return (
            f"TFDS refuses an InputContext with fewer files than hosts: {num_file_instructions:,} "
            f"for {num_hosts:,}"
        )
    idle = int((num_examples == 0).sum())
    if name == "even" and idle:
        return f"TFDS refuses to read a split without examples, which {idle:,} hosts would get"
    return None


def _same_permutation(columns: HostReads, settings: ReadSettings) -> bool | None:
    """Whether hosts that read shuffle their instructions by the same permutation.

    TFDS shuffles a host's list with a buffer at least as large, so that the seed and the number of
    instructions fix the permutation (TFDS core/reader.py, _read_files).
    """
    if not settings.shuffles_files or settings.shuffle_seed is None:
        return None
    counts = columns.num_instructions[columns.num_instructions > 0]
    return len(counts) == 0 or int(counts.min()) == int(counts.max())
