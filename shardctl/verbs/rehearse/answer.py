"""Is anything lost or repeated where a run stops and resumes? Readings are counted by example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.columns import Tabular
from shardctl.dataset.dataset import Dataset
from shardctl.settings.read_settings import SettingsDocument

ResumedBy = Literal["shardctl", "function"]
_NAMED = 5  # lost and repeated examples that are named


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRun:
    """What host `index` read before the stop and after it, in examples; None where it did not run.

    again: of `before`, read behind the last checkpoint, so that it is to be read again.
    lost: of what it would have read, what nobody reads; repeated: of `after`, what is read once
        too often.
    """

    index: int
    before: int | None
    again: int
    after: int | None
    lost: int
    repeated: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Rehearsal(Tabular):
    """A run that was stopped and resumed over stand-ins, beside the uninterrupted one.

    num_hosts, to_hosts: how many hosts stopped, how many resumed.
    kill_at: the step at which all stopped; saved_at: that of the checkpoint they resumed from.
        Steps are elements of the pipeline, counted from the start.
    seed: of the random step, None where the step was given.
    num_examples: what the uninterrupted run yields on all hosts.
    runs: a row a host.
    lost, repeated: examples, counted as often as they are; lost_ids, repeated_ids: the first ones.
    moved: positions at which the order differs from the uninterrupted one, None on other hosts.
    resumed_by: shardctl's plan, or the user's function, which was given the step.
    refused: why the run cannot be resumed exactly; nothing was read then.
    """

    dataset: Dataset | None
    spec: str | None
    pipeline: SettingsDocument
    function: str | None
    num_hosts: int
    to_hosts: int
    kill_at: int | None = None
    saved_at: int | None = None
    seed: int | None = None
    num_examples: int = 0
    runs: tuple[HostRun, ...] = ()
    lost: int = 0
    repeated: int = 0
    lost_ids: tuple[str, ...] = ()
    repeated_ids: tuple[str, ...] = ()
    moved: int | None = None
    resumed_by: ResumedBy = "shardctl"
    refused: str | None = None
    versions: dict[str, str | None]
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every example is read as often as uninterrupted, and in the same order."""
        return self.refused is None and not (self.lost or self.repeated or self.moved)


@dataclass(frozen=True, kw_only=True)
class Count:
    """What `counted` finds: examples by host, and which are lost and repeated."""

    lost: Int64s
    repeated: Int64s
    lost_first: Int64s
    repeated_first: Int64s


def count_runs(whole: Sequence[Int64s], before: Sequence[Int64s], after: Sequence[Int64s]) -> Count:
    """Return what is lost of `whole` and repeated in `after`, a number of examples a host.

    Each is what one host reads, as numbers of examples from 0 (int64[n]); before: what it keeps of
    its reading before the stop.

    >>> stopped = [np.array([0, 1, 2]), np.array([3, 4])]
    >>> found = count_runs(stopped, [np.array([0]), np.array([3])], [np.array([1, 1, 4])])
    >>> found.lost.tolist(), found.repeated.tolist(), found.lost_first, found.repeated_first
    ([1, 0], [1], array([2]), array([1]))
    """
    size = 1 + max((int(ids.max()) for ids in (*whole, *before, *after) if len(ids)), default=0)

    def counts(readings: Sequence[Int64s]) -> Int64s:
        found = np.zeros(size, np.int64)
        for ids in readings:
            found += np.bincount(ids, minlength=size)
        return found

    excess = counts((*before, *after)) - counts(whole)
    missing, extra = np.maximum(-excess, 0), np.maximum(excess, 0)
    return Count(
        lost=_by_host(missing, whole, size),
        repeated=_by_host(extra, after, size),
        lost_first=np.flatnonzero(missing)[:_NAMED],
        repeated_first=np.flatnonzero(extra)[:_NAMED],
    )


def _by_host(counts: Int64s, readings: Sequence[Int64s], size: int) -> Int64s:
    """Return how much of the counts each reading has, each example laid to the first that has it."""
    left, found = counts.copy(), []
    for ids in readings:
        here = np.minimum(left, np.bincount(ids, minlength=size))
        left -= here
        found.append(int(here.sum()))
    return np.array(found, np.int64)
