"""What a run handed out before it went on with another number of hosts."""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.hosts.modes import DEFAULT_HOST_MODE, HostBy

MAX_HOSTS = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """A part of a run with one number of hosts, which stopped and was shared anew.

    consumed: how many examples each host had handed out since the stretch began.
    batch: the size of a host's batches in it, None without.
    host_by: how the hosts shared the examples.
    alone: one process read it that was no host of several.
    """

    consumed: tuple[int, ...]
    batch: int | None = None
    host_by: HostBy = DEFAULT_HOST_MODE
    alone: bool = False

    @property
    def num_hosts(self) -> int:
        """Number of hosts that read it."""
        return len(self.consumed)
