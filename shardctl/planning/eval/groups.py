"""Hosts of an evaluation that do the same, together: few enough for a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.planning.eval.evaluation import REMAINDERS, Evaluation, Remainder

Span = tuple[int, int]  # the least and the most


@dataclass(frozen=True, kw_only=True)
class HostGroup:
    """Hosts that are alike, and the least and the most of what each of them has.

    first, last: the first and the last of them; `count` is smaller than the stretch between where
        other hosts are among them.
    full, partial: batches without a place left, and those that hold fewer examples.
    steps: by what is done with the remainder.
    """

    first: int
    last: int
    count: int
    num_examples: Span
    full: Span
    partial: Span
    remainder: Span
    padding: Span
    padding_batches: Span
    steps: Mapping[Remainder, Span]

    @property
    def are_neighbours(self) -> bool:
        """Whether no other host is among them."""
        return self.last - self.first + 1 == self.count


def host_groups(evaluation: Evaluation, most: int) -> tuple[HostGroup, ...]:
    """Return the hosts in at most so many groups, by the first of each; few hosts are alone.

    Many hosts are together that have as many examples in as many batches; if these groups are too
    many, those that make as many steps; if they still are, those that make about as many, where the
    hosts with the fewest, for which others wait, are a group of their own.

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.planning.eval.eval import evaluate
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> groups = host_groups(evaluate(odd, batch=64, devices=8, hosts=8), 4)
    >>> [(group.first, group.last, group.num_examples) for group in groups]
    [(0, 0, (513, 513)), (1, 7, (512, 512))]
    """
    columns: dict[str, Int64s] = {
        "num_examples": evaluation.num_examples,
        "full": evaluation.num_steps("drop"),
        "partial": evaluation.num_batches - evaluation.num_steps("drop"),
        "remainder": evaluation.remainders,
        "padding": evaluation.padding,
        "padding_batches": evaluation.padding_batches,
    }
    for way in REMAINDERS:
        columns[way] = evaluation.num_steps(way)
    labels = _labels(evaluation, columns, most)
    by_label = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[by_label], prepend=-1))
    first = by_label[starts]
    ends = np.append(starts[1:], len(labels))
    last, counts = by_label[ends - 1], ends - starts
    spans = {name: _spans(column[by_label], starts) for name, column in columns.items()}
    return tuple(
        HostGroup(
            first=int(first[row]),
            last=int(last[row]),
            count=int(counts[row]),
            steps={way: spans[way][row] for way in REMAINDERS},
            **{name: spans[name][row] for name in columns if name not in REMAINDERS},
        )
        for row in np.argsort(first).tolist()
    )


def _labels(evaluation: Evaluation, columns: Mapping[str, Int64s], most: int) -> Int64s:
    """Return the group of each host, int64[num_hosts], counted from 0."""
    if evaluation.num_hosts <= most:
        return np.arange(evaluation.num_hosts)
    # Padding makes all alike: how many batches they have is what tells them apart.
    steps = columns["drop" if evaluation.remainder == "drop" else "ragged"]
    for alike in (
        [columns["num_examples"], columns["full"], columns["partial"]],
        [columns["full"], columns["partial"]],
        [steps],
    ):
        labels = _alike(alike)
        if int(labels.max()) < most:
            return labels
    # These are the ranks of steps.
    others = int(labels.max())
    ranges: Int64s = np.where(labels == 0, 0, 1 + (labels - 1) * (most - 1) // others)
    return ranges


def _alike(columns: list[Int64s]) -> Int64s:
    """Return equal numbers for hosts that are equal in all columns, in ascending order of these."""
    labels = np.zeros_like(columns[0])
    for column in columns:
        values, which = np.unique(column, return_inverse=True)
        _, labels = np.unique(labels * len(values) + which, return_inverse=True)
    return labels.astype(np.int64)


def _spans(column: Int64s, starts: Int64s) -> list[Span]:
    least, most = np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)
    return list(zip(least.tolist(), most.tolist(), strict=True))
