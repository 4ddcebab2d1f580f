"""Which file instructions does a subsplit resolve to, for one reader or for each host?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shardctl.base.arguments import checked
from shardctl.base.columns import OnDemand, Tabular
from shardctl.base.phrase import refused
from shardctl.base.text import choices, counted, in_short, quoted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.spec import subsplit
from shardctl.spec.host import Host, HostLike, as_host, even_split

_MAX_HOSTS = 1_000_000  # a plan for each takes about a kilobyte


@dataclass(frozen=True, kw_only=True)
class Plan(Tabular):
    """What one reader of one spec reads: `host` is None for a single reader."""

    spec: str
    host: Host | None
    ranges: tuple[subsplit.SplitRange, ...]

    @property
    def num_examples(self) -> int:
        """Number of examples read."""
        return sum(piece.num_examples for piece in self.ranges)

    @property
    def num_files(self) -> int:
        """Number of different files read; a sum can read one file twice."""
        count, splits = 0, {piece.split.name: piece.split for piece in self.ranges}
        # Ranges of one split may overlap. In ascending order, each counts only the shards beyond
        # those reached.
        for name, split in splits.items():
            reached = 0
            touched = (piece.shards() for piece in self.ranges if piece.split.name == name)
            for shards in sorted(touched, key=lambda shards: shards.start):
                count += subsplit.num_read(
                    split, range(max(shards.start, reached), max(shards.stop, reached))
                )
                reached = max(reached, shards.stop)
        return count

    @cached_property
    def file_instructions(self) -> OnDemand[subsplit.FileInstruction]:
        """The file instructions in TFDS's order, each made when it is asked for."""
        return subsplit.file_instructions(self.ranges)

    def __repr__(self) -> str:
        host = "" if self.host is None else f" host {self.host}"
        return in_short(
            self,
            f"{self.spec}{host}",
            counted(self.num_examples, "example"),
            counted(len(self.file_instructions), "file instruction"),
        )


@dataclass(frozen=True, kw_only=True)
class Plans(Tabular):
    """One plan for each spec and host, specs first, and warnings about them.

    A plan is made when it is asked for, since a million hosts have a million of them.
    """

    dataset: Dataset
    plans: Sequence[Plan]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        specs = dict.fromkeys(plan.spec for plan in self.plans[:: max(1, len(self.plans) // 8)])
        title = f"{self.dataset.title} {choices(specs)}".rstrip()
        return in_short(self, title, counted(len(self.plans), "plan"))


@checked
def plan(
    dataset: DatasetLike,
    *specs: str,
    hosts: int | None = None,
    host: HostLike | None = None,
    drop_remainder: bool = False,
) -> Plans:
    """Return the file instructions of each spec, split among hosts as `tfds.even_splits` does.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        specs: splits or slices, as TFDS writes them; `train`, else the only split, for none.
        hosts: how many hosts share it; each of them gets a plan.
        host: one of several hosts, as "1/3" or Host(index=1, count=3); only it gets a plan.
        drop_remainder: leave out the remainder, so that all hosts read the same number.

    Returns:
        Plans; `plans[0].file_instructions` are those of the first. Each part of a sum is split
        among hosts by itself.

    Raises:
        UsageError: an unreadable spec, an unknown split, a bound outside it, a backwards slice; no
            hosts, or more than a million of them.

    >>> import shardctl
    >>> shardctl.plan("mnist", "train", hosts=3)
    <Plans mnist:3.0.1 train: 3 plans>
    >>> found = shardctl.plan("imagenet2012", "train[44%:45%]")
    >>> [(read.skip, read.take) for read in found.plans[0].file_instructions][:2]
    [(700, 551), (0, 1251)]
    """
    if host is not None and hosts is not None:
        raise refused("{host} and {hosts} together: {host=I/N} already says how many there are")
    if drop_remainder and host is None and hosts is None:
        raise refused("{drop_remainder} needs {hosts=N} or {host=I/N}")
    dataset = as_dataset(dataset)
    specs = specs or (subsplit.default_spec(dataset),)
    readers = _readers(hosts, None if host is None else as_host(host))
    resolved = [subsplit.resolve_subsplit(spec, dataset) for spec in specs]
    warnings: list[str] = []

    # Plans are numbered spec by spec, and within a spec host by host.
    def plan_of(index: int) -> Plan:
        part, reader = divmod(index, len(readers))
        ranges, host = resolved[part].ranges, readers[reader]
        if host is not None:
            ranges = even_split(ranges, host.index, host.count, drop_remainder=drop_remainder)
        return Plan(spec=specs[part], host=host, ranges=ranges)

    plans = OnDemand(len(specs) * len(readers), plan_of)
    for part, found in enumerate(resolved):
        warnings += found.warnings
        here = range(part * len(readers), (part + 1) * len(readers))
        warnings += _idle(specs[part], plans, here, found.num_examples)
    return Plans(dataset=dataset, plans=plans, warnings=tuple(warnings))


def _readers(hosts: int | None, host: Host | None) -> Sequence[Host | None]:
    if host is not None:
        return [host]
    if hosts is None:
        return [None]
    if hosts > _MAX_HOSTS:
        Host(index=0, count=hosts)  # refuses what no host can be chosen of
        raise UsageError(
            f"{hosts} hosts: at most {_MAX_HOSTS} at once; choose one, as --host 0/{hosts}"
        )
    return OnDemand(max(hosts, 1), lambda index: Host(index=index, count=hosts))


def _idle(spec: str, plans: Sequence[Plan], here: range, num_examples: int) -> list[str]:
    """Return a warning where hosts of a spec, whose plans are `here`, read nothing."""
    if plans[here[0]].host is None or not num_examples:
        return []
    # Even splits give the first hosts what remains: idle hosts are the last ones.
    # Busy hosts come first, so the first idle one is found by bisection, without making all plans.
    num_busy = bisect_left(here, True, key=lambda index: not plans[index].num_examples)
    num_idle = len(here) - num_busy
    if not num_idle:
        return []
    first = plans[here[num_busy]].host
    which = f"host {first} reads" if num_idle == 1 else f"{num_idle} hosts read"
    return [f"{quoted(spec)}: {which} no examples"]
