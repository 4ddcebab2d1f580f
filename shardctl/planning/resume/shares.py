"""Runs of examples dealt evenly to hosts."""

from __future__ import annotations

import numpy as np

from shardctl.core.hosts.even_splits import even_range
from shardctl.core.instructions.instruction_columns import InstructionColumns
from shardctl.core.instructions.reads import ReadTable
from shardctl.core.resume.resume_plan import HostShare
from shardctl.errors import UsageError

MAX_HOSTS = 100_000


def dealt(table: ReadTable, num_hosts: int) -> tuple[HostShare, ...]:
    """Return each host's share of the examples: one after the other, as many each, or one more.

    The first hosts take what does not divide, as in `tfds.even_splits`.

    Raises:
        UsageError: less than one host.
    """
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise UsageError(f"--to-hosts {num_hosts}: a number from 1 to {MAX_HOSTS} is needed")
    ends = np.cumsum(table.take)
    total = table.num_examples
    shares = []
    for index in range(num_hosts):
        part = even_range(0, total, index, num_hosts, drop_remainder=False)
        share = table_between(table, ends, part.start, part.stop)
        shares.append(
            HostShare(index=index, count=num_hosts, instructions=InstructionColumns.of_table(share))
        )
    return tuple(shares)


def table_between(table: ReadTable, ends: np.ndarray, start: int, stop: int) -> ReadTable:
    """Return the rows that read examples [start, stop) of a table; `ends` sums its takes up."""
    if start >= stop:
        return table.select(slice(0, 0))
    low = int(np.searchsorted(ends, start, side="right"))
    high = int(np.searchsorted(ends, stop, side="left")) + 1
    rows = table.select(slice(low, high))
    skip = np.zeros_like(rows.take)
    take = rows.take.copy()
    skip[0] = start - (int(ends[low]) - int(take[0]))
    take[0] -= skip[0]
    take[-1] -= int(ends[high - 1]) - stop
    return rows.trimmed(skip, take)
