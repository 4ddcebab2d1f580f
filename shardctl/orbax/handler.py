"""The handler by which Orbax saves and restores a position, and its arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import orbax.checkpoint as ocp
from orbax.checkpoint.future import CommitFutureAwaitingContractedSignals

from shardctl.core.arguments.checked import checked, keep_fields
from shardctl.core.hosts.host import HostLike, as_host
from shardctl.orbax.process_files import (
    all_states,
    check_host_of,
    restore_position,
    this_process,
    write_state,
)
from shardctl.tfds.position.position import Position


class PositionHandler(ocp.AsyncCheckpointHandler):
    """What Orbax calls for `Save` and `Restore`; it is registered for both, under any item name.

    The state is taken when the checkpoint is saved and written in the background, as Orbax writes
    the rest. Each process writes `process_I-of-N.json`, by `jax.process_index()`; `process`, `I/N`
    or a `Host`, is for runs whose processes JAX knows nothing of.
    """

    @checked
    def __init__(self, *, process: HostLike | None = None) -> None:
        self._process = None if process is None else as_host(process)

    def save(self, directory: Any, args: Save) -> None:
        """Write the state of `args.position` into the folder, which is there."""
        write_state(directory, self._process or this_process(), args.position.get_state())

    async def async_save(self, directory: Any, args: Save) -> list[Any]:
        """Take the state of `args.position`; return the future of its file."""
        process, state = self._process or this_process(), args.position.get_state()

        async def written() -> None:
            write_state(directory, process, state)

        # Orbax may create the folder in the background too, and signals when it is there.
        return [CommitFutureAwaitingContractedSignals(written(), name="position")]

    def restore(self, directory: Any, args: Restore | None = None) -> Any:
        """Bring `args.position` to where it was saved, and return it; see `Restore`.

        Raises:
            ShardctlError: as for `Restore`.
        """
        if args is None or args.position is None:
            return all_states(directory)
        process = self._process or this_process()
        restore_position(args.position, directory, process, allow_version=args.allow_version)
        return args.position

    @classmethod
    def typestr(cls) -> str:
        """Return the name under which checkpoints know the handler, wherever its module lies."""
        return "shardctl.orbax.PositionHandler"


@ocp.args.register_with_handler(PositionHandler, for_save=True)
@dataclass
class Save(ocp.args.CheckpointArgs):
    """Save a position as an item of a checkpoint, at the very place where `save` is called.

    `host`, an index or `I/N`, is who this process is, where its settings name a host and JAX counts
    processes otherwise; as for `Position.dataset`.

        manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state), data=shardctl_args.Save(position)
            ),
        )

    Raises:
        UsageError: the position is another host's than this process's.
    """

    position: Position
    host: int | HostLike | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep_fields(self)
        check_host_of(self.position, self.host)


@ocp.args.register_with_handler(PositionHandler, for_restore=True)
@dataclass
class Restore(ocp.args.CheckpointArgs):
    """Restore a position in place, from an item that `Save` has written.

    As many processes as saved take each its own state; another number, or other hosts, take the
    states of all of them by `Position.set_states`, and share what is left. What is restored is the
    position itself. Without a position, as where `manager.restore(step)` is given no arguments, it
    is the list of the states, one a host. `allow_version` is that of `Position.set_state`, `host`
    that of `Save`.

    Raises:
        DatasetError: a file is missing or damaged, or files are of several runs; the position is of
            another dataset, or the dataset has changed.
        UsageError: another spec or other settings; or as for `Save`.
    """

    position: Position | None = None
    allow_version: bool = field(default=False, kw_only=True)
    host: int | HostLike | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep_fields(self)
        if self.position is not None:
            check_host_of(self.position, self.host)


# A position as Orbax's next API (`orbax.checkpoint.v1`) takes it: an object with save and load.


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
        self, position: Position, *, allow_version: bool = False, host: int | HostLike | None = None
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
        return asyncio.sleep(0)
