"""Runs of examples split evenly among hosts."""

from __future__ import annotations

from shardctl.core.hosts.even_splits import even_range
from shardctl.core.instructions.reads import Reads
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import HostShare
from shardctl.errors import UsageError

MAX_HOSTS = 100_000


def even_shares(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return each host's share of the examples: one after the other, as many each, or one more.

    The first hosts take what does not divide, as in `tfds.even_splits`.

    Raises:
        UsageError: less than one host.
    """
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise UsageError(
            phrase("{to_hosts=}: a number from 1 to {} is needed", MAX_HOSTS, to_hosts=num_hosts)
        )
    total = reads.num_examples
    shares = []
    for index in range(num_hosts):
        part = even_range(0, total, index, num_hosts, drop_remainder=False)
        share = reads.between(part.start, part.stop)
        shares.append(HostShare(index=index, count=num_hosts, instructions=share))
    return tuple(shares)
