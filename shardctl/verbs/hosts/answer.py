"""What each of N hosts reads, split evenly, by files or by examples, and which way is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.phrase import check_numbers
from shardctl.base.progress import Progress
from shardctl.base.text import choices, counted, in_short, printable, quoted
from shardctl.base.tfds_rules import POSITIONS
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES
from shardctl.verbs.hosts.sharing import Load, Sharing, Strategy, sharing_of

# A tenth more than is needed: even splits stay below it from about five files a host on.
MAX_AMPLIFICATION = 1.1

MAX_NUM_HOSTS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The strategies for one number of hosts.

    `num_file_instructions` is how many files, or parts of files, there are to share, of
    `num_readers` that are shared one by one. Of a loader there is one strategy, its own.
    """

    num_hosts: int
    num_examples: int
    num_file_instructions: int
    strategies: tuple[Strategy, ...]
    num_readers: int = 1

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
        """The recommended strategy, None where TFDS refuses all.

        First, one that leaves no host idle; then one whose hosts run the same number of batches (or
        have the least imbalance); then the one that reads least; then the first of `HOST_MODES`.
        """
        # `min` returns the first of several that are equal, and they are in the order of
        # `HOST_MODES`.
        able = [strategy for strategy in self.strategies if strategy.refusal is None]
        return min(able, key=_drawbacks) if able else None

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
        # Rounded, so that differences of less than 1% do not decide.
        round(strategy.imbalance or 1.0, 2) if uneven else 0.0,
        strategy.read_amplification or 0.0,
    )


@dataclass(frozen=True, kw_only=True)
class HostsPlan(Tabular):
    """A comparison for each number of hosts, in the order asked.

    judged: the strategy that the settings choose: that of `host_by`, or the one of a loader.
    """

    dataset: Dataset
    spec: str
    settings: ReadSettings
    judged: str
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = [f"{counted(c.num_hosts, 'host')} ({_best(c)})" for c in self.comparisons]
        return in_short(self, f"{self.dataset.title} {self.spec}", choices(shown, 4))


@checked
def hosts(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    hosts: int | Sequence[int] = 1,
    **keywords: Unpack[OrderSettings],
) -> HostsPlan:
    """Return what every host reads of a spec in one epoch, and which way to share is recommended.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: of these the file order, the file shuffle, the epochs and the batches
            count; batches are formed across epochs, as `ds.repeat(epochs).batch(batch)` does.
            Stages count after the share that each host has of every reader. Another loader shares
            by its own rule.
        hosts: how many; several numbers are a sweep, which leaves out the figures of single hosts.

    Returns:
        A HostsPlan; `comparisons[0]` is that of the first number of hosts.

    Raises:
        UsageError: a bad spec, a number of hosts outside 1 to 1,000,000, a bad file order.
        UnpredictableOrderError: the order of the splits, which decides by files, is
            nondeterministic.

    >>> import shardctl
    >>> found = shardctl.hosts("imagenet2012", "train", hosts=64).comparisons[0]
    >>> [(one.name, one.idle_hosts) for one in found.strategies], found.recommended.name
    ([('even', 0), ('files', 0), ('examples', 0)], 'files')
    """
    sharing = sharing_of(as_dataset(dataset), spec, as_settings(settings))
    whole = sharing.resolved.dataset
    if whole.file_format == POSITIONS and sharing.settings.loader == "tfds":
        raise UsageError(
            f"{printable(whole.title)} has no files for TFDS to share: each host takes its part by "
            "a stage of the pipeline, --stages 'range(N) | shard(HOSTS, INDEX)'"
        )
    counts = (hosts,) if isinstance(hosts, int) else tuple(hosts)
    for count in counts:
        check_numbers(MAX_NUM_HOSTS, hosts=count)
    keep = isinstance(hosts, int)  # as which every whole number is kept
    # A host, or a row that is cut for one, takes about a microsecond.
    num_rows = len(sharing.reads)
    progress = Progress(
        "hosts and files",
        sum(count + num_rows for count in counts),
        per_second=1_000_000,
        instead="give fewer --hosts",
    )
    return HostsPlan(
        dataset=sharing.resolved.dataset,
        spec=sharing.resolved.spec,
        settings=sharing.settings,
        judged=sharing.judged,
        comparisons=tuple(
            _comparison(sharing, count, keep_columns=keep)
            for count in progress.over(counts, lambda count: count + num_rows)
        ),
        warnings=sharing.resolved.warnings,
    )


def _comparison(sharing: Sharing, num_hosts: int, *, keep_columns: bool) -> Comparison:
    strategies = [sharing.strategy(way, num_hosts) for way in sharing.ways]
    # A sweep has many numbers of hosts, whose arrays together would fill memory.
    if not keep_columns:
        strategies = [replace(one, columns=None, batches=None) for one in strategies]
    return Comparison(
        num_hosts=num_hosts,
        num_examples=sharing.reads.num_examples,
        num_file_instructions=len(sharing.reads),
        num_readers=sharing.num_readers,
        strategies=tuple(strategies),
    )


# What to make of a comparison of hosts: why a strategy is recommended, what to change, what fails.


def reason(comparison: Comparison) -> str:
    """Return in a sentence why the recommended strategy is."""
    best = comparison.recommended
    if best is None:
        if comparison.strategies[0].name not in HOST_MODES:
            return "there are no examples"
        return "TFDS reads none of them: there are fewer examples than hosts"
    if comparison.num_hosts == 1 and len(comparison.strategies) > 1:
        return "one host reads the same in each way"
    if best.idle_hosts:
        return f"{counted(best.idle_hosts, 'idle host')}, and TFDS refuses the other ways"
    why = f"{spread(best.num_examples)} examples a host"
    if best.num_batches is not None and not best.is_uneven:
        why = f"{counted(best.num_batches.min, 'batch', 'batches')} on every host"
    why += f", read amplification {best.read_amplification or 1:,.3g}x"
    others = (s for s in comparison.strategies if s is not best and s.refusal is None)
    costly = (s for s in others if (s.read_amplification or 0) > MAX_AMPLIFICATION)
    return "; ".join([why, *(f"{call_of(s)} reads {s.read_amplification:,.4g}x" for s in costly)])


def call_of(strategy: Strategy) -> str:
    """Return the call that shares in this way."""
    mode = HOST_MODES.get(strategy.name)
    return strategy.name if mode is None else mode.call


def advice(comparison: Comparison, settings: ReadSettings) -> Iterator[str]:
    """Yield what to change or to know, most pressing first, each a sentence."""
    num_hosts, count = comparison.num_hosts, comparison.num_file_instructions
    if num_hosts == 1 or not count:
        return
    best = comparison.recommended
    if not settings.reader.on_tf_data:
        yield from _of_loader(comparison)
        return
    if comparison.num_readers > 1:
        yield f"{comparison.num_readers:,} readers: the hosts share the files of each separately"
    elif count % num_hosts:
        yield (
            f"{counted(count, 'file')} cannot be shared evenly by {num_hosts:,} hosts; use a "
            f"multiple of {num_hosts:,}"
        )
    else:
        yield f"{count:,} files: {counted(count // num_hosts, 'whole file')} a host"
    if best is not None:
        yield from _hang(best, f"{best.name}: ")
    if settings.shuffles_files and settings.shuffle_seed is None:
        yield (
            "ds.shard needs --shuffle-seed: without it each host shuffles the files differently, "
            "so some examples are read twice and others never"
        )


def _of_loader(comparison: Comparison) -> Iterator[str]:
    """Yield what to know of the way in which another loader shares the examples."""
    (own,) = comparison.strategies
    if own.num_repeated and own.name == "--stages":
        yield (
            f"with these stages the hosts yield {counted(own.num_repeated, 'example')} more than "
            "once in all: they share no more than the stages say, and repeats count"
        )
    elif own.num_repeated:
        yield (
            f"{own.name} yields {counted(own.num_repeated, 'example')} again in each epoch "
            "(padding), so that every host has as many"
        )
    if own.num_left_out:
        yield f"no host yields {counted(own.num_left_out, 'example')} of each epoch"
    yield from _hang(own, "")


def _hang(strategy: Strategy, name: str) -> Iterator[str]:
    load = strategy.num_batches
    # A host with more batches waits in its collective for hosts that have ended.
    if load is not None and strategy.is_uneven:
        yield (
            f"{name}hosts make {spread(load)} batches, so a collective hangs at step "
            f"{load.min:,}; take({load.min}) gives every host {load.min:,}"
        )


def problems(
    comparison: Comparison,
    strategy: str = DEFAULT_HOST_MODE,
    max_amplification: float = MAX_AMPLIFICATION,
) -> tuple[str, ...]:
    """Return what a check finds wrong with a strategy, each in a line.

    Idle hosts, hosts with different numbers of batches (where a batch size is given), a read
    amplification over the bound, and that TFDS refuses.
    """
    judged = comparison.strategy(strategy)
    found = [] if judged.refusal is None else [judged.refusal]
    if judged.idle_hosts:
        found.append(f"{judged.idle_hosts:,} idle")
    if judged.num_batches is not None and judged.is_uneven:
        found.append(f"{spread(judged.num_batches)} batches")
    amplification = judged.read_amplification or 0
    if amplification > max_amplification:
        found.append(f"read amplification {amplification:.4g} is over {max_amplification:.4g}")
    return tuple(f"{comparison.num_hosts:,} hosts, {strategy}: {problem}" for problem in found)


def spread(load: Load) -> str:
    """Return the least and the most of a quantity, or the one value all hosts have."""
    return f"{load.min:,}" if load.min == load.max else f"{load.min:,} to {load.max:,}"
