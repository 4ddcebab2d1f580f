"""One way of splitting a spec among hosts, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardctl.core.arrays import EqualByItems, Int64s
from shardctl.core.hosts.host_reads import HostReads
from shardctl.core.text import counted, in_short

_EVEN = 1.01  # without a batch size hosts count as even when the busiest has 1% over the mean

OUTSTANDING = 1.0005  # times the mean: from what rounds to 0.1% over it a straggler is named


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Strategy(EqualByItems):
    """One way of splitting a spec among hosts, and what it comes to.

    read_amplification: examples that all hosts take from disk over examples in the spec; None for
        a spec without examples.
    idle_hosts: number of hosts that get no examples.
    shared_files: number of files that more than one host opens.
    num_batches: of the whole pass, None without a batch size.
    same_permutation: whether all hosts open their files in the same permutation of places, None
        where files are not shuffled or no seed fixes how.
    refusal: why TFDS does not read this way, None where it does.
    columns, batches: the figures of each host, None in a sweep.
    num_repeated: examples that a loader hands out again as padding; num_left_out: to no host.
    """

    name: str
    num_examples: Load
    num_bytes: Load | None
    num_files: Load
    num_batches: Load | None
    read_amplification: float | None
    shared_files: int
    idle_hosts: int
    columns: HostReads | None
    batches: Int64s | None
    refusal: str | None = None
    same_permutation: bool | None = None
    num_repeated: int = 0
    num_left_out: int = 0

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

    def __repr__(self) -> str:
        return in_short(
            self,
            self.name,
            f"{self.num_examples.min:,} to {self.num_examples.max:,} examples a host",
            f"{counted(self.idle_hosts, 'host')} idle" if self.idle_hosts else "",
            "refused by TFDS" if self.refusal else "",
        )


def strategy_of(
    name: str, columns: HostReads, batches: Int64s | None, num_examples: int, **figures: Any
) -> Strategy:
    """Return what the hosts' shares of so many examples come to; `figures` are fields besides."""
    return Strategy(
        name=name,
        num_examples=_load(columns.num_examples),
        num_bytes=None if columns.num_bytes is None else _load(columns.num_bytes),
        num_files=_load(columns.num_files),
        num_batches=None if batches is None else _load(batches),
        read_amplification=_sum(columns.num_read) / num_examples if num_examples else None,
        shared_files=columns.num_shared_files,
        idle_hosts=int((columns.num_examples == 0).sum()),
        columns=columns,
        batches=batches,
        **figures,
    )


def _load(values: Int64s) -> Load:
    total = _sum(values)
    most = int(values.max())
    return Load(
        min=int(values.min()),
        max=most,
        total=total,
        straggler=int(values.argmax()),
        imbalance=most * len(values) / total if total else None,
    )


def _sum(values: Int64s) -> int:
    """Return a sum as Python's int: N hosts that read all are past an int64 soon.

    >>> import numpy as np
    >>> _sum(np.array([2**62, 2**62, 2**62, -1])) == 3 * 2**62 - 1
    True
    """
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
