"""Which file instructions does a subsplit resolve to, for one reader or for each host?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.even_splits import even_split
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.file_instruction import (
    FileInstruction,
    file_instructions,
)
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.text import quoted
from shardctl.errors import UsageError

_MAX_HOSTS = 1_000_000  # a plan for each takes about a kilobyte


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one reader of one spec reads: `host` is None for a reader on its own."""

    spec: str
    host: Host | None
    ranges: tuple[SplitRange, ...]

    @property
    def num_examples(self) -> int:
        """Number of examples read."""
        return sum(piece.num_examples for piece in self.ranges)

    @cached_property
    def file_instructions(self) -> tuple[FileInstruction, ...]:
        """The file instructions in TFDS's order."""
        return file_instructions(self.ranges)


@dataclass(frozen=True, kw_only=True)
class Plans:
    """One plan for each spec and host, specs first, and what surprises about them."""

    dataset: Dataset
    plans: tuple[Plan, ...]
    warnings: tuple[str, ...] = ()


@checked
def plan(
    dataset: Dataset,
    *specs: str,
    hosts: int | None = None,
    host: Host | None = None,
    drop_remainder: bool = False,
) -> Plans:
    """Return the file instructions of each spec, split among hosts as `tfds.even_splits` does.

    With `hosts` every host gets a plan, with `host` that one only; each part of a sum is split by
    itself, and `drop_remainder` leaves out what does not divide.

    Raises:
        UsageError: an unreadable spec, an unknown split, a bound outside it, a backwards slice;
            no hosts, or more than a million of them.

    >>> from shardctl.core.dataset.dataset import Split
    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-train-\\0", num_shards=3)
    >>> train = Split.even(name="train", num_examples=10, num_shards=3, files=(files,))
    >>> plans = plan(Dataset(name="d", splits=(train,)), "train[2:8]")
    >>> [(i.filename, i.skip, i.take) for i in plans.plans[0].file_instructions]
    [('d-train-00000', 2, 1), ('d-train-00001', 0, 4), ('d-train-00002', 0, 1)]
    """
    readers = _readers(hosts, host)
    plans: list[Plan] = []
    warnings: list[str] = []
    for spec in specs:
        resolved = resolve_subsplit(spec, dataset)
        warnings += resolved.warnings
        for reader in readers:
            ranges = resolved.ranges
            if reader is not None:
                ranges = even_split(
                    ranges, reader.index, reader.count, drop_remainder=drop_remainder
                )
            plans.append(Plan(spec=spec, host=reader, ranges=ranges))
        warnings += _idle(spec, plans[-len(readers) :], resolved.num_examples)
    return Plans(dataset=dataset, plans=tuple(plans), warnings=tuple(warnings))


def _readers(hosts: int | None, host: Host | None) -> Sequence[Host | None]:
    if host is not None:
        return [host]
    if hosts is None:
        return [None]
    if hosts > _MAX_HOSTS:
        raise UsageError(
            f"{hosts} hosts: at most {_MAX_HOSTS} are planned at once; choose one, as in 0/{hosts}"
        )
    return [Host(index=index, count=hosts) for index in range(max(hosts, 1))]


def _idle(spec: str, plans: Sequence[Plan], num_examples: int) -> list[str]:
    idle = [plan.host for plan in plans if plan.host is not None and not plan.num_examples]
    if not idle or not num_examples:
        return []
    which = f"host {idle[0]} reads" if len(idle) == 1 else f"{len(idle)} hosts read"
    return [f"{quoted(spec)}: {which} no examples"]
