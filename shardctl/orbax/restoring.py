"""Which of the states in a checkpoint a position goes to, and who this process is."""

from __future__ import annotations

from typing import Any

import jax

from shardctl.core.hosts.host import Host, HostLike
from shardctl.orbax.process_files import all_states, host_of, own_state
from shardctl.tfds.position.position import Position
from shardctl.tfds.training.process_host import check_host


def this_process() -> Host:
    """Return which process this is, by JAX."""
    return Host(index=jax.process_index(), count=jax.process_count())


def check_host_of(position: Position, host: int | HostLike | None) -> None:
    """Refuse a position of one host in a process that is said to be another one.

    Raises:
        UsageError: it is another host; see `check_host`.
    """
    planned = host_of(position.get_state())
    if planned is not None:
        check_host(planned, host, what="position")


def restore_position(
    position: Position, directory: Any, process: Host, *, allow_version: bool
) -> None:
    """Go to the state that this process has saved, or share what all of them had left.

    Raises:
        DatasetError: no states, or they cannot be used; `process_files` says why.
        ShardctlError: the position refuses them.
    """
    state = own_state(directory, process, host_of(position.get_state()))
    if state is not None:
        position.set_state(state, allow_version=allow_version)
    else:
        position.set_states(all_states(directory), allow_version=allow_version)
