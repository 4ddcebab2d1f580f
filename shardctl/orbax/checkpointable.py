"""A position as Orbax's next API (`orbax.checkpoint.v1`) takes it: an object with save and load."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.hosts.host import HostLike
from shardctl.orbax.process_files import write_state
from shardctl.orbax.restoring import check_host_of, restore_position, this_process
from shardctl.tfds.position.position import Position


class Checkpointable:
    """A position for `save_checkpointables` and `load_checkpointables`, which restores in place.

    It is a `StatefulCheckpointable` of Orbax's API v1, and writes the files that `Save` writes;
    `allow_version` and `host` are those of `Restore`.

        ocp.save_checkpointables(path, {"state": state, "data": Checkpointable(position)})

    Raises:
        UsageError: as for `Save`.
    """

    @checked
    def __init__(
        self,
        position: Position,
        *,
        allow_version: bool = False,
        host: int | HostLike | None = None,
    ) -> None:
        check_host_of(position, host)
        self._position, self._allow_version = position, allow_version

    async def save(self, directory: Any) -> Awaitable[None]:
        """Take the state, and return what writes it once the folder is there."""
        process, state = this_process(), self._position.get_state()

        async def written() -> None:
            write_state(await directory.await_creation(), process, state)

        return written()

    async def load(self, directory: Any) -> Awaitable[None]:
        """Bring the position to where it was saved, and return what has nothing left to do.

        Orbax would hide an error of what is returned behind one about handlers.

        Raises:
            ShardctlError: as for `Restore`.
        """
        restore_position(
            self._position, directory, this_process(), allow_version=self._allow_version
        )
        return _nothing_left()


async def _nothing_left() -> None:
    pass
