"""One way of splitting a spec among hosts, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import EqualByItems, Int64s
from shardctl.core.hosts.host_reads import HostReads, SharedReads
from shardctl.core.hosts.modes import HostMode
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.text import counted, in_short
from shardctl.planning.hosts.loaders import Shares
from shardctl.planning.hosts.stages import steps_of

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
    """

    name: str
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

    def __repr__(self) -> str:
        return in_short(
            self,
            self.name,
            f"{self.num_examples.min:,} to {self.num_examples.max:,} examples a host",
            f"{counted(self.idle_hosts, 'host')} idle" if self.idle_hosts else "",
            "refused by TFDS" if self.refusal else "",
        )


def strategy_of(
    mode: HostMode, columns: HostReads, shared: SharedReads, settings: ReadSettings
) -> Strategy:
    """Return what the hosts' shares come to, batches formed as the settings say."""
    num_batches = None
    if settings.batch is not None:
        whole, rest = np.divmod(columns.num_examples * settings.epochs, settings.batch)
        num_batches = whole if settings.drop_remainder else whole + (rest > 0)
    if settings.stages is not None:
        num_batches = steps_of(settings.stages, columns.num_examples)
    num_read, total = _sum(columns.num_read), shared.num_examples
    return Strategy(
        name=mode.word,
        num_examples=_load(columns.num_examples),
        num_bytes=None if columns.num_bytes is None else _load(columns.num_bytes),
        num_files=_load(columns.num_files),
        num_batches=None if num_batches is None else _load(num_batches),
        read_amplification=num_read / total if total else None,
        shared_files=columns.num_shared_files,
        idle_hosts=int((columns.num_examples == 0).sum()),
        same_permutation=_same_permutation(columns, settings),
        refusal=refusal(mode, columns.num_examples, len(shared.reads)),
        columns=columns,
        batches=num_batches,
    )


def strategy_of_loader(shares: Shares, name: str) -> Strategy:
    """Return what the shares of a loader's hosts come to."""
    columns, total = shares.columns, shares.reads.num_examples
    return Strategy(
        name=name,
        num_examples=_load(columns.num_examples),
        num_bytes=None if columns.num_bytes is None else _load(columns.num_bytes),
        num_files=_load(columns.num_files),
        num_batches=None if shares.batches is None else _load(shares.batches),
        read_amplification=_sum(columns.num_read) / total if total else None,
        shared_files=columns.num_shared_files,
        idle_hosts=int((columns.num_examples == 0).sum()),
        same_permutation=None,
        refusal=None if total else "there are no examples",
        columns=columns,
        batches=shares.batches,
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

    >>> _sum(np.array([2**62, 2**62, 2**62, -1])) == 3 * 2**62 - 1
    True
    """
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def refusal(mode: HostMode, num_examples: Int64s, num_file_instructions: int) -> str | None:
    """Return why TFDS does not read this way on every host, None where it does.

    Source: TFDS core/splits.py and core/dataset_builder.py ("corresponds to no data!").
    """
    if not num_examples.any():
        return "TFDS refuses to read a spec without examples"
    num_idle = int((num_examples == 0).sum())
    return mode.refusal(len(num_examples), num_idle=num_idle, num_files=num_file_instructions)


def _same_permutation(columns: HostReads, settings: ReadSettings) -> bool | None:
    """Whether hosts that read shuffle their instructions by the same permutation.

    TFDS shuffles a host's list with a buffer at least as large, so that the seed and the number of
    instructions fix the permutation (TFDS core/reader.py, _read_files).
    """
    if not settings.shuffles_files or settings.shuffle_seed is None:
        return None
    counts = columns.num_instructions[columns.num_instructions > 0]
    return len(counts) == 0 or int(counts.min()) == int(counts.max())
