"""What does each of N hosts read, split evenly, by files or by examples, and what serves best?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.hosts.host_reads import SharedReads
from shardctl.core.hosts.modes import HOST_MODES, HostMode
from shardctl.core.instructions.file_order import sorted_rows
from shardctl.core.instructions.reads import reads_of
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.core.tabular import Tabular
from shardctl.core.text import choices, counted, in_short, quoted
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_open_hosts
from shardctl.planning.hosts.loaders import call_of_hosts, shares_of
from shardctl.planning.hosts.stages import shared_reader
from shardctl.planning.hosts.strategy import Strategy, strategy_of, strategy_of_loader
from shardctl.planning.loader_version import loader_version
from shardctl.planning.order import as_read_by, as_warnings, resolved_spec

# A tenth more than is needed: even splits stay below it from about five files a host on.
MAX_AMPLIFICATION = 1.1

MAX_NUM_HOSTS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The strategies for one number of hosts.

    `num_file_instructions` is how many files, or parts of files, there are to share. Of a loader
    there is one strategy, its own; `num_repeated` examples are handed out again as its padding, and
    `num_left_out` by no host.
    """

    num_hosts: int
    num_examples: int
    num_file_instructions: int
    strategies: tuple[Strategy, ...]
    num_repeated: int = 0
    num_left_out: int = 0

    @checked
    def strategy(self, name: str) -> Strategy:
        """Return a strategy by name.

        Raises:
            UsageError: there is none of this name.
        """
        by_name = {strategy.name: strategy for strategy in self.strategies}
        if name not in by_name:
            raise UsageError(f"name={quoted(name)}: choose from {choices(by_name)}")
        return by_name[name]

    @cached_property
    def recommended(self) -> Strategy | None:
        """The strategy that serves best, None where TFDS refuses all.

        First, one that leaves no host idle; then one whose hosts keep step (the same number of
        batches, or the least imbalance); then the one that reads least; the first of `HOST_MODES`
        where all this is the same.
        """
        able = [strategy for strategy in self.strategies if strategy.refusal is None]
        return min(able, key=_drawbacks) if able else None

    @property
    def even_shard_counts(self) -> tuple[int, ...]:
        """Numbers of shards next to the present one that the hosts divide without a remainder."""
        if self.strategies[0].name not in HOST_MODES:
            return ()  # examples are shared, whatever file they lie in
        below = self.num_file_instructions // self.num_hosts * self.num_hosts
        if below and below == self.num_file_instructions:
            return (below,)
        return tuple(count for count in (below, below + self.num_hosts) if count)

    def __repr__(self) -> str:
        return in_short(self, counted(self.num_hosts, "host"), _best(self))


def _best(comparison: Comparison) -> str:
    best = comparison.recommended
    return "TFDS refuses all" if best is None else f"best: {best.name}"


def _drawbacks(strategy: Strategy) -> tuple[float, ...]:
    uneven = strategy.is_uneven
    return (
        strategy.idle_hosts > 0,
        uneven,
        round(strategy.imbalance or 1.0, 2) if uneven else 0.0,
        strategy.read_amplification or 0.0,
    )


@dataclass(frozen=True, kw_only=True)
class HostsPlan(Tabular):
    """A comparison for each number of hosts, in the order asked."""

    dataset: Dataset
    spec: str
    settings: ReadSettings
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...] = ()

    @property
    def judged(self) -> str:
        """The strategy that the settings choose: that of `host_by`, or the one of a loader."""
        if self.settings.loader == "tfds":
            return self.settings.host_by
        return call_of_hosts(self.settings)

    def __repr__(self) -> str:
        told = [f"{counted(c.num_hosts, 'host')} ({_best(c)})" for c in self.comparisons]
        return in_short(self, f"{self.dataset.title} {self.spec}", choices(told, 4))


@checked
def hosts(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    hosts: int | Sequence[int] = 1,
) -> HostsPlan:
    """Return what every host reads of a spec in one epoch, and which way to share serves best.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: of these the file order, the file shuffle, the epochs and the batches count;
            batches are formed across epochs, as `ds.repeat(epochs).batch(batch)` does. Stages of
            one reader count behind the share of each host. Another loader shares its own way.
        hosts: how many; several numbers are a sweep, which leaves out the figures of single hosts.

    Returns:
        A HostsPlan; `comparisons[0]` is that of the first number of hosts.

    Raises:
        UsageError: a bad spec, a number of hosts outside 1 to 1,000,000, a bad file order.
        UnpredictableOrderError: TFDS leaves the order of the splits open, which decides by files.

    >>> import shardctl
    >>> found = shardctl.hosts("imagenet2012", "train", hosts=64).comparisons[0]
    >>> [(one.name, one.idle_hosts) for one in found.strategies], found.recommended.name
    ([('even', 0), ('files', 0), ('examples', 0)], 'files')
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    if settings.stages is not None:
        dataset, spec, settings = shared_reader(dataset, spec, settings)
    return hosts_of(resolved_spec(dataset, spec), hosts, settings)


def hosts_of(
    resolved: Resolved,
    num_hosts: int | Sequence[int],
    settings: ReadSettings,
    modes: Sequence[HostMode] | None = None,
) -> HostsPlan:
    """Return what hosts read of a spec that is resolved, in some of the modes; see `hosts`."""
    if settings.loader != "tfds":
        version = loader_version(settings)
        settings = replace(settings, host=None, loader_version=version.version)
        kept = as_read_by(resolved, settings)
        said = (*version.warnings, *as_warnings(version.assumptions))
        resolved = replace(kept, warnings=(*kept.warnings, *said))
    modes = tuple(HOST_MODES.values()) if modes is None else modes
    dataset = resolved.dataset
    counts = (num_hosts,) if isinstance(num_hosts, int) else tuple(num_hosts)
    for count in counts:
        if not 1 <= count <= MAX_NUM_HOSTS:
            raise UsageError(
                phrase("{hosts!}: a number from 1 to {} is needed", MAX_NUM_HOSTS, hosts=count)
            )
    keep = isinstance(num_hosts, int)  # as which every whole number is kept
    if settings.loader != "tfds":
        return HostsPlan(
            dataset=dataset,
            spec=resolved.spec,
            settings=settings,
            comparisons=tuple(_of_loader(resolved, n, settings, keep_columns=keep) for n in counts),
            warnings=resolved.warnings,
        )
    reads = sorted_rows(
        reads_of(dataset, resolved.ranges),
        reverse=settings.reverse,
        file_order=settings.file_order,
    )
    shared = SharedReads(reads, resolved.ranges)
    if shared.num_examples * settings.epochs > INT64_MAX:
        raise UsageError(
            phrase(
                "{epochs=} of {} examples is too many",
                shared.num_examples,
                epochs=settings.epochs,
            )
        )
    # A host, or a row that is cut for one, takes about a microsecond.
    progress = Progress(
        None,
        "hosts and files",
        sum(count + len(reads) for count in counts),
        per_second=1_000_000,
        instead=phrase("give fewer {hosts}"),
    )
    return HostsPlan(
        dataset=dataset,
        spec=resolved.spec,
        settings=settings,
        comparisons=tuple(
            _compared(shared, resolved, count, settings, modes, keep_columns=keep)
            for count in progress.over(counts, lambda count: count + len(reads))
        ),
        warnings=resolved.warnings,
    )


def _of_loader(
    resolved: Resolved, num_hosts: int, settings: ReadSettings, *, keep_columns: bool
) -> Comparison:
    shares = shares_of(resolved, settings, num_hosts)
    strategy = strategy_of_loader(shares, call_of_hosts(settings))
    if not keep_columns:
        strategy = replace(strategy, columns=None, batches=None)
    return Comparison(
        num_hosts=num_hosts,
        num_examples=shares.reads.num_examples,
        num_file_instructions=len(shares.reads),
        strategies=(strategy,),
        num_repeated=shares.num_repeated,
        num_left_out=shares.num_left_out,
    )


def _compared(
    shared: SharedReads,
    resolved: Resolved,
    num_hosts: int,
    settings: ReadSettings,
    modes: Sequence[HostMode],
    *,
    keep_columns: bool,
) -> Comparison:
    strategies = []
    for mode in modes:
        refuse_open_hosts(resolved, mode, num_hosts)
        columns = mode.host_reads(shared, num_hosts)
        strategy = strategy_of(mode, columns, shared, settings)
        if not keep_columns:
            strategy = replace(strategy, columns=None, batches=None)
        strategies.append(strategy)
    return Comparison(
        num_hosts=num_hosts,
        num_examples=shared.num_examples,
        num_file_instructions=len(shared.reads),
        strategies=tuple(strategies),
    )
