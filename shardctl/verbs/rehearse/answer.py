"""Is anything lost or repeated where a run stops and resumes? Readings are counted by example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.columns import Tabular
from shardctl.dataset.dataset import Dataset
from shardctl.settings.read_settings import SettingsDocument

ResumedBy = Literal["shardctl", "function"]


@dataclass(frozen=True, slots=True)
class HostRun:
    """What host `index` read before the stop and after it, in examples; None where it did not run.

    again: of `before`, read behind the last checkpoint, so that it is to be read again.
    lost: of what it would have read, what no host reads; repeated: of `after`, what is read once
        too often.
    """

    index: int
    before: int | None
    again: int | None
    after: int | None
    lost: int | None
    repeated: int | None


@dataclass(frozen=True, kw_only=True, repr=False)
class Rehearsal(Tabular):
    """A run that was stopped and resumed over numbered records, beside the uninterrupted one.

    num_hosts, to_hosts: how many hosts stopped, how many resumed.
    kill_at: the step at which all stopped; saved_at: that of the checkpoint they resumed from.
        Steps are elements of the pipeline, counted from the start.
    num_examples: what the uninterrupted run yields on all hosts.
    runs: a row a host.
    lost, repeated: examples, counted as often as they are; differing_ids: the first of them.
    moved: positions at which the order differs from the uninterrupted one, None on other hosts.
    unread, read_twice: of what the function reads as the only host, what its hosts together do not
        read, and what they read once too often, without any stop.
    resumed_by: shardctl's plan, or the user's function, which was given the step.
    refused: why the run cannot be resumed exactly; nothing was read then.
    """

    dataset: Dataset
    spec: str | None
    pipeline: SettingsDocument
    num_hosts: int
    to_hosts: int
    kill_at: int | None = None
    saved_at: int | None = None
    function: str | None = None
    num_examples: int = 0
    runs: tuple[HostRun, ...] = ()
    lost: int = 0
    repeated: int = 0
    differing_ids: tuple[str, ...] = ()
    moved: int | None = None
    unread: int = 0
    read_twice: int = 0
    resumed_by: ResumedBy = "shardctl"
    refused: str | None = None
    versions: dict[str, str | None]
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every example is read as often as uninterrupted, and in the same order.

        Fewer unread examples than hosts are what equal shares drop.
        """
        wrong = self.lost or self.repeated or self.moved or self.read_twice
        return self.refused is None and not wrong and self.unread < self.num_hosts


def count_runs(
    whole: Sequence[Int64s], before: Sequence[Int64s], after: Sequence[Int64s]
) -> tuple[list[int], list[int], Int64s]:
    """Return how much of `whole` is lost, of `after` repeated, by host; and which examples.

    Each is what one host reads, as numbers of examples from 0 (int64[n]); before: what it keeps of
    its reading before the stop.

    >>> stopped = [np.array([0, 1, 2]), np.array([3, 4])]
    >>> count_runs(stopped, [np.array([0]), np.array([3])], [np.array([1, 1, 4])])
    ([1, 0], [1], array([1, 2]))
    """
    size = 1 + max((int(ids.max()) for ids in (*whole, *before, *after) if len(ids)), default=0)

    def by_host(counts: Int64s, readings: Sequence[Int64s]) -> Iterator[int]:
        # An example that several hosts have is laid to the first of them.
        for ids in readings:
            here = np.minimum(counts, np.bincount(ids, minlength=size))
            counts = counts - here
            yield int(here.sum())

    excess = np.zeros(size, np.int64)
    for sign, readings in ((1, (*before, *after)), (-1, whole)):
        for ids in readings:
            excess += sign * np.bincount(ids, minlength=size)
    missing, extra = np.maximum(-excess, 0), np.maximum(excess, 0)
    return list(by_host(missing, whole)), list(by_host(extra, after)), np.flatnonzero(excess)
